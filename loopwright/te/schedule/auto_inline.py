"""AutoInlineElemWise, AutoInlineBroadcast, AutoInlineInjective: have cheap stages computed where they are read.

Outputs stay, and so does every stage that something was said about already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.ir import ProducerLoad, Reduce, Var, Visitor, deep
from loopwright.te.operation import ComputeOp
from loopwright.te.schedule.graph import same_objects
from loopwright.te.schedule.schedule import Schedule
from loopwright.te.schedule.stage_state import INLINE


def AutoInlineElemWise(sch: Schedule) -> None:
    """Inline computes whose every load is at exactly the axes of the result, in order."""
    _inline(sch, _is_elementwise)


def AutoInlineBroadcast(sch: Schedule) -> None:
    """Inline computes tagged "broadcast" that are no reductions."""
    _inline(sch, lambda op: not op.reduce_axis and op.tag == "broadcast")


def AutoInlineInjective(sch: Schedule) -> None:
    """Inline every compute that is no reduction."""
    _inline(sch, lambda op: not op.reduce_axis)


def _inline(sch: Schedule, is_cheap: Callable[[ComputeOp], bool]) -> None:
    for stage in sch.stages:
        op = stage.op
        if type(op) is ComputeOp and op.num_outputs == 1 and not stage.is_output and stage.is_untouched():
            if is_cheap(op):
                stage.attach_type = INLINE


class _SamePlace(Visitor):
    def __init__(self, axes: Sequence[Var]) -> None:
        self.axes = list(axes)
        self.holds = True

    def visit_ProducerLoad(self, load: ProducerLoad) -> None:
        self.holds = self.holds and same_objects(load.indices, self.axes)
        self.visit_children(load)


@deep
def _is_elementwise(op: ComputeOp) -> bool:
    look = _SamePlace([axis.var for axis in op.axis])
    for value in op.body:
        if isinstance(value, Reduce):
            return False
        look.visit(value)
    return look.holds
