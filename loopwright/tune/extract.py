"""extract: the tasks of a model or of a program: its distinct kernels, and how often each runs.

    with recording() as tasks:
        lw.compile("model.onnx")
    tasks.found                      a Task for each kernel, the heaviest by count first

Whatever compiles kernels asks the source of known schedules about each; the one here knows nothing, and takes notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from loopwright.analysis.written_memory import written_arguments
from loopwright.autosched.known import Known, using
from loopwright.ir import BlockRealize, IntImm, IRModule, PrimFunc, collect
from loopwright.target import Target
from loopwright.tune.task import Task
from loopwright.tune.workload import key_of


@dataclass
class Recorder:
    """Notes what it is asked about."""

    tasks: dict[str, Task] = field(default_factory=dict)
    open_sizes: list[str] = field(default_factory=list)  # kernels that cannot be measured: sizes are not known

    def find(self, function: PrimFunc, target: Target, winograd: int) -> Known | None:
        self._note(function, target, winograd, 1)
        return None

    def key(self, function: PrimFunc, target: Target, winograd: int, count: int = 1) -> str:
        self._note(function, target, winograd, count)
        return ""

    @property
    def found(self) -> list[Task]:
        return sorted(self.tasks.values(), key=lambda task: -task.weight)

    def _note(self, function: PrimFunc, target: Target, winograd: int, count: int) -> None:
        name = task_name(function)
        if not is_measurable(function):
            if name not in self.open_sizes:
                self.open_sizes.append(name)
            return
        key = key_of(function)
        known = self.tasks.get(key)
        if known is None or known.weight < count:
            self.tasks[key] = Task(name, IRModule({"main": function}), target, float(count), winograd)


@contextmanager
def recording() -> Iterator[Recorder]:
    """Note the kernels that are compiled inside."""
    recorder = Recorder()
    with using(recorder):
        yield recorder


def is_measurable(function: PrimFunc) -> bool:
    """Whether all sizes are numbers."""
    buffers = [function.buffer_map.get(param) for param in function.params]
    return all([buffer is None or all(isinstance(size, IntImm) for size in buffer.shape) for buffer in buffers])


def task_name(function: PrimFunc) -> str:
    """What the function is called, or what its last block is, with the shape of what it writes."""
    outputs = [function.buffer_map.get(function.params[position]) for position in written_arguments(function)]
    shapes = ["×".join([str(size) for size in buffer.shape]) for buffer in outputs if buffer is not None]
    name = str(function.attrs.get("global_symbol", "") or "kernel")
    if name in ("kernel", "main"):
        blocks = [realize.block.name_hint for realize in collect(function.body, BlockRealize)]
        named = [block for block in blocks if block != "root"]
        name = "_".join(dict.fromkeys(named[-3:])) or name
    return f"{name[:48]} {', '.join(shapes[:1])}".strip()
