"""network_sort: the statements that sort many short rows at once, one in each lane of vectors.

    rows = network_sort(ib, size, lanes, lambda lane, i: data[first + lane, i], "float32", is_ascend=True)
    out[first + lane, i] = rows.key(i, lane)

Batcher's merge exchange compares the same positions whatever the values are: a comparison is the minimum and the
maximum of two vectors, with a row in each lane. Keys are integers of the same order. With places, what is compared is
the pair of key and place, so that equal keys keep their order: one integer that holds both where a key has no more than
32 bits, and two otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loopwright.ir import Expr, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import any as any_of
from loopwright.ir.intrinsics import isnan, maximum, minimum, reinterpret, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.runtime.dtype import DataType

LANE_BYTES: Final = 64  # a vector of AVX-512, or four of NEON: enough of them to keep the machine busy
_PLACE_BITS: Final = {8: 24, 16: 16, 32: 32}  # in one integer with a key of so many bits

Load = Callable[[Expr, Expr], Expr]  # a lane, a position → an element


@dataclass(frozen=True)
class SortedRows:
    """Rows that have been sorted, one in each lane."""

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


def num_lanes(dtype: DataType, with_places: bool) -> int:
    """How many rows are sorted at once."""
    return LANE_BYTES // (_cell_type(dtype, with_places).bits // 8)


def network_sort(
    ib: IRBuilder, size: int, load: Load, dtype: DataType, is_ascend: bool, with_places: bool = True
) -> SortedRows:
    """Sort rows of `size` elements, as many as `num_lanes` says."""
    cell, lanes = _cell_type(dtype, with_places), num_lanes(dtype, with_places)
    place_bits = _PLACE_BITS.get(max(dtype.bits, 8), 0) if with_places else 0
    cells = ib.allocate(cell, (size, lanes), name="cells")
    places = ib.allocate("int64", (size, lanes), name="places") if with_places and not place_bits else None
    with ib.for_range(0, lanes, "lane") as lane, ib.for_range(0, size, "i") as i:
        key = cast(_signed_key(load(lane, i), is_ascend, is_exact=not with_places), cell)
        cells[i, lane] = (key << const(place_bits, cell)) | cast(i, cell) if place_bits else key
        if places is not None:
            places[i, lane] = cast(i, DataType("int64"))
    _exchange(ib, size, lanes, cells, places)
    return SortedRows(cells, places, place_bits, lambda key: _value(key, dtype, is_ascend))


def _cell_type(dtype: DataType, with_places: bool) -> DataType:
    bits = max(dtype.bits, 8)
    return DataType(f"int{bits + _PLACE_BITS.get(bits, 0) if with_places else bits}")


def _exchange(ib: IRBuilder, size: int, lanes: int, cells: BufferVar, places: BufferVar | None) -> None:
    """Batcher's network: runs of 1, 2, 4, … are merged, each by comparing positions at distances that halve.

    Positions from `size` on count as greater than all: they stay where they are, so their pairs are left out. The loops
    are not written out: a network of 256 has 36 stages.
    """
    one = const(1, "int32")
    with ib.for_range(0, (size - 1).bit_length(), "level") as level, ib.for_range(0, level + 1, "stage") as stage:
        run = ib.let("run", one << level)
        step = ib.let("step", run >> stage)
        start = ib.let("start", select(stage > 0, step, 0))
        with (
            ib.for_range(0, (const(size - 1, "int32") >> (level + 1)) + 1, "block") as block,
            ib.for_range(0, maximum((one << stage) - 1, 1), "pair") as pair,
            ib.for_range(0, step, "offset") as offset,
        ):
            first = ib.let("first", maximum(block * 2 * run + pair * 2 * step + start + offset, 0))
            second = ib.let("second", maximum(first + step, first))
            with ib.if_scope(second < size):
                _compare(ib, lanes, cells, places, first, second)


def _compare(
    ib: IRBuilder, lanes: int, cells: BufferVar, places: BufferVar | None, first: Expr, second: Expr
) -> None:
    """Of two positions the lesser comes first, in each lane."""
    with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
        a, b = ib.let("a", cells[first, lane]), ib.let("b", cells[second, lane])
        if places is None:
            cells[first, lane] = minimum(a, b)
            cells[second, lane] = maximum(a, b)
            return
        p, q = ib.let("p", places[first, lane]), ib.let("q", places[second, lane])
        swap = ib.let("swap", any_of(b < a, all_of(b.equal(a), q < p)))
        cells[first, lane] = select(swap, b, a)
        cells[second, lane] = select(swap, a, b)
        places[first, lane] = select(swap, q, p)
        places[second, lane] = select(swap, p, q)


def _signed_key(value: Expr, is_ascend: bool, is_exact: bool) -> Expr:
    """A signed integer: one element comes before another where its integer is less. NaNs have one, the greatest.

    If it `is_exact`, the element can be had back from it, and -0.0 comes before 0.0; otherwise they are equal.
    """
    kind = value.dtype
    bits = max(kind.bits, 8)
    signed = DataType(f"int{bits}")
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
    signed = key.dtype
    if not is_ascend:
        key = key ^ const(-1, signed)
    if dtype.is_float:
        bits = dtype.bits
        return reinterpret(dtype, key ^ ((key >> const(bits - 1, signed)) & const((1 << bits - 1) - 1, signed)))
    if dtype.kind == "uint":
        return cast(key ^ const(-(1 << signed.bits - 1), signed), dtype)
    return cast(key, dtype)
