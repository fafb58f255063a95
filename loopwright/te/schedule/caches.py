"""cache_read and cache_write: a tensor gets a copy in other memory, as a stage of its own.

    C[i] = A[i] + 1          cache_read(A, "shared", [C])        A.shared[i] = A[i];          C[i] = A.shared[i] + 1
    C[i] = A[i] + 1          cache_write(C, "local")             C.local[i] = A[i] + 1;       C[i] = C.local[i]

A copy gives what was copied, so the values stay by construction. Where the stage was split, fused or reordered before
`cache_write`, the new tensor is laid out as those loops run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.arith import Analyzer
from loopwright.ir import Expr, IterType, IterVar, Reduce, Var, const, logical_and
from loopwright.ir.intrinsics import if_then_else
from loopwright.te.axes import data_axis
from loopwright.te.lower_compute import FOR_FUNCTION
from loopwright.te.operation import ComputeOp
from loopwright.te.schedule.axis_algebra import leaves_from_roots, roots_from_leaves
from loopwright.te.schedule.errors import BadScope, CannotCacheWrite, NotAReader, UnknownStage
from loopwright.te.schedule.graph import BodyRewriter, rewrite_body, tensors_in
from loopwright.te.schedule.schedule_state import ScheduleState
from loopwright.te.schedule.stage import Stage
from loopwright.te.tensor import Operation, Tensor
from loopwright.te.tensor_compute import TensorComputeOp


def cache_read(sch: ScheduleState, tensor: Tensor, scope: str, readers: Any) -> Tensor:
    """A copy of `tensor` that `readers` read."""
    _check_scope("cache_read", scope)
    if not isinstance(tensor, Tensor):
        raise UnknownStage(f"cache_read: {tensor!r} is no tensor", [stage.name for stage in sch.stages])
    stage = sch[tensor]
    source = sch.tensor(tensor)
    given = list(readers) if isinstance(readers, (list, tuple)) else [readers]
    if not given:
        raise NotAReader(tensor.name, None, [], sch.readers_of(stage))
    chosen: list[Stage] = []
    for reader in given:
        other = sch[reader]
        if not any([read.same_as(source) for read in other.op.input_tensors]):
            reads = [read.name for read in other.op.input_tensors]
            raise NotAReader(tensor.name, other.name, reads, sch.readers_of(stage))
        chosen.append(other)
    axes = [data_axis(f"ax{k}", size) for k, size in enumerate(source.shape)]
    value = source(*[axis.var for axis in axes])
    copy = ComputeOp(_name(sch, source.name, scope), "", {}, axes, [value], [source])
    # The copy stands right behind what it copies: before every reader.
    after = sch.stages[sch.stages.index(stage) + 1]
    result = sch.insert_before(after, copy, stage.group)
    result.scope = scope
    sch.retarget({source: copy.output(0)}, chosen)
    sch.record("cache_read")
    return copy.output(0)


def cache_write(sch: ScheduleState, tensor: Any, scope: str) -> Tensor | list[Tensor]:
    """The tensor that is computed in place of `tensor`, which becomes a copy of it."""
    _check_scope("cache_write", scope)
    given = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
    if not given or not all(isinstance(item, Tensor) for item in given):
        raise CannotCacheWrite(
            f"cache_write: {tensor!r} is no tensor", hint="give a tensor, or all outputs of one compute"
        )
    stage = sch[given[0]]
    op = _check_outputs(sch, stage, given)
    if stage.layout_transforms:
        raise CannotCacheWrite(
            f"cache_write: {stage.name} has another layout already",
            hint="call cache_write first, then transform_layout of the stage that shall have it",
        )
    if stage.relations or stage.directives or stage.iter_var_attrs:
        cache, copied = _with_layout(sch, stage, op, scope)
    else:
        axes = [
            IterVar(axis.dom, type(axis.var)(f"{axis.var.name}.c", axis.var.dtype), axis.iter_type) for axis in op.axis
        ]
        renamed: dict[Var, Expr] = {old.var: new.var for old, new in zip(op.axis, axes, strict=True)}
        body = rewrite_body(op, BodyRewriter(renamed))
        cache = ComputeOp(_name(sch, op.name, scope), op.tag, op.attrs, axes, body, tensors_in(body))
        copied = tuple([axis.var for axis in op.axis])

    values = [cache.output(k)(*copied) for k in range(op.num_outputs)]
    attrs = {key: value for key, value in op.attrs.items() if key not in FOR_FUNCTION}
    copy = ComputeOp(op.name, op.tag, attrs, op.axis, values, tensors_in(values))
    result = sch.insert_before(stage, cache, stage.group)
    result.scope = scope
    old = [op.output(k) for k in range(op.num_outputs)]
    sch.set_op(stage, copy)
    stage.reset()
    sch.retarget({tensor: copy.output(k) for k, tensor in enumerate(old)})
    results = [cache.output(k) for k in range(cache.num_outputs)]
    sch.record("cache_write")
    return results if isinstance(tensor, (list, tuple)) else results[0]


def _check_outputs(sch: ScheduleState, stage: Stage, given: Sequence[Tensor]) -> ComputeOp:
    op: Operation = stage.op
    if isinstance(op, TensorComputeOp):
        raise CannotCacheWrite(
            f"cache_write: the tiles of {stage.name} are written by the intrinsic {op.intrin.name}",
            hint="write the compute by elements, and use the intrinsic with tensorize",
        )
    if not isinstance(op, ComputeOp):
        raise CannotCacheWrite(
            f"cache_write: {stage.name} is no te.compute",
            hint="an input is copied with cache_read; a scan keeps its state",
        )
    if any([sch[item] is not stage for item in given]):
        names = ", ".join([item.name for item in given])
        raise CannotCacheWrite(f"cache_write: {names} come from different computes", hint="give the outputs of one")
    if {item.value_index for item in given} != set(range(op.num_outputs)):
        raise CannotCacheWrite(
            f"cache_write: {op.name} has {op.num_outputs} outputs, and {len(given)} of them are given",
            hint=f"give all of them: [{', '.join([op.output(k).name for k in range(op.num_outputs)])}]",
        )
    return op


def _with_layout(sch: ScheduleState, stage: Stage, op: ComputeOp, scope: str) -> tuple[ComputeOp, tuple[Expr, ...]]:
    """The cache in the order of the loops of its stage, and where the copy finds an element in it."""
    for axis, attr in stage.iter_var_attrs.items():
        if attr.bind_thread is not None or attr.iter_type is not axis.iter_type:
            raise CannotCacheWrite(
                f"cache_write: {axis.var.name} of {stage.name} is bound or marked already",
                hint="call cache_write first, then bind, vectorize, unroll and parallelize",
            )
    sizes = stage.sizes()
    leaves = [axis for axis in stage.leaf_iter_vars if axis.iter_type is IterType.DataPar]
    data = leaves_from_roots({axis: axis.var for axis in op.axis}, stage.relations, sizes)
    whole = roots_from_leaves({axis: axis.var for axis in leaves}, stage.relations, sizes)[0]
    mixed = [axis for axis in leaves if axis not in data] or [axis for axis in op.axis if axis not in whole]
    if mixed:
        raise CannotCacheWrite(
            f"cache_write: {mixed[0].var.name} of {stage.name} is in one loop with a reduce axis",
            hint="call cache_write before fusing data and reduce axes",
        )
    axes = [data_axis(f"{axis.var.name}.c", sizes[axis]) for axis in leaves]
    new = {leaf: axis.var for leaf, axis in zip(leaves, axes, strict=True)}
    result, conditions = roots_from_leaves(new, stage.relations, sizes)
    facts = Analyzer()
    renamed: dict[Var, Expr] = {axis.var: facts.simplify(result[axis]) for axis in op.axis}
    body = rewrite_body(op, BodyRewriter(renamed))
    if conditions:
        body = _only_where(body, logical_and(const(True), *conditions))
    cache = ComputeOp(_name(sch, op.name, scope), op.tag, op.attrs, axes, body, tensors_in(body))
    return cache, tuple([facts.simplify(data[leaf]) for leaf in leaves])


def _only_where(body: Sequence[Expr], condition: Expr) -> list[Expr]:
    """Cells of the cache that stand for no element compute nothing: a reduction adds nothing there, a value is 0."""
    if all([isinstance(value, Reduce) for value in body]):
        return [
            value.with_(condition=logical_and(condition, value.condition))
            for value in body
            if isinstance(value, Reduce)
        ]
    return [if_then_else(condition, value, const(0, value.dtype)) for value in body]


def _check_scope(step: str, scope: object) -> None:
    if not isinstance(scope, str):
        raise BadScope(f"{step}: the scope is {scope!r}", hint='give a kind of memory: "global", "shared" or "local"')


def _name(sch: ScheduleState, stem: str, scope: str) -> str:
    """The name of the new stage; a L2 of the same kind gets a `.d`."""
    used = {stage.name for stage in sch.stages}
    suffix = f".{scope}" if scope else ".cache"
    while f"{stem}{suffix}" in used:
        stem = f"{stem}.d"
    return f"{stem}{suffix}"
