"""trace_apply: the schedule of one workload, for another whose anchor block is the same.

What is fused around the block differs: an epilogue more or less. Steps about blocks that are not there are left out;
element-wise blocks that the trace does not name are inlined; one that is left over runs in parallel.
"""

from __future__ import annotations

from typing import Any

from loopwright.meta_schedule.block_questions import is_output, is_spatial, realize_of, works
from loopwright.meta_schedule.schedule_rule import AutoInline
from loopwright.schedule import BlockRV, Schedule, Trace
from loopwright.schedule.analysis import has_block
from loopwright.schedule.trace.calls import every_handle
from loopwright.target import Target

_INLINES = {"ComputeInline": "compute_inline", "ReverseComputeInline": "reverse_compute_inline"}


def schedule_using_anchor_trace(sch: Schedule, anchor_trace: Trace, target: Target) -> None:
    """Do the steps of `anchor_trace` on `sch`, as far as they are about blocks that it has."""
    _inline_others(sch, anchor_trace)
    names, before = _names(sch), sch.copy()
    _apply(sch, anchor_trace)
    left = [name for name in names if name in _names(sch) and not _is_scheduled(sch, before, name)]
    for name in left[:1]:
        block = sch.get_block(name)
        if len(sch.get_producers(block)) == 1 and works(sch, "reverse_compute_inline", block):
            sch.reverse_compute_inline(block)
        elif str(target.kind) == "llvm":
            sch.parallel(sch.fuse(*sch.get_loops(block)))


def _inline_others(sch: Schedule, trace: Trace) -> None:
    """Inline the element-wise blocks that the trace does not name, the last one when all others are done."""
    named = {str(inst.attrs["name"]) for inst in trace.insts if str(inst.kind) == "GetBlock"}
    rule = AutoInline(True, True, True, False, False, False)
    last: list[BlockRV] = []
    for name in _names(sch):
        block = sch.get_block(name)
        if name in named or not is_spatial(realize_of(sch, block).block):
            continue
        if is_output(sch, block):
            last = [block]
        else:
            rule.apply(sch, block)
    for block in last:
        rule.apply(sch, block)


def _apply(sch: Schedule, trace: Trace) -> None:
    known: dict[int, Any] = {}  # by id: an ExprRV is an int, and two samples may be equal
    foreign: set[int] = set()  # handles of what the schedule does not have
    for position, inst in enumerate(trace.insts):
        kind = str(inst.kind)
        used = [id(handle) for values in (inst.inputs, inst.attrs) for handle in every_handle(values)]
        is_missing = kind == "GetBlock" and not has_block(sch, str(inst.attrs["name"]))
        if is_missing or any(one in foreign for one in used):
            foreign.update(id(output) for output in inst.outputs)
            continue
        inputs = {name: _translated(value, known) for name, value in inst.inputs.items()}
        attrs = {name: _translated(value, known) for name, value in inst.attrs.items()}
        if kind in _INLINES:
            _inline(sch, inputs["block"], _INLINES[kind])
            continue
        outputs = sch.run_instruction(inst.kind, inputs, attrs, trace.decisions.get(position))
        # A root with more blocks than the trace knows has them at the end.
        known.update({id(old): new for old, new in zip(inst.outputs, outputs, strict=False)})


def _inline(sch: Schedule, block: BlockRV, step: str) -> None:
    """The step, or the other direction where a block has other neighbours here."""
    (other,) = [name for name in _INLINES.values() if name != step]
    getattr(sch, step if works(sch, step, block) else other)(block)


def _translated(value: Any, known: dict[int, Any]) -> Any:
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, (list, tuple)):
        return type(value)([_translated(one, known) for one in value])
    return value


def _names(sch: Schedule) -> list[str]:
    return [name for view in sch.views().values() for name in view.block_names() if name != "root"]


def _is_scheduled(sch: Schedule, before: Schedule, name: str) -> bool:
    """Whether the loops around a block are others than before."""
    now = [sch.get(loop) for loop in sch.get_loops(sch.get_block(name))]
    then = [before.get(loop) for loop in before.get_loops(before.get_block(name))]
    return len(now) != len(then) or any(one.kind is not other.kind for one, other in zip(now, then, strict=True))
