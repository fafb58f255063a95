"""sort_row: the statements that sort one row of values, in the way that suits its length.

    row = sort_row(ib, n, capacity, lambda i: data[r, i], "float32", is_ascend=True)
    with ib.for_range(0, n, "i") as i:
        out[r, i] = row.key(i)

Sorting is stable: equal keys keep their order, ascending and descending alike. NaN counts as greater than every number:
it comes last ascending, first descending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.ir import Expr, as_expr
from loopwright.ir.ir_builder import IRBuilder
from loopwright.runtime.dtype import DataType
from loopwright.topi.ordering.merge_sort import before, merge_sort
from loopwright.topi.ordering.radix_sort import radix_sort
from loopwright.topi.ordering.sorted_row import SortedRow
from loopwright.topi.parts.sizes import known
from loopwright.topi.types import Dim

_LONG: Final = 2  # times the bits of a key: from here on counting the digits costs less than the merges it spares
_VERY_LONG: Final = 4096  # from here on digits may be large
HAVE_INTEGER_KEYS: Final = frozenset(
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
)


def sort_row(
    ib: IRBuilder,
    count: Dim,
    capacity: Dim,
    load: Callable[[Expr], Expr],
    dtype: DataType | str,
    is_ascend: bool,
    with_places: bool = True,
) -> SortedRow:
    """Sort the `count` keys that `load` gives, of which there are at most `capacity`."""
    kind, most = DataType(dtype), known(capacity)
    long_enough = _LONG * kind.bits
    count, capacity = as_expr(count), as_expr(capacity)
    keys = ib.allocate(kind, (2, capacity), name="keys")
    places = ib.allocate(count.dtype, (2, capacity), name="places") if with_places else None
    half = ib.allocate("int32", (1,), name="half", scope="local")
    row = SortedRow(keys, places, half)
    half[0] = 0
    with ib.for_range(0, count, "i") as i:
        keys[0, i] = load(i)
        if places is not None:
            places[0, i] = i
    comes_before = before(kind, is_ascend)
    if str(kind) not in HAVE_INTEGER_KEYS or (most is not None and most < long_enough):
        merge_sort(ib, row, count, comes_before)
        return row
    is_very_long = most is None or most >= _VERY_LONG
    if known(count) is not None:
        radix_sort(ib, row, count, is_ascend, is_very_long)
        return row
    with ib.if_scope(count < (_VERY_LONG // 4 if is_very_long else long_enough)):
        merge_sort(ib, row, count, comes_before)
    with ib.else_scope():
        radix_sort(ib, row, count, is_ascend, is_very_long)
    return row
