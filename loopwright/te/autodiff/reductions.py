"""The derivative of a reduction that is no sum: by its combiner, along with the reduction itself.

    B[i] = max over k of A[i, k]         (dB, B) = reduce over k of ((i, k) is the element asked for, A[i, k])
                                         by (d, v) ⊕ (e, w) = (d if v >= w else e, max(v, w))

For each element x that the reduction reads, the values are reduced once more, paired with their derivatives by x.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from loopwright.ir import (
    Add,
    CommReducer,
    Expr,
    FloatImm,
    IterVar,
    Reduce,
    Var,
    const,
    logical_and,
    structural_equal,
    substitute,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.te.autodiff.derivatives import NotDifferentiable, Partial, partials, total
from loopwright.te.axes import reduce_axis
from loopwright.te.compute import compute
from loopwright.te.operation import ComputeOp
from loopwright.te.tensor import Tensor


def is_sum(reduce: Reduce) -> bool:
    """Whether a reduction adds its values up."""
    combiner = reduce.combiner
    if len(combiner.result) != 1 or len(reduce.source) != 1:
        return False
    result, zero = combiner.result[0], combiner.identity_element[0]
    return (
        isinstance(result, Add)
        and {result.a, result.b} == {combiner.lhs[0], combiner.rhs[0]}
        and isinstance(zero, FloatImm)
        and zero.value == 0
    )


class Slopes:
    """What each output of a reduction gains for each element of `tensor`.

    `tensors[k]` is the derivative of output k, over the elements and then those axes of the reduction that do not show
    in the element; `fixed` are the others, with the position in the element's indices where each stands.
    """

    def __init__(self, op: ComputeOp, tensor: Tensor) -> None:
        first = op.body[0]
        assert isinstance(first, Reduce)
        self.op, self.tensor, self.reduce = op, tensor, first
        by_source = [
            partials(source, lambda leaf: getattr(leaf, "producer", None) is tensor) if source.dtype.is_float else []
            for source in first.source
        ]
        self.fixed = _fixed_axes(op, [partial for result in by_source for partial in result])
        self.rest = [axis for axis in op.axis if axis.var not in self.fixed]
        self.tensors = self._compute(by_source)

    def _compute(self, by_source: Sequence[Sequence[Partial]]) -> dict[int, Tensor]:
        reduce, rank = self.reduce, self.tensor.ndim
        floats = [k for k, source in enumerate(reduce.source) if source.dtype.is_float]
        combiner = _paired(reduce.combiner, floats)

        def pair(*indices: Var) -> tuple[Expr, ...]:
            element, rest = indices[:rank], indices[rank:]
            values: dict[Var, Expr] = {axis.var: element[at] for axis, at in self._fixed_pairs()}
            values.update({axis.var: index for axis, index in zip(self.rest, rest, strict=True)})
            axes: list[IterVar] = []
            for axis in reduce.axis:
                assert axis.dom is not None
                low, extent = substitute(axis.dom.min, values), substitute(axis.dom.extent, values)
                axes.append(reduce_axis((low, low + extent), name=axis.var.name))
                values[axis.var] = axes[-1].var
            sources = [_derivative(by_source[k], element, values, reduce.source[k]) for k in floats]
            sources += [substitute(source, values) for source in reduce.source]
            condition = substitute(reduce.condition, values)
            return tuple([Reduce(combiner, tuple(sources), tuple(axes), condition, k, ()) for k in range(len(sources))])

        shape = [*self.tensor.shape, *[axis.dom.extent for axis in self.rest if axis.dom is not None]]
        result = compute(shape, pair, name=f"{self.op.name}.{self.tensor.name}.slope")
        return {k: result[position] for position, k in enumerate(floats)}

    def _fixed_pairs(self) -> list[tuple[IterVar, int]]:
        return [(axis, self.fixed[axis.var]) for axis in self.op.axis if axis.var in self.fixed]

    def output_of(self, value_index: int) -> Tensor | None:
        """The slopes of output `value_index` of the operation."""
        body = self.op.body[value_index]
        assert isinstance(body, Reduce)
        return self.tensors.get(body.value_index)


def check_no_start_value(op: ComputeOp, reduce: Reduce) -> None:
    """Raise NotDifferentiable when a reduction has an init of its own."""
    if reduce.init:
        raise NotDifferentiable(
            f"reduction {op.name} has a start value of its own (init=)",
            "the derivative of a reduction is taken from its combiner and its identity",
            "leave init= out, and combine the start value in a second te.compute",
        )


def _fixed_axes(op: ComputeOp, result: Sequence[Partial]) -> dict[Var, int]:
    """The data axes that stand at one place in the indices of every load, with that place."""
    fixed: dict[Var, int] = {}
    loads = [partial.leaf for partial in result]
    for axis in op.axis:
        for at in range(loads[0].producer.ndim if loads else 0):  # type: ignore[union-attr]
            if all([load.indices[at] is axis.var for load in loads]):  # type: ignore[union-attr]
                fixed[axis.var] = at
                break
    return fixed


def _derivative(result: Sequence[Partial], element: Sequence[Var], values: dict[Var, Expr], source: Expr) -> Expr:
    """The derivative of a value by one element: of all loads of it, those that are at the element."""
    zero = const(0, source.dtype)
    terms: list[Expr] = []
    for partial in result:
        indices = [substitute(index, values) for index in partial.leaf.indices]  # type: ignore[union-attr]
        here = [
            index == at.astype(index.dtype)
            for index, at in zip(indices, element, strict=True)
            if not structural_equal(index, at)
        ]
        for conditions, value in partial.terms:
            under = [*here, *[substitute(condition, values) for condition in conditions]]
            value = substitute(value, values)
            terms.append(if_then_else(logical_and(const(True), *under), value, zero) if under else value)
    return total(terms) if terms else zero


def _paired(combiner: CommReducer, floats: Sequence[int]) -> CommReducer:
    """The combiner of (derivatives…, values…)."""
    sides = [combiner.lhs, combiner.rhs]
    slopes = [{k: Var(f"d{side[k].name}", side[k].dtype) for k in floats} for side in sides]
    results: list[Expr] = []
    for k in floats:
        variables = {side[m]: slope[m] for (side, slope), m in product(zip(sides, slopes, strict=True), floats)}
        terms: list[Expr] = []
        for partial in partials(combiner.result[k], lambda leaf, known=variables: leaf in known):  # type: ignore[misc]
            slope = variables[partial.leaf]  # type: ignore[index]
            for conditions, value in partial.terms:
                term = value * slope
                zero = const(0, term.dtype)
                terms.append(if_then_else(logical_and(const(True), *conditions), term, zero) if conditions else term)
        results.append(total(terms) if terms else const(0, combiner.result[k].dtype))
    lhs, rhs = [(*slope.values(), *side) for side, slope in zip(sides, slopes, strict=True)]
    zeros = [const(0, combiner.result[k].dtype) for k in floats]
    return CommReducer(lhs, rhs, (*results, *combiner.result), (*zeros, *combiner.identity_element))
