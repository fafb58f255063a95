"""LocalRunner: times candidates one after the other, each in a process of its own with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from loopwright.meta_schedule.arg_info import ArgInfo, TensorInfo
from loopwright.meta_schedule.hooks import Hook, checked, hook
from loopwright.meta_schedule.runner.config import EvaluatorConfig
from loopwright.meta_schedule.runner.runner import (
    PyRunner,
    PyRunnerFuture,
    Runner,
    RunnerFuture,
    RunnerInput,
    RunnerResult,
)
from loopwright.runtime import device as device_of
from loopwright.runtime import load_module
from loopwright.runtime.tensor import array
from loopwright.tune.measure import Failure
from loopwright.tune.measure.children import Report, run_children
from loopwright.tune.measure.limits import Limits

_MEMORY: Final = 4 << 30
_SEED: Final = 0


class LocalRunnerFuture(PyRunnerFuture):
    """A result that is there already."""

    def __init__(self, result: RunnerResult | None = None, error_message: str | None = None) -> None:
        self._result = result or RunnerResult(None, error_message)

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return self._result


class LocalRunner(PyRunner):
    """Its hooks are functions, or names of registered ones; they run in the child.

    `f_alloc_argument(device, args_info, alloc_repeat)` gives lists of arguments, `f_run_evaluator(module, device,
    evaluator_config, arguments)` the seconds, `f_cleanup()` ends it.
    """

    def __init__(
        self,
        timeout_sec: float = 30.0,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_alloc_argument: Hook = None,
        f_run_evaluator: Hook = None,
        f_cleanup: Hook = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        self.timeout_sec, self.cooldown_sec, self.alloc_repeat = timeout_sec, cooldown_sec, alloc_repeat
        self.evaluator_config = EvaluatorConfig._normalized(evaluator_config)
        self.f_alloc_argument, self.f_run_evaluator, self.f_cleanup = f_alloc_argument, f_run_evaluator, f_cleanup
        self.initializer = initializer
        checked(initializer, [f_alloc_argument, f_run_evaluator, f_cleanup])

    @property
    def is_usual(self) -> bool:
        """Whether it measures as the search itself does."""
        hooks = (self.f_alloc_argument, self.f_run_evaluator, self.f_cleanup, self.initializer)
        return all(one is None for one in hooks)

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        futures: list[RunnerFuture] = []
        for given in runner_inputs:
            (outcome,) = run_children([self._work(given)], Limits(self.timeout_sec, _MEMORY), "run")
            futures.append(LocalRunnerFuture(self._result(outcome)))
            if self.cooldown_sec:
                time.sleep(self.cooldown_sec)
        return futures

    def _work(self, given: RunnerInput) -> Callable[[Report], list[float]]:
        def work(_report: Report) -> list[float]:
            if self.initializer is not None:
                self.initializer()
            try:
                module = load_module(given.artifact_path)
                device = device_of(given.device_type, 0)
                allocate = hook(self.f_alloc_argument, default_alloc_argument)
                arguments = allocate(device, given.args_info, self.alloc_repeat)
                measure = hook(self.f_run_evaluator, default_run_evaluator)
                return [float(one) for one in measure(module, device, self.evaluator_config, arguments)]
            finally:
                hook(self.f_cleanup, default_cleanup)()

        return work

    def _result(self, outcome: list[float] | Failure) -> RunnerResult:
        if not isinstance(outcome, Failure):
            return RunnerResult(outcome, None)
        if outcome.kind == "run timeout":
            return RunnerResult(None, f"LocalRunner: Timeout, killed after {self.timeout_sec} seconds")
        return RunnerResult(None, f"LocalRunner: An exception occurred\n{outcome.message}\n{outcome.detail}")


def default_alloc_argument(device: Any, args_info: Sequence[ArgInfo], alloc_repeat: int) -> list[list[Any]]:
    """Arrays of random numbers."""
    random = np.random.default_rng(_SEED)
    return [[_array(random, device, info) for info in args_info] for _ in range(alloc_repeat)]


def default_run_evaluator(
    rt_mod: Any, device: Any, evaluator_config: EvaluatorConfig, repeated_args: Sequence[Sequence[Any]]
) -> list[float]:
    """The seconds of one call, for each list of arguments and each repeat."""
    evaluator = rt_mod.time_evaluator(
        rt_mod.entry_name,
        device,
        number=evaluator_config.number,
        repeat=evaluator_config.repeat,
        min_repeat_ms=evaluator_config.min_repeat_ms,
    )
    return [float(cost) for arguments in repeated_args for cost in evaluator(*arguments).results]


def default_cleanup() -> None:
    """Nothing: the process ends."""


def _array(random: np.random.Generator, device: Any, info: ArgInfo) -> Any:
    assert isinstance(info, TensorInfo)
    shape = [int(size) for size in info.shape]
    dtype = np.dtype(str(info.dtype)) if str(info.dtype) != "bool" else np.dtype(np.bool_)
    if dtype.kind == "f":
        return array(random.uniform(0, 1, shape).astype(dtype), device)
    return array(random.integers(0, 2, shape).astype(dtype), device)


Runner.kinds["local"] = LocalRunner
