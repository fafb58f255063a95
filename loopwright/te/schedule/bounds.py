"""InferBound and its like: what lowering finds out about a schedule, for those who want to look.

These answer with what the program really is after every step; they are made by lowering it.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import (
    BufferLoad,
    BufferStore,
    Expr,
    IterVar,
    PrimFunc,
    ProducerLoad,
    Range,
    Stmt,
    Var,
    cast,
    collect,
    const,
    post_order_visit,
    substitute,
)
from loopwright.runtime.errors import NotBuilt
from loopwright.te.operation import ComputeOp
from loopwright.te.scan import ScanOp
from loopwright.te.schedule.errors import CannotAttach
from loopwright.te.schedule.program import inputs_of
from loopwright.te.schedule.replay import Nest, Replayed, attach_of, replay, stage_axes
from loopwright.te.schedule.schedule import Schedule
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.to_module import named_function
from loopwright.te.tensor import Operation, Tensor


def InferBound(sch: Schedule) -> dict[IterVar, Range]:
    """The range of every axis: of a stage's own axes the part that is computed, of loops how often they run."""
    done = replay(sch, _all_args(sch))
    result: dict[IterVar, Range] = {}
    for stage, nests in done.nests.items():
        for nest in nests:
            lows = _lows(done, stage, nest)
            for axis, extent in nest.extents.items():
                low = lows.get(axis, const(0, extent.dtype))
                result[axis] = Range.from_min_extent(low, extent)
    for stage in sch.stages:
        if isinstance(stage.op, ScanOp) and stage.op.scan_axis.dom is not None:
            result[stage.op.scan_axis] = stage.op.scan_axis.dom
        for axis, attr in stage.iter_var_attrs.items():
            if attr.bind_thread is not None and axis in result:
                result[attr.bind_thread] = result[axis]
    return result


def _all_args(sch: Schedule) -> list[Tensor]:
    """Every input and every output, in order."""
    return [op.output(k) for op in [*inputs_of(sch), *sch.outputs] for k in range(op.num_outputs)]


def _lows(done: Replayed, stage: Stage, nest: Nest) -> dict[IterVar, Expr]:
    """Where the axes of a stage begin: their values in the first iteration of the stage's own loops."""
    if not isinstance(stage.op, ComputeOp):
        return {}
    realize = done.schedule.view().realize(nest.block.key)
    zero: dict[Var, Expr] = {}
    for nests in done.nests.values():  # loops of other stages are told by their axes, as the user knows them
        for other in nests:
            zero.update({loop.var: cast(axis.var, loop.var.dtype) for axis, loop in other.loops.items()})
    zero.update({loop.var: const(0, loop.var.dtype) for loop in nest.loops.values()})
    facts = Analyzer()
    axes = stage_axes(stage)
    values = [facts.simplify(substitute(value, zero)) for value in realize.iter_values]
    return dict(zip(axes, values, strict=False))


def ScheduleOps(sch: Schedule, bounds: object = None, debug_keep_trivial_loop: bool = False) -> Stmt:
    """The statement of the whole schedule: loops and blocks, as the function holds them before any pass."""
    return named_function(replay(sch, _all_args(sch))).body


def SchedulePostProcToPrimFunc(arg_list: object, body: Stmt, extern_buffer: object = None) -> PrimFunc:
    """Not built: a statement alone does not know the buffers of its tensors."""
    raise NotBuilt(
        "te.schedule.SchedulePostProcToPrimFunc",
        "driver.build_module.schedule_to_module(s, args, name, binds) makes the whole function",
    )


def CreateAttachPath(sch: Schedule) -> dict[Operation, list[IterVar]]:
    """The loops that each operation is computed under, innermost first."""
    result: dict[Operation, list[IterVar]] = {}
    for stage in sch.stages:
        path: list[IterVar] = []
        here = attach_of(stage)
        seen: set[Stage] = set()
        while here is not None:
            parent, axis, _ = here
            if parent in seen:
                raise CannotAttach(
                    f"compute_at: {stage.name} would be computed inside itself, through {parent.name}",
                    hint="compute one of the stages at its root",
                )
            seen.add(parent)
            leaves = parent.leaf_iter_vars
            if axis in leaves:
                path += reversed(leaves[: leaves.index(axis) + 1])
            here = attach_of(parent)
        result[stage.op] = path
    return result


def ScanGetBody(scan_op: ScanOp) -> list[Operation]:
    """The operations that run in each step of a scan."""
    return [stage.op for stage in scan_op.body.stages]


def ScanFixPointAnalysis(scan_op: ScanOp) -> dict[IterVar, Expr]:
    """For each data axis of a scan's states: 1 where a step at one index reads states at that index alone, else 0."""
    fixed: dict[IterVar, Expr] = {}
    axes = iter(scan_op.spatial_axis_)
    for state, update in zip(scan_op.state_placeholder, scan_op.update, strict=True):
        for dimension in range(1, state.ndim):
            axis = next(axes)
            keeps = _keeps(scan_op, update.op, dimension, set())
            fixed[axis] = const(1 if keeps else 0)
    return fixed


def _keeps(scan: ScanOp, op: Operation, dimension: int, seen: set[tuple[Operation, int]]) -> bool:
    """Whether `op` at an index of `dimension` reads states, and stages, at that index alone."""
    if (op, dimension) in seen:
        return True
    seen.add((op, dimension))
    if not isinstance(op, ComputeOp) or dimension >= len(op.axis):
        return False
    var = op.axis[dimension].var
    members = {stage.op for stage in scan.body.stages}
    states = {state.op for state in scan.state_placeholder}
    loads: list[ProducerLoad] = []
    for value in op.body:
        post_order_visit(value, lambda node: loads.append(node) if isinstance(node, ProducerLoad) else None)
    for load in loads:
        source = getattr(load.producer, "op", None)
        if source in states or source in members:
            locations = [k for k, index in enumerate(load.indices) if index is var]
            if not locations:
                return False
            if source in states:
                if dimension not in locations:
                    return False
            elif not any([_keeps(scan, source, location, seen) for location in locations]):
                return False
    return True


def VerifyCompactBuffer(stmt: Stmt) -> bool:
    """Whether every buffer that the statement uses is compact."""
    return all([not access.buffer.strides for access in collect(stmt, BufferLoad, BufferStore)])


__all__ = [
    "CreateAttachPath",
    "InferBound",
    "ScanFixPointAnalysis",
    "ScanGetBody",
    "ScheduleOps",
    "SchedulePostProcToPrimFunc",
    "VerifyCompactBuffer",
]
