"""sort_rows: the statements that sort all rows of a tensor and store what comes first of each.

Many short rows are sorted side by side, one in each lane (`network_sort.py`); others one by one (`sort_row.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.ir import Expr, as_expr
from loopwright.ir.intrinsics import ceildiv, minimum
from loopwright.ir.ir_builder import IRBuilder
from loopwright.runtime.dtype import DataType
from loopwright.topi.ordering.network_sort import network_sort, num_lanes
from loopwright.topi.ordering.sort_row import sort_row
from loopwright.topi.parts.sizes import known

# How long a row may be: beyond, comparing positions in a fixed order costs more than counting digits.
_SHORT: Final = {8: 64, 16: 1024, 32: 1024, 64: 1024}
_SHORT_WITH_PLACES: Final = {8: 64, 16: 256, 32: 256, 64: 64}
_IN_LANES: Final = frozenset("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split())

Load = Callable[[Expr, Expr], Expr]  # a row, a position → an element
Store = Callable[[Expr, Expr, Expr, Expr | None], None]  # a row, a position in order, the element, where it was


def sort_rows(
    ib: IRBuilder,
    num_rows: Expr,
    size: Expr,
    wanted: Expr,
    load: Load,
    store: Store,
    dtype: DataType,
    is_ascend: bool,
    with_places: bool,
) -> None:
    """Sort rows of `size` elements, and store the first `wanted` of each; places only where they are asked for."""
    if is_for_lanes(num_rows, size, dtype, with_places):
        _side_by_side(ib, num_rows, size, wanted, load, store, dtype, is_ascend, with_places)
        return
    with ib.for_range(0, num_rows, "row", kind="parallel") as row:
        in_order = sort_row(ib, size, size, lambda i: load(row, i), dtype, is_ascend, with_places)
        with ib.for_range(0, wanted, "i") as i:
            store(row, i, in_order.key(i), in_order.place(i) if with_places else None)


def is_for_lanes(num_rows: Expr, size: Expr, dtype: DataType, with_places: bool) -> bool:
    """Whether the rows are short and many enough to be sorted side by side."""
    rows, length = known(num_rows), known(size)
    most = (_SHORT_WITH_PLACES if with_places else _SHORT)[max(dtype.bits, 8)] if str(dtype) in _IN_LANES else 0
    if rows is None or length is None or not 1 < length <= most:
        return False
    return 2 * rows >= num_lanes(dtype, with_places)  # fewer would leave most lanes empty


def _side_by_side(
    ib: IRBuilder,
    num_rows: Expr,
    size: Expr,
    wanted: Expr,
    load: Load,
    store: Store,
    dtype: DataType,
    is_ascend: bool,
    with_places: bool,
) -> None:
    lanes = num_lanes(dtype, with_places)
    with ib.for_range(0, ceildiv(num_rows, lanes), "group", kind="parallel") as group:
        # The last group may have fewer rows than lanes: the others sort its last row once more, and store nothing.
        def element(lane: Expr, i: Expr) -> Expr:
            return load(minimum(group * lanes + lane, num_rows - 1), i)

        in_order = network_sort(ib, known(size) or 0, element, dtype, is_ascend, with_places)
        with ib.for_range(0, lanes, "lane") as lane, ib.if_scope(group * lanes + lane < num_rows):
            own = group * lanes + lane
            with ib.for_range(0, wanted, "i") as i:
                if with_places:
                    place = ib.let("place", minimum(as_expr(in_order.place(i, lane)).astype(size.dtype), size - 1))
                    store(own, i, load(own, place), place)
                else:
                    store(own, i, in_order.key(i, lane), None)
