"""What a te schedule shows of itself: its stages, each with its loops in order and the place where it is computed.

stage  loops                                        computed at
C      i.outer 2 parallel, j 6, i.inner 4, k 4      the root
"""

from __future__ import annotations

from typing import Final

from loopwright.display.sheet import Sheet, Table, heading
from loopwright.ir import Expr, IterType, IterVar
from loopwright.te.operation import PlaceholderOp
from loopwright.te.schedule.schedule_state import ScheduleState
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.stage_state import GROUP_ROOT, INLINE, INLINED_ALREADY, SCAN_UPDATE
from loopwright.te.tensor import dim_text

_KINDS: Final = {
    IterType.Parallelized: "parallel",
    IterType.Vectorized: "vectorized",
    IterType.Unrolled: "unrolled",
    IterType.Tensorized: "tensorized",
    IterType.CommReduce: "reduced",
}


def stages_sheet(sch: ScheduleState) -> Sheet:
    """The schedule at a glance."""
    rows = [
        (stage.name, _loops(stage), _place(stage))
        for stage in sch.stages
        if not stage.is_group and not isinstance(stage.op, PlaceholderOp)
    ]
    title = heading(f"Schedule of {', '.join([op.name for op in sch.outputs])}")
    return Sheet(title, Table(("stage", "loops", "computed at"), tuple(rows)))


def _loops(stage: Stage) -> str:
    sizes = stage.sizes()
    return ", ".join([_loop(stage, axis, sizes.get(axis)) for axis in stage.leaf_iter_vars])


def _loop(stage: Stage, axis: IterVar, size: Expr | None) -> str:
    attr = stage.iter_var_attrs.get(axis)
    kind = _KINDS.get(axis.iter_type if attr is None else attr.iter_type, "")
    if attr is not None and attr.bind_thread is not None:
        kind = attr.bind_thread.thread_tag
    if attr is not None and attr.tensor_intrin is not None:
        kind = _KINDS[IterType.Tensorized]
    return " ".join([part for part in (axis.var.name, "" if size is None else dim_text(size), kind) if part])


def _place(stage: Stage) -> str:
    if stage.attach_type in (INLINE, INLINED_ALREADY):
        return "inlined into its readers"
    if stage.attach_type == GROUP_ROOT:
        return "the root" if stage.group is None else "its group"
    if stage.attach_type == SCAN_UPDATE:
        return "the scan"
    assert stage.attach_stage is not None and stage.attach_ivar is not None
    return f"loop {stage.attach_ivar.var.name} of {stage.attach_stage.name}"
