"""rfactor: a reduction in two stages, so that a part of its axis becomes a data axis that can run in parallel.

    B[i] = sum over k of A[i, k]                            ko, ki = s[B].split(k, factor=4); s.rfactor(B, ki)

    B.rf[ki, i] = sum over ko of A[i, ko * 4 + ki]          a data axis for ki
    B.repl[i]   = sum over ki.v of B.rf[ki.v, i]            the original stage

Both combine the same values, in another order and grouping: so the reducer must be associative and commutative, and its
identity change nothing (`analysis/combiner_laws.py` decides, for all values; floats may round differently). Where the
split has a tail, the condition that cuts it off goes with the first stage. `init=` is used by the second stage alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loopwright.analysis.combiner_laws import Combiner, Undecided, absorbs, is_associative, is_commutative
from loopwright.arith import Analyzer
from loopwright.ir import Expr, FloatImm, IntImm, IterType, IterVar, Range, Reduce, Var, const, logical_and
from loopwright.te.axes import ReduceVar, data_axis
from loopwright.te.lower_compute import FOR_FUNCTION
from loopwright.te.operation import ComputeOp
from loopwright.te.schedule.axis_algebra import roots_from_leaves
from loopwright.te.schedule.errors import CannotFactor
from loopwright.te.schedule.graph import BodyRewriter, tensors_in
from loopwright.te.schedule.relations import Fuse, Split, parts_of
from loopwright.te.schedule.schedule_state import ScheduleState
from loopwright.te.schedule.stage import Stage
from loopwright.te.tensor import Tensor


def rfactor(sch: ScheduleState, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
    """The tensor of the first stage, or a list of its tensors where the reduction has several fields."""
    stage = sch[tensor]
    op, reduce = _check(stage, axis)
    rank = len(op.axis) + 1
    if isinstance(factor_axis, bool) or not isinstance(factor_axis, int) or not -rank <= factor_axis < rank:
        raise CannotFactor(
            f"rfactor: factor_axis is {factor_axis!r}, but the new tensor has {rank} dimensions",
            hint=f"give {-rank} to {rank - 1}",
        )
    _check_combiner(stage, reduce)
    location = factor_axis % rank
    sizes = stage.sizes()
    touched = _touched(stage, op, axis)

    # The first stage: its reduce axes are those that the factored one has nothing to do with, and what is left of it.
    factored = data_axis(axis.var.name, sizes[axis])
    rest: dict[IterVar, IterVar] = {}
    for leaf in stage.leaf_iter_vars:
        if leaf in touched and leaf is not axis:
            var = leaf.var if isinstance(leaf.var, ReduceVar) else ReduceVar(leaf.var.name, leaf.var.dtype)
            rest[leaf] = IterVar(Range(sizes[leaf]), var, IterType.CommReduce)
    kept = [root for root in op.reduce_axis if root not in touched]
    values, conditions = roots_from_leaves(
        {axis: factored.var, **{old: new.var for old, new in rest.items()}},
        [relation for relation in stage.relations if parts_of(relation)[0][:1] and parts_of(relation)[0][0] in touched],
        sizes,
    )
    facts = Analyzer()
    renamed: dict[Var, Expr] = {root.var: facts.simplify(values[root]) for root in op.reduce_axis if root in touched}
    data = [IterVar(item.dom, type(item.var)(item.var.name, item.var.dtype), item.iter_type) for item in op.axis]
    renamed.update({old.var: new.var for old, new in zip(op.axis, data, strict=True)})
    rewriter = BodyRewriter(renamed)
    source = tuple([rewriter.visit(value) for value in reduce.source])
    condition = (
        logical_and(*conditions, rewriter.visit(reduce.condition)) if conditions else rewriter.visit(reduce.condition)
    )
    over = (*kept, *rest.values())
    fields = [body.value_index for body in op.body if isinstance(body, Reduce)]
    axes = [*data[:location], factored, *data[location:]]
    if over:
        body: list[Expr] = [Reduce(reduce.combiner, source, over, condition, k) for k in fields]
    else:
        body = _single(reduce, source, condition, fields)
    first = ComputeOp(f"{op.name}.rf", op.tag, op.attrs, axes, body, tensors_in(body))

    # The second stage reduces over what is now a dimension.
    last = IterVar(Range(sizes[axis]), ReduceVar(f"{axis.var.name}.v", axis.var.dtype), IterType.CommReduce)
    own = [item.var for item in op.axis]
    at = [*own[:location], last.var, *own[location:]]
    by_field = {field: first.output(k)(*at) for k, field in enumerate(fields)}
    partial = tuple([by_field[k] for k in range(len(reduce.source))])
    always = const(True)
    final: list[Expr] = [Reduce(reduce.combiner, partial, (last,), always, k, reduce.init) for k in fields]
    attrs = {key: value for key, value in op.attrs.items() if key not in FOR_FUNCTION}
    second = ComputeOp(f"{op.name}.repl", op.tag, attrs, op.axis, final, tensors_in(final))

    result = sch.insert_before(stage, first, stage.group)
    _carry(stage, result, touched)
    old = [op.output(k) for k in range(op.num_outputs)]
    sch.set_op(stage, second)
    stage.reset()
    sch.retarget({gone: second.output(k) for k, gone in enumerate(old)})
    sch.record("rfactor")
    results = [first.output(k) for k in range(first.num_outputs)]
    return results if len(results) > 1 else results[0]


def _check(stage: Stage, axis: IterVar) -> tuple[ComputeOp, Reduce]:
    op = stage.op
    reduce = op.body[0] if isinstance(op, ComputeOp) else None
    if not isinstance(op, ComputeOp) or not isinstance(reduce, Reduce):
        raise CannotFactor(
            f"rfactor: {stage.name} is no reduction", hint="give the tensor of a te.sum, te.max or the like"
        )
    stage._leaf("rfactor", axis)
    if stage.layout_transforms:
        raise CannotFactor(
            f"rfactor: {stage.name} has another layout already",
            hint="call rfactor first, then transform_layout of the stage that shall have it",
        )
    if axis.iter_type is not IterType.CommReduce:
        raise CannotFactor(
            f"rfactor: {axis.var.name} of {stage.name} is a data axis",
            hint=f"give a loop of the reduction over {', '.join([item.var.name for item in op.reduce_axis])}",
        )
    for root in op.reduce_axis:
        low = root.dom.min if root.dom is not None else None
        if not (isinstance(low, IntImm) and low.value == 0):
            raise CannotFactor(
                f"rfactor: the reduce axis {root.var.name} begins at {low}",
                hint="let it count from 0, and add the begin where it is used",
            )
    return op, reduce


def _check_combiner(stage: Stage, reduce: Reduce) -> None:
    """The values may be combined in any order and grouping, and the identity as often as there are partial results."""
    result = reduce.combiner
    combiner = Combiner(tuple(result.lhs), tuple(result.rhs), tuple(result.result))
    start = reduce.init or result.identity_element
    is_literal = all([isinstance(value, (IntImm, FloatImm)) for value in start])
    laws: dict[str, Callable[[], bool]] = {
        "is not commutative": lambda: is_commutative(combiner),
        "is not associative": lambda: is_associative(combiner),
        "has an identity that changes the result": lambda: absorbs(
            combiner, start if is_literal else result.rhs, result.identity_element
        ),
    }
    for problem, law in laws.items():
        try:
            holds = law()
        except Undecided:
            holds, problem = False, "is not known to be commutative and associative"
        if not holds:
            raise CannotFactor(
                f"rfactor: the reducer of {stage.name} {problem}",
                hint="values would be combined in another order and grouping: an argmax breaks ties by the index, of "
                "floats it takes the value with te.max and says with te.isnan which index counts",
            )


def _touched(stage: Stage, op: ComputeOp, axis: IterVar) -> set[IterVar]:
    """The reduce axes that `axis` comes from, and all that comes from those."""
    result = {axis}
    for relation in reversed(stage.relations):
        used, given = parts_of(relation)
        if result.intersection(given):
            result.update(used)
    for relation in stage.relations:
        used, given = parts_of(relation)
        if result.intersection(used):
            result.update([*given, *used])
    data = [item for item in op.axis if item in result]
    if data:
        raise CannotFactor(
            f"rfactor: {axis.var.name} of {stage.name} is made of the data axis {data[0].var.name} as well",
            hint="split and fuse reduce axes among themselves",
        )
    return result


def _carry(old: Stage, new: Stage, touched: set[IterVar]) -> None:
    """What was asked of reduce axes that have nothing to do with the factored one is asked of the new stage."""
    for directive in old.directives:
        if isinstance(directive.what, (Split, Fuse)):
            used, given = parts_of(directive.what)
            if all([axis.iter_type is IterType.CommReduce and axis not in touched for axis in used]):
                location = new.leaf_iter_vars.index(used[0])
                new.leaf_iter_vars[location : location + len(used)] = given
                new.all_iter_vars += given
                new.relations.append(directive.what)
                new.directives.append(directive)


def _single(reduce: Reduce, source: Sequence[Expr], condition: Expr, fields: Sequence[int]) -> list[Expr]:
    """Nothing is left to reduce over in the first stage: it holds each value, or the identity where there is none."""
    from loopwright.ir.intrinsics import if_then_else

    if isinstance(condition, IntImm) and condition.value:
        return [source[k] for k in fields]
    return [if_then_else(condition, source[k], reduce.combiner.identity_element[k]) for k in fields]
