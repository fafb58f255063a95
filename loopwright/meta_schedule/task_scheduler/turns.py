"""RoundRobin and GradientBased: whose turn it is."""

from __future__ import annotations

import random
from typing import Any

from loopwright.meta_schedule.task_scheduler.task_scheduler import TaskRecord, TaskScheduler


class RoundRobin(TaskScheduler):
    """Each task in turn."""

    def __init__(self) -> None:
        self.task_id = -1

    def next_task_id(self) -> int:
        for _ in self.tasks_:
            self.task_id = (self.task_id + 1) % len(self.tasks_)
            task = self.tasks_[self.task_id]
            if not task.is_terminated:
                if task.runner_futures is not None:
                    self.join_running_task(self.task_id)
                return self.task_id
        return -1


class GradientBased(TaskScheduler):
    """First each task once, then the one that gained most lately, for its weight."""

    def __init__(self, *, alpha: float = 0.2, window_size: int = 3, seed: int = -1) -> None:
        self.alpha, self.window_size = alpha, window_size
        self._random = random.Random(None if seed == -1 else seed)
        self._first_rounds = 0
        self._best: dict[int, list[float]] = {}

    def tune(self, *args: Any, **kwargs: Any) -> None:
        self._first_rounds, self._best = 0, {}
        super().tune(*args, **kwargs)

    def next_task_id(self) -> int:
        if self._first_rounds < len(self.tasks_):
            self._first_rounds += 1
            return self._first_rounds - 1
        for number, task in enumerate(self.tasks_):
            if not task.is_terminated and task.runner_futures is not None:
                self.join_running_task(number)
                self._best.setdefault(number, []).append(task.best_ms)
        alive = [number for number, task in enumerate(self.tasks_) if not task.is_terminated]
        if not alive:
            return -1
        gains = {number: self._gain(number, self.tasks_[number]) for number in alive}
        most = max(gains.values())
        return self._random.choice([number for number in alive if gains[number] == most])

    def _gain(self, number: int, task: TaskRecord) -> float:
        """What the next round may take off: as the last ones did, or as if times went down with their number."""
        best = self._best.get(number, [])
        if not best:
            return task.task_weight * 1e9
        count, window = len(best), self.window_size
        late = (best[count - 1 - window] - best[-1]) / window if count > window else best[-1]
        return task.task_weight * (self.alpha * late + (1 - self.alpha) * best[-1] / count)


TaskScheduler.kinds.update({"gradient": GradientBased, "round-robin": RoundRobin})
