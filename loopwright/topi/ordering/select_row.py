"""select_row: the statements that find the elements of a long row among which its first few are, without sorting it.

    few = candidates(ib, wanted, size, lambda i: data[r, i], "float32", is_ascend=False)

Keys are unsigned integers of the same order (`radix_sort.py`). Their highest digits are counted, which tells the digit
of the last element that is wanted; then the next digits of those that share it, as long as too many do. The elements
that come before all of these, and those that share the digits, are gathered in the order of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loopwright.ir import Expr, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.runtime.dtype import DataType
from loopwright.topi.ordering.radix_sort import key_type, unsigned_key

_DIGIT_BITS: Final = 11
_FEW: Final = 1024  # are sorted in less time than another digit is counted

Load = Callable[[Expr], Expr]


@dataclass(frozen=True)
class Candidates:
    """Elements of a row, in its order, that have the first ones of it among them."""

    keys: BufferVar
    places: BufferVar
    number: Expr


def candidates(ib: IRBuilder, wanted: Expr, size: Expr, load: Load, dtype: DataType, is_ascend: bool) -> Candidates:
    """Those among which the first `wanted` of the `size` elements that `load` gives are."""
    integer, index = key_type(dtype), size.dtype
    counts = ib.allocate(index, (1 << min(_DIGIT_BITS, integer.bits),), name="counts")
    digits = ib.allocate(integer, (1,), name="digits", scope="local")  # of the last wanted one, as far as known
    shift = ib.allocate(integer, (1,), name="shift", scope="local")  # how many bits of it are not
    before = ib.allocate(index, (1,), name="before", scope="local")  # elements whose digits are less
    sharing = ib.allocate(index, (1,), name="sharing", scope="local")  # elements with the same
    before[0] = const(0, index)

    def learn(unknown: int) -> None:
        """Find the next digit, of the elements that share those above the `unknown` bits."""
        width = min(_DIGIT_BITS, unknown)
        rest, is_first = const(unknown - width, integer), unknown == integer.bits
        with ib.for_range(0, 1 << width, "d") as d:
            counts[d] = const(0, index)
        with ib.for_range(0, size, "i") as i:
            key = ib.let("key", unsigned_key(load(i), is_ascend))
            shares = const(True) if is_first else (key >> const(unknown, integer)).equal(digits[0])
            with ib.if_scope(shares):
                at = ib.let("at", cast((key >> rest) & const((1 << width) - 1, integer), index))
                counts[at] = counts[at] + 1
        digit = ib.let("digit", _digit_of_last(ib, counts, before, wanted, (1 << width) - 1))
        sharing[0] = counts[digit]
        digits[0] = cast(digit, integer) if is_first else (digits[0] << const(width, integer)) | cast(digit, integer)
        shift[0] = rest

    learn(integer.bits)
    for unknown in range(integer.bits - _DIGIT_BITS, 0, -_DIGIT_BITS):
        with ib.if_scope(before[0] + sharing[0] > maximum(2 * wanted, _FEW)):
            learn(unknown)
    unknown_bits, last = ib.let("unknown_bits", shift[0]), ib.let("last", digits[0])
    return _gathered(ib, size, load, dtype, lambda value: (unsigned_key(value, is_ascend) >> unknown_bits) <= last)


def _digit_of_last(ib: IRBuilder, counts: BufferVar, before: BufferVar, wanted: Expr, greatest: int) -> Expr:
    """The digit of the last wanted element; `before` then counts the elements with lesser digits as well."""
    digit = ib.allocate(wanted.dtype, (1,), name="digit", scope="local")
    digit[0] = const(0, wanted.dtype)
    here = minimum(maximum(digit[0], 0), greatest)
    with ib.while_loop(all_of(digit[0] < greatest, before[0] + counts[here] < wanted)):
        before[0] = before[0] + counts[here]
        digit[0] = digit[0] + 1
    return here


def _gathered(ib: IRBuilder, size: Expr, load: Load, dtype: DataType, is_one: Callable[[Expr], Expr]) -> Candidates:
    """The elements for which `is_one` holds. Each is written, and the next one over it unless it does: no branch."""
    keys = ib.allocate(dtype, (size,), name="few")
    places = ib.allocate(size.dtype, (size,), name="few_places")
    number = ib.allocate(size.dtype, (1,), name="number", scope="local")
    number[0] = const(0, size.dtype)
    with ib.for_range(0, size, "i") as i:
        value = ib.let("value", load(i))
        free = ib.let("free", minimum(maximum(number[0], 0), size - 1))  # which it is already
        keys[free] = value
        places[free] = i
        number[0] = free + select(is_one(value), const(1, size.dtype), const(0, size.dtype))
    return Candidates(keys, places, ib.let("number", minimum(maximum(number[0], 0), size)))
