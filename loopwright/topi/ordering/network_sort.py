"""network_sort: the statements that sort many short rows at once, one in each lane of vectors.

    rows = network_sort(ib, size, lambda lane, i: data[first + lane, i], "float32", is_ascend=True)
    out[first + lane, i] = rows.key(i, lane)

A network compares the same positions whatever the values are: a comparison is the minimum and the maximum of two
vectors, with a row in each lane (`exchange.py`). Keys are integers of the same order. With places, what is compared is
the pair of key and place, so that equal keys keep their order: one integer that holds both where a key has no more than
32 bits, and two otherwise. Rows that lie in memory one after the other are transposed in registers on their way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loopwright.ir import Expr, Ramp, Shuffle, cast, const
from loopwright.ir.intrinsics import isnan, minimum, reinterpret, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.runtime.dtype import DataType
from loopwright.topi.ordering.exchange import exchange, padded
from loopwright.topi.parts.lanes import vector_lanes

_PLACE_BITS: Final = {8: 24, 16: 16, 32: 32}  # in one integer with a key of so many bits
_VERY_SHORT: Final = 8  # rows for whose sake alone a group is not worth its beginning and end
_GROUP_BYTES: Final = 64  # of such rows, at each position
MOST_TURNED: Final = 16  # lanes that are transposed in registers; of narrower types there are few instructions for it

Load = Callable[[Expr, Expr], Expr]  # a lane, a position → an element


@dataclass(frozen=True)
class SortedRows:
    """Rows that have been sorted, one in each lane."""

    ib: IRBuilder
    lanes: int
    cells: BufferVar  # keys, or keys and places in one
    places: BufferVar | None  # where they have cells of their own
    place_bits: int  # at the end of a cell
    from_key: Callable[[Expr], Expr]

    def key(self, at: Expr, lane: Expr) -> Expr:
        """An element of rows that were sorted without places."""
        return self.from_key(self.cells[at, lane])

    def place(self, at: Expr, lane: Expr) -> Expr:
        if self.places is not None:
            return self.places[at, lane]
        cell = self.cells[at, lane]
        return cell & const((1 << self.place_bits) - 1, cell.dtype)

    def blocks(self, first: Expr) -> list[Expr]:
        """For each lane, as many elements from position `first` on as there are lanes: at most `MOST_TURNED`."""
        whole = Ramp(const(0), const(1), self.lanes)
        turned = _transposed(self.ib, [self.cells[first + k, whole] for k in range(self.lanes)])
        return [self.from_key(row) for row in turned]


def num_lanes(dtype: DataType, with_places: bool, size: int) -> int:
    """How many rows of `size` are sorted at once: a vector of them, or several where a row is shorter than one."""
    cell = _cell_type(dtype, with_places)
    return max(vector_lanes(cell), 8 * _GROUP_BYTES // cell.bits if size <= _VERY_SHORT else 0)


def network_sort(
    ib: IRBuilder,
    size: int,
    load: Load,
    dtype: DataType,
    is_ascend: bool,
    with_places: bool = True,
    rows_are_lines: bool = False,
) -> SortedRows:
    """Sort rows of `size` elements, as many as `num_lanes` says; `rows_are_lines` if each lies in one piece."""
    cell, lanes = _cell_type(dtype, with_places), num_lanes(dtype, with_places, size)
    place_bits = _PLACE_BITS.get(max(dtype.bits, 8), 0) if with_places else 0
    room = padded(size, with_places and not place_bits)
    cells = ib.allocate(cell, (room, lanes), name="cells")
    places = ib.allocate("int64", (room, lanes), name="places") if with_places and not place_bits else None
    one = const(1)

    def cell_of(value: Expr, place: Expr) -> Expr:
        wide = cell.with_lanes(value.dtype.lanes)
        key = cast(_signed_key(value, is_ascend, is_exact=not with_places), wide)
        return (key << cast(const(place_bits, cell), wide)) | cast(place, wide) if place_bits else key

    if rows_are_lines and size >= lanes and lanes <= MOST_TURNED:
        whole = Ramp(const(0), one, lanes)
        with ib.for_range(0, -(-size // lanes), "block") as block:
            # The last block goes back so far that it is whole.
            begin = ib.let("begin", minimum(block * lanes, size - lanes) if size % lanes else block * lanes)
            along = Ramp(begin, one, lanes)
            rows = [cell_of(load(const(lane), along), along) for lane in range(lanes)]
            for k, turned in enumerate(_transposed(ib, rows)):
                cells[begin + k, whole] = turned
                if places is not None:
                    places[begin + k, whole] = cast(cast(begin + k, DataType("int64")), DataType(f"int64x{lanes}"))
    else:
        kind = "serial" if rows_are_lines else "vectorize"
        with ib.for_range(0, size, "i") as i, ib.for_range(0, lanes, "lane", kind=kind) as lane:
            cells[i, lane] = cell_of(load(lane, i), i)
            if places is not None:
                places[i, lane] = cast(i, DataType("int64"))
    with ib.for_range(size, room, "i") as i, ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
        cells[i, lane] = const(cell.highest, cell)
        if places is not None:
            places[i, lane] = cast(i, DataType("int64"))
    exchange(ib, size, lanes, cells, places)
    return SortedRows(ib, lanes, cells, places, place_bits, lambda key: _value(key, dtype, is_ascend))


def _transposed(ib: IRBuilder, rows: list[Expr]) -> list[Expr]:
    """As many vectors as they have lanes, rows as columns.

    Each round lays row r and row r + half alternately, as one shuffles a deck of cards in two halves.
    """
    lanes = len(rows)
    rows, half = [ib.let("row", row) for row in rows], lanes // 2
    low, high = ([const(lane // 2 + start + lanes * (lane % 2)) for lane in range(lanes)] for start in (0, half))
    for _ in range(lanes.bit_length() - 1):
        pairs = [(rows[r], rows[r + half]) for r in range(half)]
        rows = [ib.let("turn", Shuffle(pair, tuple(order))) for pair in pairs for order in (low, high)]
    return rows


def _cell_type(dtype: DataType, with_places: bool) -> DataType:
    bits = max(dtype.bits, 8)
    return DataType(f"int{bits + _PLACE_BITS.get(bits, 0) if with_places else bits}")


def _signed_key(value: Expr, is_ascend: bool, is_exact: bool) -> Expr:
    """A signed integer: one element comes before another where its integer is less. NaNs have one, the greatest.

    If it `is_exact`, the element can be had back from it, and -0.0 comes before 0.0; otherwise they are equal.
    """
    kind = value.dtype
    bits = max(kind.bits, 8)
    signed = DataType(f"int{bits}").with_lanes(kind.lanes)
    if kind.is_float:
        pattern = reinterpret(signed, value if is_exact else value + const(0.0, kind))
        ordered = pattern ^ ((pattern >> const(bits - 1, signed)) & const((1 << bits - 1) - 1, signed))
        key = select(isnan(value), reinterpret(signed, const(float("nan"), kind)), ordered)
    elif kind.kind == "uint":
        key = cast(value, signed) ^ const(-(1 << bits - 1), signed)
    else:
        key = cast(value, signed)
    return key if is_ascend else key ^ const(-1, signed)


def _value(key: Expr, dtype: DataType, is_ascend: bool) -> Expr:
    """The element that has this key."""
    signed, dtype = key.dtype, dtype.with_lanes(key.dtype.lanes)
    if not is_ascend:
        key = key ^ const(-1, signed)
    if dtype.is_float:
        bits = dtype.bits
        return reinterpret(dtype, key ^ ((key >> const(bits - 1, signed)) & const((1 << bits - 1) - 1, signed)))
    if dtype.kind == "uint":
        return cast(key ^ const(-(1 << signed.bits - 1), signed), dtype)
    return cast(key, dtype)
