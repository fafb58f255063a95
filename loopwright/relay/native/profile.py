"""profile: a model run with a clock around every kernel, and with every intermediate value kept.

    found = model.profile(x)
    print(found)                        launches, the slowest first
    found.rows[0].seconds, .name, .gflops
    found.values["h"]                   an intermediate value, as an array

It is another main function over the same kernels: values share no memory in it, and the arena is an array of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loopwright.relay.native.kernel_table import bytes_of, flops_of
from loopwright.relay.native.liveness import Home
from loopwright.relay.native.main_code import compile_main, describe_main
from loopwright.relay.native.main_function import make_main
from loopwright.relay.native.pack import ALIGNMENT, aligned
from loopwright.relay.native.plan import Plan, Slot, plan_memory
from loopwright.relay.native.program import Launch, Value
from loopwright.relay.native.sizes import as_arrays, bound_sizes, number, output_shapes, shape_of

if TYPE_CHECKING:
    from loopwright.relay.native.model import NativeModel


@dataclass(frozen=True)
class LaunchTime:
    """What one kernel call of the program took, over all the times it ran."""

    name: str
    launch: Launch
    seconds: float  # of one call
    calls: int  # in one run: more than one in a loop, none in a branch that was not taken
    flops: float | None
    bytes_moved: int | None

    @property
    def gflops(self) -> float | None:
        """Arithmetic, in 10⁹ a second."""
        return None if self.flops is None or not self.seconds else self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float | None:
        """Memory traffic if every argument moved once, in 10⁹ bytes a second."""
        return None if self.bytes_moved is None or not self.seconds else self.bytes_moved / self.seconds / 1e9


@dataclass(frozen=True)
class Profile:
    """Times of launches in program order, the outputs, and the values in between by name (the last of a name)."""

    rows: tuple[LaunchTime, ...]
    outputs: tuple[Any, ...]
    values: Mapping[str, Any]
    by_value: Mapping[Value, Any]

    @property
    def seconds(self) -> float:
        """What all kernels of one run took together."""
        return sum(row.seconds * row.calls for row in self.rows)

    def __str__(self) -> str:
        total = self.seconds or 1.0
        lines = [f"{'kernel':40} {'ms':>9} {'share':>6} {'calls':>5} {'GFLOP/s':>8} {'GB/s':>7}"]
        for row in sorted(self.rows, key=lambda row: -row.seconds * row.calls):
            spent = row.seconds * row.calls
            rates = [f"{rate:.1f}" if rate is not None else "" for rate in (row.gflops, row.gbytes)]
            lines.append(
                f"{row.name[:40]:40} {spent * 1e3:9.3f} {spent / total:6.1%} {row.calls:5} {rates[0]:>8} {rates[1]:>7}"
            )
        return "\n".join([*lines, f"{'all':40} {self.seconds * 1e3:9.3f}"])


def profile(model: NativeModel, inputs: Sequence[Any], repeat: int = 1) -> Profile:
    """Run the model's kernels `repeat` times with a clock; see `NativeModel.profile`."""
    program = model.program
    timed = _timed_main(model)
    arrays = as_arrays(program, inputs)
    shapes = output_shapes(program, arrays)
    outputs = [np.empty(shape, value.dtype.numpy()) for shape, value in zip(shapes, program.outputs, strict=True)]
    sizes = bound_sizes(program, arrays)
    starts, total = _slot_starts(timed.plan, sizes)
    room = np.zeros(max(total, 1) + ALIGNMENT, dtype=np.uint8)
    begin = -room.ctypes.data % ALIGNMENT
    arena = room[begin : begin + max(total, 1)]
    count = len(timed.launches)
    times, calls = (np.zeros(max(count, 1), dtype=np.int64) for _ in range(2))
    for _ in range(max(1, repeat)):
        timed.function(*arrays, *outputs, arena, times, calls)
    rows = []
    for launch, spent, made in zip(timed.launches, times, calls, strict=False):
        seconds = float(spent) / int(made) / 1e9 if made else 0.0
        name = launch.name or launch.func.name
        rows.append(LaunchTime(name, launch, seconds, int(made) // max(1, repeat), flops_of(launch), bytes_of(launch)))
    values = _intermediates(timed.plan, starts, sizes, arena)
    return Profile(tuple(rows), tuple(outputs), {value.name: array for value, array in values.items()}, values)


@dataclass(frozen=True)
class TimedMain:
    """The second main function."""

    function: Any
    plan: Plan
    launches: list[Launch]


def _timed_main(model: NativeModel) -> TimedMain:
    if model.timed is not None:
        return model.timed
    plan = plan_memory(model.program, prepared=model.plan.prepared, reuse=False)
    name = f"{model.program.name}_profile"
    main = make_main(model.program, plan, model.launches, name, timed=True, open_arena=True)
    code = compile_main(main, model.cpu, describe_main(main, model.cpu))
    model.timed = TimedMain(model.link(code, name), plan, main.launches)
    return model.timed


def _slot_starts(plan: Plan, sizes: Mapping[Any, int]) -> tuple[dict[Slot, int], int]:
    """Where the slots of the arena begin in a call with these sizes, and where it ends."""
    starts: dict[Slot, int] = {}
    end = plan.peak
    for slot in plan.slots.get(None, ()):
        starts[slot] = end
        end = aligned(end + number(slot.nbytes, sizes, "the arena"))
    return starts, end


def _intermediates(
    plan: Plan, starts: Mapping[Slot, int], sizes: Mapping[Any, int], arena: np.ndarray[Any, Any]
) -> dict[Value, Any]:
    """Every value in the arena, as a view of it. Those whose size the program itself computes are not there."""
    places: dict[Home, int] = dict(plan.offsets)
    for slot, start in starts.items():
        places.update(dict.fromkeys(slot.homes, start))
    found: dict[Value, Any] = {}
    for home, start in places.items():
        for value in home.values:
            shape = shape_of(value, sizes)
            size = int(np.prod(shape, dtype=np.int64)) * value.item_bytes
            found[value] = arena[start : start + size].view(value.dtype.numpy()).reshape(shape)
    return found
