"""radix_sort: the statements that sort one long row of values by their digits, stable and in O(n).

    radix_sort(ib, row, count, is_ascend=True, is_long=True)

A key is turned into an unsigned integer of the same order. Its digits, lowest first, decide where the elements go: a
pass counts how many have each digit, and moves them, in order, to where those with that digit begin. A digit that all
elements share costs no pass, so that small integers in wide types take few. The result is that of `merge_sort.py`, and
what is said there of equal keys and NaN holds here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from loopwright.ir import Expr, cast, const
from loopwright.ir.intrinsics import isnan, maximum, minimum, reinterpret, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.runtime.dtype import DataType
from loopwright.topi.ordering.sorted_row import SortedRow

_SMALL_DIGIT: Final = 8
_LARGE_DIGIT: Final = 11  # three passes for 32 bits; counting and adding up 2048 digits pays for rows that are long


def radix_sort(ib: IRBuilder, row: SortedRow, count: Expr, is_ascend: bool, is_long: bool) -> None:
    """Sort the first `count` elements of the row, of which there are some; thousands, where it `is_long`."""
    integer = key_type(row.keys.dtype)
    digit_bits = _LARGE_DIGIT if is_long and integer.bits > 16 else _SMALL_DIGIT
    num_digits = -(-integer.bits // digit_bits)
    # How many elements have each digit, and later, where the next one of them goes.
    starts = ib.allocate(count.dtype, (num_digits, 1 << digit_bits), name="starts")

    def digit(value: Expr, number: int) -> Expr:
        shifted = unsigned_key(value, is_ascend) >> const(number * digit_bits, integer)
        return cast(shifted & const((1 << digit_bits) - 1, integer), count.dtype)

    with ib.for_range(0, num_digits, "p") as p, ib.for_range(0, 1 << digit_bits, "d") as d:
        starts[p, d] = const(0, count.dtype)
    with ib.for_range(0, count, "i") as i:
        value = ib.let("value", row.keys[0, i])
        for number in range(num_digits):
            at = ib.let("digit", digit(value, number))
            starts[number, at] = starts[number, at] + 1
    for number in range(num_digits):  # written out: with one shift for all, passes take a quarter longer
        _move(ib, row, count, starts, number, partial(digit, number=number))


def _move(
    ib: IRBuilder, row: SortedRow, count: Expr, starts: BufferVar, number: int, digit: Callable[[Expr], Expr]
) -> None:
    """One pass, unless all share the digit: an element goes to the next free cell of its digit, in the other half."""
    of_first = ib.let("of_first", digit(row.key(0)))
    with ib.if_scope(starts[number, of_first] < count):
        total = ib.allocate(count.dtype, (1,), name="total", scope="local")
        total[0] = const(0, count.dtype)
        with ib.for_range(0, starts.asobject().shape[1], "d") as d:
            here = ib.let("here", starts[number, d])
            starts[number, d] = total[0]
            total[0] = total[0] + here
        source = ib.let("source", row.half[0])
        with ib.for_range(0, count, "i") as i:
            value = ib.let("value", row.keys[source, i])
            at = ib.let("digit", digit(value))
            start = ib.let("start", starts[number, at])
            starts[number, at] = start + 1
            free = ib.let("free", minimum(maximum(start, 0), count - 1))  # which it is already
            row.keys[1 - source, free] = value
            if row.places is not None:
                row.places[1 - source, free] = row.places[source, i]
        row.half[0] = 1 - source


def key_type(dtype: DataType) -> DataType:
    """The type of the unsigned integers that `unsigned_key` gives."""
    return DataType(f"uint{max(dtype.bits, 8)}")


def unsigned_key(value: Expr, is_ascend: bool) -> Expr:
    """An unsigned integer of as many bits: one key comes before another exactly where its integer is less.

    0.0 and -0.0 have the same one, and every NaN the greatest.
    """
    kind, unsigned = value.dtype, key_type(value.dtype)
    bits = unsigned.bits
    if kind.is_float:
        signed = DataType(f"int{bits}")
        pattern = reinterpret(signed, value + const(0.0, kind))  # which takes the sign from -0.0
        ordered = pattern ^ ((pattern >> const(bits - 1, signed)) & const((1 << bits - 1) - 1, signed))
        ordered = select(isnan(value), const((1 << bits - 1) - 1, signed), ordered)
        key = cast(ordered, unsigned) ^ const(1 << bits - 1, unsigned)
    elif kind.kind == "int":
        key = cast(value, unsigned) ^ const(1 << bits - 1, unsigned)
    else:
        key = cast(value, unsigned)
    return key if is_ascend else key ^ const((1 << bits) - 1, unsigned)
