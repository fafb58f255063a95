"""one_to_one: whether a map of indices keeps the elements of a shape apart; its inverse, or two elements that meet.

    lambda i, j: (j // 4, i, j % 4)   on (6, 8)     i = v1, j = v0 * 4 + v2
    lambda i, j: (i % 4, j)           on (6, 8)     (0, 0) and (4, 0) both go to (0, 0)

The inverse is found where the map moves, cuts, joins or reverses indices; it also holds on the cells of a last block
that is not full. Any other map is put to isl: are there two different elements of one image? Sizes may be variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer, detect_iter_map, inverse_affine_iter_map, linear_coefficients
from loopwright.arith.index_map import IndexMap
from loopwright.arith.isl import BudgetExceeded, NotAffine, smallest_point
from loopwright.arith.iter_map import NotInvertible
from loopwright.ir import EQ, NE, Buffer, Expr, IntImm, Node, Range, Var, const, logical_or, substitute, uses_var
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.rewrite.bindings import TRUE


class ElementsMeet(ScheduleError):
    """A layout puts two elements of a buffer into one cell: the later store would overwrite the earlier one.

    The message names two such elements. A layout must keep all elements of the buffer's shape apart: use every digit of
    every index, so `i // 4` beside `i % 4`.

    For example:

        from loopwright import te, tir
        A = te.placeholder((6, 8), name="A")
        B = te.compute((6, 8), lambda i, j: A[i, j] + 1.0, name="B")
        C = te.compute((6, 8), lambda i, j: B[i, j] * 2.0, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.transform_layout("B", ("write", 0), lambda i, j: (i % 4, j))
    """

    code = "LW0270"

    def __init__(self, step: str, mapping: IndexMap, buffer: Buffer, found: Collision, at: Node) -> None:
        first, second = (f"{buffer.name}[{_told(index)}]" for index in (found.first, found.second))
        super().__init__(
            f"{step}: {mapping.text} puts {first} and {second} into one cell, [{_told(found.cell)}]{found.sizes_text}",
            at=at,
            hint="use every digit of every index, as in lambda i, j: (i // 4, j, i % 4)",
            fields={"first": found.first, "second": found.second, "cell": found.cell, "sizes": found.sizes},
        )


def _told(index: Sequence[int]) -> str:
    return ", ".join([str(value) for value in index])


class Collision(NamedTuple):
    """Two elements of one cell, for these sizes."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    cell: tuple[int, ...]
    sizes: dict[str, int]

    @property
    def sizes_text(self) -> str:
        """The sizes in words, where some are variables."""
        if not self.sizes:
            return ""
        return f" (for {', '.join([f'{name} = {value}' for name, value in self.sizes.items()])})"


def find_collision(mapping: IndexMap, sizes: Sequence[Expr]) -> Collision | str | None:
    """The first two elements of the shape that the map puts into one cell; None when there are none.

    A text says why the question stays open.
    """
    pairs = [(Var(var.name, var.dtype), Var(var.name, var.dtype)) for var in mapping.initial_indices]
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    domains = {
        var: Range.from_min_extent(const(0, var.dtype), size.astype(var.dtype))
        for copies in (first, second)
        for var, size in zip(copies, sizes, strict=True)
    }
    here, there = mapping.at(first), mapping.at(second)
    same = [EQ(one, other) for one, other in zip(here, there, strict=True)]
    apart = logical_or(*[NE(one, other) for one, other in pairs]) if pairs else const(False)
    try:
        point = smallest_point(domains, [*same, apart])
    except (NotAffine, BudgetExceeded) as reason:
        return str(reason.problem)
    if point is None:
        return None
    indices = [tuple([point[var] for var in copies]) for copies in (first, second)]
    facts = Analyzer()
    values = {var: const(value, var.dtype) for var, value in point.items()}
    cell = [facts.simplify(substitute(result, values)) for result in here]
    numbers = tuple([index.value for index in cell if isinstance(index, IntImm)])
    return Collision(indices[0], indices[1], numbers, {var.name: point[var] for var in point if var not in domains})


# --- the inverse ---------------------------------------------------------------------------------------------------


def inverse_on(
    mapping: IndexMap, sizes: Sequence[int], axes: Sequence[Var], shape: Sequence[Expr]
) -> dict[Var, Expr] | None:
    """The old indices in terms of the new ones, `axes`, for a map that is one to one on `sizes` and beyond.

    A cell that the map does not reach has an inverse too: it lies outside the sizes, or does not lead back to the cell.
    None when no such inverse is found, though there may be one.
    """
    whole = [max(size, grown) for size, grown in zip(sizes, _whole(mapping, shape), strict=True)]
    for domain in (sizes, whole) if whole != list(sizes) else (sizes,):
        result = _inverse(mapping, domain, axes, shape)
        if result is not None:
            return result
    return None


def outside(
    mapping: IndexMap, inverse: Mapping[Var, Expr], sizes: Sequence[Expr], axes: Sequence[Var], shape: Sequence[Expr]
) -> list[Expr]:
    """Conditions on a cell, one of which holds exactly where the map puts no element into it."""
    facts = Analyzer()
    for axis, extent in zip(axes, shape, strict=True):
        facts.bind(axis, Range.from_min_extent(const(0, axis.dtype), extent))
    old = [inverse[var] for var in mapping.initial_indices]
    result = [index < const(0, index.dtype) for index in old if not facts.can_prove(index >= const(0, index.dtype))]
    result += [index >= size for index, size in zip(old, sizes, strict=True)]
    for axis, cell in zip(axes, mapping.at(old), strict=True):
        if not facts.can_prove_equal(cell, axis):
            result.append(NE(facts.simplify(cell), axis))
    return result


def _whole(mapping: IndexMap, shape: Sequence[Expr]) -> Iterator[int]:
    """How far each index may go before the layout has to grow: the product of the dimensions it alone decides."""
    for var in mapping.initial_indices:
        size = 1
        for result, extent in zip(mapping.final_indices, shape, strict=True):
            if uses_var(result, {var}.__contains__) and isinstance(extent, IntImm):
                size *= extent.value
        yield size


def _inverse(
    mapping: IndexMap, sizes: Sequence[int], axes: Sequence[Var], shape: Sequence[Expr]
) -> dict[Var, Expr] | None:
    domains = {
        var: Range.from_min_extent(const(0, var.dtype), const(size, var.dtype))
        for var, size in zip(mapping.initial_indices, sizes, strict=True)
    }
    # An index that falls as its axes rise is turned round: iteration maps count upwards.
    facts = Analyzer()
    transposed = {
        axis: extent - 1
        for axis, extent, result in zip(axes, shape, mapping.final_indices, strict=True)
        if _falls(result, mapping.initial_indices, facts)
    }
    rising = [
        facts.simplify(transposed[axis] - result) if axis in transposed else result
        for axis, result in zip(axes, mapping.final_indices, strict=True)
    ]
    inverse: dict[Var, Expr] = {}
    if rising:
        answer = detect_iter_map(rising, domains, TRUE, "bijective").indices
        if not answer:
            return None
        try:
            inverse = inverse_affine_iter_map(answer, list(axes))
        except NotInvertible:
            return None
    single = {var: const(0, var.dtype) for var, size in zip(mapping.initial_indices, sizes, strict=True) if size == 1}
    back = {axis: top - axis for axis, top in transposed.items()}
    inverse = {var: substitute(value, back) for var, value in {**single, **inverse}.items()}
    return inverse if all(var in inverse for var in mapping.initial_indices) else None


def _falls(result: Expr, inputs: Sequence[Var], facts: Analyzer) -> bool:
    linear = linear_coefficients(result, list(inputs), facts)
    return linear is not None and any([isinstance(factor, IntImm) and factor.value < 0 for factor in linear[0]])
