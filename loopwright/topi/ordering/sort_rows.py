"""sort_rows: the statements that sort all rows of a tensor and store what comes first of each.

Many short rows are sorted side by side, one in each lane (`network_sort.py`); others one by one (`sort_row.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loopwright.ir import Expr, Ramp, as_expr, cast, const
from loopwright.ir.intrinsics import ceildiv, minimum
from loopwright.ir.ir_builder import IRBuilder
from loopwright.runtime.dtype import DataType
from loopwright.topi.ordering.network_sort import MOST_TURNED, network_sort, num_lanes
from loopwright.topi.ordering.sort_row import HAVE_INTEGER_KEYS, sort_row
from loopwright.topi.parts.lanes import vector_lanes
from loopwright.topi.parts.sizes import known

# How long a row may be: beyond, comparing positions in a fixed order costs more than counting digits.
_SHORT: Final = {8: 64, 16: 4096, 32: 4096, 64: 4096}
_SHORT_WITH_PLACES: Final = {8: 64, 16: 1024, 32: 1024, 64: 256}
_FOR_EACH_BYTE: Final = 128  # of a vector, elements of 32 or 64 bits in rows that fill its lanes, if that is more

Store = Callable[[Expr, Expr, Expr, Expr | None], None]  # a row, a position in order, the element, where it was


@dataclass(frozen=True)
class Rows:
    """What is sorted, and how."""

    number: Expr
    size: Expr
    load: Callable[[Expr, Expr], Expr]  # a row, a position → an element
    dtype: DataType
    is_ascend: bool
    with_places: bool  # where elements were is asked for
    are_lines: bool = False  # the elements of a row lie side by side

    @property
    def are_for_lanes(self) -> bool:
        """Whether the rows are short and many enough to be sorted side by side."""
        number, size = known(self.number), known(self.size)
        limits, bits = _SHORT_WITH_PLACES if self.with_places else _SHORT, max(self.dtype.bits, 8)
        most = limits[bits] if str(self.dtype) in HAVE_INTEGER_KEYS else 0
        if most and bits >= 32 and self.are_lines and not self.with_places and number is not None:
            lanes = vector_lanes(self.dtype)
            if 3 * (-number % lanes) <= number:
                most = max(most, _FOR_EACH_BYTE * lanes * bits // 8)
        if number is None or size is None or not 1 < size <= most:
            return False
        return 2 * number >= max(num_lanes(self.dtype, self.with_places, size), 3)  # fewer would leave most lanes empty


def sort_rows(ib: IRBuilder, rows: Rows, wanted: Expr, store: Store) -> None:
    """Sort the rows, and store the first `wanted` elements of each."""
    if rows.are_for_lanes:
        _side_by_side(ib, rows, wanted, store)
        return
    with ib.for_range(0, rows.number, "row", kind="parallel") as row:
        in_order = sort_row(
            ib, rows.size, rows.size, lambda i: rows.load(row, i), rows.dtype, rows.is_ascend, rows.with_places
        )
        with ib.for_range(0, wanted, "i") as i:
            store(row, i, in_order.key(i), in_order.place(i) if rows.with_places else None)


def _side_by_side(ib: IRBuilder, rows: Rows, wanted: Expr, store: Store) -> None:
    lanes = num_lanes(rows.dtype, rows.with_places, known(rows.size) or 0)
    with ib.for_range(0, ceildiv(rows.number, lanes), "group", kind="parallel") as group:
        # The last group may have fewer rows than lanes: the others sort its last row once more, and store nothing.
        def element(lane: Expr, i: Expr) -> Expr:
            return rows.load(minimum(group * lanes + lane, rows.number - 1), i)

        def is_row(lane: Expr) -> Expr:
            # As a quotient: of a linear condition on `group` the lowering would make two loops over groups.
            return ((group * lanes + lane) // rows.number).equal(0)

        in_order = network_sort(
            ib, known(rows.size) or 0, element, rows.dtype, rows.is_ascend, rows.with_places, rows.are_lines
        )
        count = known(wanted) or 0
        if rows.are_lines and not rows.with_places and lanes <= min(MOST_TURNED, count):
            with ib.for_range(0, -(-count // lanes), "block") as block:
                # The last block goes back so far that it is whole.
                begin = block * lanes if count % lanes == 0 else minimum(block * lanes, count - lanes)
                first = ib.let("first", cast(begin, rows.size.dtype))
                for number, keys in enumerate(in_order.blocks(first)):
                    with ib.if_scope(is_row(const(number, group.dtype))):
                        store(group * lanes + number, Ramp(first, const(1, first.dtype), lanes), keys, None)
            return
        with ib.for_range(0, lanes, "lane") as lane, ib.if_scope(is_row(lane)):
            own = group * lanes + lane
            with ib.for_range(0, wanted, "i") as i:
                if rows.with_places:
                    found = as_expr(in_order.place(i, lane)).astype(rows.size.dtype)
                    place = ib.let("place", minimum(found, rows.size - 1))
                    store(own, i, rows.load(own, place), place)
                else:
                    store(own, i, in_order.key(i, lane), None)
