"""copy and normalize: a schedule that goes its own way, and one in the form that lowering works from.

Normalizing puts the value of every inlined stage into its readers, lets axes count from 0 (a `Rebase` each), and moves
a stage that hangs at an axis which was split or fused later to the loop that this axis has become.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from loopwright.arith import Analyzer, LoadsReplaced, as_stored
from loopwright.ir import Expr, IntImm, IterVar, ProducerLoad, Range, Var, const
from loopwright.ir.operators import cast
from loopwright.te.operation import ComputeOp
from loopwright.te.schedule.errors import CannotInline
from loopwright.te.schedule.graph import BodyRewriter, rewrite_body, with_body
from loopwright.te.schedule.relations import Rebase, Transform, parts_of
from loopwright.te.schedule.schedule_state import ScheduleState
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.stage_state import INLINE, INLINED_ALREADY, SCOPE
from loopwright.te.tensor import Tensor

S = TypeVar("S", bound=ScheduleState)


def normalize(sch: S) -> S:
    """The schedule in its plain form; the one given stays as it is."""
    new = sch.copy()
    for stage in new.stages:
        if stage.attach_type == INLINE:
            _inline(new, stage)
    for stage in [*new.stages, *new.groups]:
        if stage.attach_type == SCOPE and stage.attach_stage is not None and stage.attach_ivar is not None:
            stage.attach_ivar = current_axis(stage.attach_stage, stage.attach_ivar)
    for stage in new.stages:
        _rebase(stage)
    return new


def current_axis(stage: Stage, axis: IterVar) -> IterVar:
    """The loop that an axis has become: the inner one of a split, the whole of a fuse."""
    for relation in stage.relations:
        used, given = parts_of(relation)
        if axis in used and not isinstance(relation, Transform):
            axis = given[-1]
    return axis


class _Inlined(LoadsReplaced, BodyRewriter):
    """Loads of one tensor become its value there."""

    def __init__(self, tensor: Tensor, op: ComputeOp, reader: ComputeOp) -> None:
        super().__init__()
        self.tensor, self.op = tensor, op
        self.count = 0
        self.facts = Analyzer()
        for axis in (*reader.axis, *reader.reduce_axis):
            if axis.dom is not None:
                self.facts.bind(axis.var, axis.dom)

    def visit_ProducerLoad(self, load: ProducerLoad) -> Expr:
        indices = [self.visit(index) for index in load.indices]
        if load.producer is not self.tensor:
            return ProducerLoad(load.producer, tuple(indices))
        self.count += 1
        pairs = zip(self.op.axis, indices, strict=True)
        values: Mapping[Var, Expr] = {axis.var: cast(index, axis.var.dtype) for axis, index in pairs}
        result: Expr = BodyRewriter(values).visit(self.op.body[0])
        return as_stored(result, self.facts)


def _inline(sch: ScheduleState, stage: Stage) -> None:
    op = stage.op
    if not isinstance(op, ComputeOp) or op.num_outputs > 1 or op.reduce_axis:
        raise CannotInline(stage.name, "is no te.compute of one output", "inline such computes only")
    tensor = op.output(0)
    change: dict[Tensor, Tensor] = {}
    for reader in sch.stages:
        if isinstance(reader.op, ComputeOp) and any([read is tensor for read in reader.op.input_tensors]):
            old = reader.op
            new = with_body(old, rewrite_body(old, _Inlined(tensor, op, old)))
            change.update({old.output(k): new.output(k) for k in range(old.num_outputs)})
            sch.set_op(reader, new)
    sch.retarget(change)
    stage.attach_type = INLINED_ALREADY


def _rebase(stage: Stage) -> None:
    """Axes that do not begin at 0 are followed by ones that do."""
    for axis in list(stage.leaf_iter_vars):
        low = axis.dom.min if axis.dom is not None else None
        if low is None or (isinstance(low, IntImm) and low.value == 0) or axis.dom is None:
            continue
        extent = axis.dom.extent
        domain = Range.from_min_extent(const(0, extent.dtype), extent)
        rebased = IterVar(domain, Var(axis.var.name, axis.var.dtype), axis.iter_type)
        stage.leaf_iter_vars[stage.leaf_iter_vars.index(axis)] = rebased
        stage.all_iter_vars.append(rebased)
        stage.relations.append(Rebase(axis, rebased))
        if axis in stage.iter_var_attrs:
            stage.iter_var_attrs[rebased] = stage.iter_var_attrs.pop(axis)
