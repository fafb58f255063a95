"""profile: a model run with a clock around every kernel, and with every intermediate value kept.

    found = model.profile(x)
    print(found)                        a row for each layer: time, share, work, how near the roofline, why not nearer
    found.rows[0].seconds, .name, .operators, .gflops
    found.layers[0].share_of_limit, .bound, .reasons
    found.values["h"]                   an intermediate value, as an array

It is another main function over the same kernels: values share no memory in it, and the arena is an array of ours. The
roofline is measured (`machine_limits.py`) when somebody first asks for it; `bottleneck.py` finds the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from time import perf_counter
from typing import Any, Final, Protocol

import numpy as np

from loopwright.analysis.costs import CostUnknown, estimate_tir_flops
from loopwright.autosched import Machine
from loopwright.codegen.llvm.engine import Compiled
from loopwright.ir import Var, decl_buffer
from loopwright.ir.specialize import CannotSpecialize, specialize
from loopwright.model.arena_packing import ALIGNMENT, aligned
from loopwright.model.bottleneck import Limit, limit_of, reasons
from loopwright.model.errors import SizeNotKnown
from loopwright.model.kernel import Kernel
from loopwright.model.kernel_table import flops_of
from loopwright.model.liveness import Home
from loopwright.model.machine_limits import Compile, MachineLimits, machine_limits
from loopwright.model.main_code import compile_main, describe_main
from loopwright.model.main_function import make_main
from loopwright.model.plan import Plan, Slot, plan_memory
from loopwright.model.program import Bind, Launch, Program, Value
from loopwright.model.sizes import as_arrays, bound_sizes, number, output_shapes, shape_of
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.json_text import JsonObject
from loopwright.runtime.shown import view
from loopwright.target import CpuDescription, Target

# Operators that read as much of a table or an array as they give, and not all of it.
_SOME_OF: Final = ("take", "gather", "gather_nd", "strided_slice", "embedding", "slice_like", "dynamic.strided_slice")


@dataclass(frozen=True)
class LaunchTime:
    """What one kernel call of the program took: the median of the runs."""

    name: str
    launch: Launch
    kernel: Kernel
    operators: tuple[str, ...]  # that are fused in it, in the order they are computed
    seconds: float  # of one call
    calls: int  # in one run: more than one in a loop, none in a branch that was not taken
    flops: float | None
    bytes_read: int | None
    bytes_written: int | None
    weights: tuple[str, ...] = ()  # the kernel's names of arguments that are constants

    @property
    def bytes_moved(self) -> int | None:
        """Every argument once; of tables, what is taken from them."""
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written

    @property
    def gflops(self) -> float | None:
        """Arithmetic, in 10⁹ a second."""
        return None if self.flops is None or not self.seconds else self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float | None:
        """Memory traffic if every argument moved once, in 10⁹ bytes a second."""
        return None if self.bytes_moved is None or not self.seconds else self.bytes_moved / self.seconds / 1e9


@dataclass(frozen=True)
class Allocation:
    """Memory that the run was given before its kernels: for one output, or the arena of all values in between."""

    value: Value | None  # None: the arena
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Layer:
    """A launch beside what the machine allows."""

    row: LaunchTime
    share: float  # of the time of all kernels
    limit: Limit | None  # None where its sizes are known to the run alone, or it did not run
    reasons: tuple[str, ...]  # why it is not faster, the weightiest first

    @property
    def bound(self) -> str | None:
        """What sets its limit: "memory" or "arithmetic"."""
        return None if self.limit is None else self.limit.bound

    @property
    def share_of_limit(self) -> float | None:
        """How much of the roofline it reaches; at most 1, since a limit is measured too."""
        if self.limit is None or not self.row.seconds:
            return None
        return min(1.0, self.limit.seconds / self.row.seconds)


@dataclass(frozen=True)
class Profile:
    """Times of launches in program order, the outputs, and the values in between by name (the last of a name)."""

    rows: tuple[LaunchTime, ...]
    outputs: tuple[np.ndarray, ...]
    values: Mapping[str, np.ndarray]
    by_value: Mapping[Value, np.ndarray]
    machine: Machine
    call_seconds: float  # of the model itself, where values share memory and no clock runs
    compile_program: Compile  # for the kernels that measure the limits
    allocations: tuple[Allocation, ...] = ()

    @property
    def seconds(self) -> float:
        """What all kernels of one run took together."""
        return sum(row.seconds * row.calls for row in self.rows)

    @cached_property
    def limits(self) -> MachineLimits:
        """What the machine can do at most; measured when it is first asked for in a process."""
        return machine_limits(self.compile_program)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The launches in program order, beside the roofline and with reasons."""
        return tuple(_layer(row, self.seconds or 1.0, self.limits, self.machine) for row in self.rows)

    def as_data(self) -> list[JsonObject]:
        """The layers as plain data, in program order."""
        return [
            {
                "name": layer.row.name,
                "function": layer.row.launch.func.name,
                "operators": list(layer.row.operators),
                "calls": layer.row.calls,
                "seconds": layer.row.seconds,
                "share": layer.share,
                "flops": layer.row.flops,
                "bytes_moved": layer.row.bytes_moved,
                "bound": layer.bound,
                "share_of_roofline": layer.share_of_limit,
                "reasons": list(layer.reasons),
            }
            for layer in self.layers
        ]

    def __str__(self) -> str:
        table: str = view("profile", self)
        return table


class ProfiledModel(Protocol):
    """The model to run; `model.py` has the class."""

    program: Program
    plan: Plan
    launches: Mapping[Launch, Kernel]
    target: Target
    compile_program: Compile
    timed: TimedMain | None

    @property
    def cpu(self) -> CpuDescription: ...

    def link(self, code: Compiled, name: str) -> PackedFunction: ...

    def __call__(self, *args: object) -> Any: ...


def profile(model: ProfiledModel, inputs: Sequence[object], repeat: int = 1) -> Profile:
    """Run the model's kernels `repeat` times with a clock, after once without; see `NativeModel.profile`."""
    program = model.program
    timed = _timed_main(model)
    arrays = as_arrays(program, inputs)
    shapes = output_shapes(program, arrays)
    outputs, allocations = [], []
    for shape, value in zip(shapes, program.outputs, strict=True):
        start = perf_counter()
        outputs.append(np.empty(shape, value.dtype.numpy()))
        allocations.append(Allocation(value, outputs[-1].nbytes, perf_counter() - start))
    sizes = bound_sizes(program, arrays)
    starts, total = _slot_starts(timed.plan, sizes)
    start = perf_counter()
    room = np.zeros(max(total, 1) + ALIGNMENT, dtype=np.uint8)
    allocations.insert(0, Allocation(None, room.nbytes, perf_counter() - start))
    begin = -room.ctypes.data % ALIGNMENT
    arena = room[begin : begin + max(total, 1)]
    count = len(timed.launches)
    times, calls = (np.zeros(max(count, 1), dtype=np.int64) for _ in range(2))
    whole, spent = [], []
    for turn in range(max(1, repeat) + 1):
        times[:], calls[:] = 0, 0
        start = perf_counter()
        model(*arrays, *outputs)
        whole.append(perf_counter() - start)
        timed.function(*arrays, *outputs, arena, times, calls)
        if turn:  # the first one finds memory that nobody has touched
            spent.append(times / np.maximum(calls, 1) / 1e9)
    values = _intermediates(timed.plan, starts, sizes, arena)
    found = _found_sizes(program, {**values, **dict(zip(program.outputs, outputs, strict=True))})
    if found:
        sizes = {**sizes, **found}
        values = _intermediates(timed.plan, starts, sizes, arena)
    rows = [
        _row(launch, model, sizes, float(median(one[index] for one in spent)), int(calls[index]))
        for index, launch in enumerate(timed.launches)
    ]
    by_name = {value.name: array for value, array in values.items()}
    machine, call_seconds = Machine.of(model.target), median(whole[1:])
    return Profile(
        tuple(rows), tuple(outputs), by_name, values, machine, call_seconds, model.compile_program, tuple(allocations)
    )


def _found_sizes(program: Program, values: Mapping[Value, np.ndarray]) -> dict[Var, int]:
    """The sizes that the run has found, outside of branches and loops."""
    return {
        step.var: int(values[step.value].item())
        for step in program.body
        if isinstance(step, Bind) and step.value in values
    }


def _row(launch: Launch, model: ProfiledModel, sizes: Mapping[Var, int], seconds: float, calls: int) -> LaunchTime:
    operators = model.program.operators.get(launch, ())
    read, written = _bytes(launch, operators, sizes)
    flops = flops_of(launch)
    if flops is None:
        flops = _flops_at(launch, sizes)
    name = launch.name or launch.func.name
    constants = model.program.constants
    weights = tuple(
        buffer.name for buffer, value in zip(launch.buffers, launch.arguments, strict=True) if value in constants
    )
    return LaunchTime(name, launch, model.launches[launch], operators, seconds, calls, flops, read, written, weights)


def _bytes(launch: Launch, operators: Sequence[str], sizes: Mapping[Var, int]) -> tuple[int | None, int | None]:
    """Bytes that must be read, and written; None where a size is known to the run alone."""

    def size_of(index: int) -> int:
        value, part = launch.arguments[index], launch.part(index)
        whole = int(np.prod(shape_of(value, sizes), dtype=np.int64)) * value.item_bytes
        return whole if part is None or not whole else whole // int(value.shape[part.axis]) * part.size  # type: ignore[arg-type]

    indices = {value: place for place, value in reversed(list(enumerate(launch.arguments)))}  # of each value the first
    try:
        written = sum(size_of(location) for value, location in indices.items() if value in launch.written)
        each = [size_of(indices[value]) for value in dict.fromkeys(launch.inputs)]
    except SizeNotKnown:
        return None, None
    if any(name in _SOME_OF for name in operators):
        each = [min(size, written) for size in each]
    return sum(each), written


def _flops_at(launch: Launch, sizes: Mapping[Var, int]) -> float | None:
    """The arithmetic of a kernel of open sizes at those of this run."""
    params = [param for param in launch.func.params if param in launch.func.buffer_map]
    try:
        shapes = [shape_of(value, sizes) for value in launch.arguments]
        given = {
            param: decl_buffer(shape, str(launch.func.buffer_map[param].dtype))
            for param, shape in zip(params, shapes, strict=True)
        }
        return estimate_tir_flops(specialize(launch.func, given))
    except (SizeNotKnown, CostUnknown, CannotSpecialize):
        return None


def _layer(row: LaunchTime, total: float, limits: MachineLimits, machine: Machine) -> Layer:
    share = row.seconds * row.calls / total
    if not row.calls:
        return Layer(row, share, None, ("it did not run",))
    if row.bytes_read is None or row.bytes_written is None:
        return Layer(row, share, None, ("its sizes are known to the run alone",))
    dtype = str(row.launch.arguments[-1].dtype)
    per_cycle = machine.flops_per_cycle("float32")
    limit = limit_of(row.kernel, dtype, row.flops, row.bytes_read, row.bytes_written, limits, per_cycle)
    why = reasons(row.kernel, row.seconds, limit, row.bytes_read + row.bytes_written, limits, row.weights)
    return Layer(row, share, limit, tuple(why))


@dataclass(frozen=True)
class TimedMain:
    """The second main function."""

    function: PackedFunction
    plan: Plan
    launches: list[Launch]


def _timed_main(model: ProfiledModel) -> TimedMain:
    if model.timed is not None:
        return model.timed
    plan = plan_memory(model.program, prepared=model.plan.prepared, reuse=False)
    name = f"{model.program.name}_profile"
    main = make_main(model.program, plan, model.launches, name, timed=True, open_arena=True)
    code = compile_main(main, model.cpu, describe_main(main, model.cpu))
    model.timed = TimedMain(model.link(code, name), plan, main.launches)
    return model.timed


def _slot_starts(plan: Plan, sizes: Mapping[Var, int]) -> tuple[dict[Slot, int], int]:
    """Where the slots of the arena begin in a call with these sizes, and where it ends."""
    starts: dict[Slot, int] = {}
    end = plan.peak
    for slot in plan.slots.get(None, ()):
        starts[slot] = end
        end = aligned(end + number(slot.nbytes, sizes, "the arena"))
    return starts, end


def _intermediates(
    plan: Plan, starts: Mapping[Slot, int], sizes: Mapping[Var, int], arena: np.ndarray
) -> dict[Value, np.ndarray]:
    """Every value in the arena, as a view of it, but for those whose size is not among `sizes`."""
    locations: dict[Home, int] = dict(plan.offsets)
    for slot, start in starts.items():
        locations.update(dict.fromkeys(slot.homes, start))
    result: dict[Value, np.ndarray] = {}
    for home, start in locations.items():
        for value in home.values:
            try:
                shape = shape_of(value, sizes)
            except SizeNotKnown:  # a size that the program computes, inside a branch or a loop perhaps
                continue
            size = int(np.prod(shape, dtype=np.int64)) * value.item_bytes
            result[value] = arena[start : start + size].view(value.dtype.numpy()).reshape(shape)
    return result
