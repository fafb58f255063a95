"""merge_sort: the statements that sort one row of values, stable and in O(n log n), as part of a larger program.

    merge_sort(ib, row, count, before(dtype, is_ascend=True))

Keys and the places they come from move together between the two halves of a workspace, runs of 1, 2, 4, … being merged
from one half into the other. Equal keys keep their order, ascending and descending alike. NaN counts as greater than
every number: it comes last ascending, first descending.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir import Expr
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import any as any_of
from loopwright.ir.intrinsics import isnan, minimum, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.ir.operators import logical_not
from loopwright.runtime.dtype import DataType
from loopwright.topi.ordering.sorted_row import SortedRow

Before = Callable[[Expr, Expr], Expr]


def before(dtype: DataType, is_ascend: bool) -> Before:
    """Whether one key comes strictly before another."""

    def less(a: Expr, b: Expr) -> Expr:
        if dtype.is_float:
            return any_of(a < b, all_of(isnan(b), logical_not(isnan(a))))
        if dtype.kind == "bool":
            return all_of(logical_not(a), b)
        return a < b

    return less if is_ascend else lambda a, b: less(b, a)


def merge_sort(ib: IRBuilder, row: SortedRow, count: Expr, comes_before: Before) -> None:
    """Sort the first `count` elements of the row."""
    width = ib.allocate(count.dtype, (1,), name="width", scope="local")
    width[0] = 1
    with ib.while_loop(width[0] < count):
        source = ib.let("source", row.half[0])
        with ib.for_range(0, (count + 2 * width[0] - 1) // (2 * width[0]), "run") as run:
            low = ib.let("low", run * 2 * width[0])
            middle = ib.let("middle", minimum(low + width[0], count))
            high = ib.let("high", minimum(low + 2 * width[0], count))
            _merge(ib, row.keys, row.places, source, (low, middle, high), comes_before)
        row.half[0] = 1 - row.half[0]
        width[0] = width[0] * 2


def _merge(
    ib: IRBuilder,
    keys: BufferVar,
    locations: BufferVar | None,
    source: Expr,
    run: tuple[Expr, Expr, Expr],
    comes_before: Before,
) -> None:
    """Merge the sorted runs [low, middle) and [middle, high) of one half into the other."""
    low, middle, high = run
    heads = ib.allocate(low.dtype, (2,), name="heads", scope="local")
    heads[0] = low
    heads[1] = middle
    with ib.for_range(low, high, "out") as out:
        left, right = ib.let("left", heads[0]), ib.let("right", heads[1])
        # A run that is used up is read once more at its last place: no branch hangs on what the keys are.
        a = ib.let("a", keys[source, minimum(left, middle - 1)])
        b = ib.let("b", keys[source, minimum(right, high - 1)])
        second = ib.let("second", all_of(right < high, any_of(left >= middle, comes_before(b, a))))
        keys[1 - source, out] = select(second, b, a)
        if locations is not None:
            locations[1 - source, out] = locations[source, select(second, right, left)]
        heads[0] = left + select(second, 0, 1)
        heads[1] = right + select(second, 1, 0)
