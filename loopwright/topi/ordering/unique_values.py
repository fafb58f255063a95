"""unique_values: the different values of a vector in order, how many there are and how often each stands there.

Where many elements are alike, each is looked up in a table of the values met so far, and only those are sorted. When
they turn out to be too many for the table, all elements are sorted instead: that is known early, unless it does not
matter, as new values have to come often to be that many.
"""

from __future__ import annotations

from typing import Final

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.ir.operators import logical_not
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.ordering.merge_sort import before
from loopwright.topi.ordering.radix_sort import key_type, unsigned_key
from loopwright.topi.ordering.sort_row import HAVE_INTEGER_KEYS, sort_row
from loopwright.topi.parts.rows import check_axis
from loopwright.topi.parts.sizes import known
from loopwright.topi.registry import operator
from loopwright.topi.testing import sorting as meaning

_INDEX: Final = DataType("int32")
_MOST: Final = 4096  # values in a table, which has four times as many slots: 64 KB
_LONG: Final = 512  # a shorter vector is sorted at once
_SPREAD: Final = {32: 0x9E3779B1, 64: 0x9E3779B97F4A7C15}  # an odd number near the golden section (Knuth's hashing)


@operator(reference=meaning.unique_values, samples=meaning.unique_values_samples)
def unique_values(data: te.Tensor, return_counts: bool = False) -> list[te.Tensor]:
    """[values, num_unique] and, with `return_counts`, how often each value stands there.

    All but `num_unique` (one int32) have the length of the data, and are zero from `num_unique` on. The values ascend;
    NaNs count as one value, and so do 0.0 and -0.0.
    """
    check_axis("unique_values", data, 0)
    if data.ndim != 1:
        raise InvalidShapeError("unique_values", f"the data has shape {shape_text(data.shape)}", "give a vector")
    size, length = data.shape[0], known(data.shape[0])

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source = ib.buffer_ptr(ins[0])
        values, number, *counted = [ib.buffer_ptr(out) for out in outs]
        total = ib.allocate("int64", (1,), name="total", scope="local")
        total[0] = const(0, "int64")
        if str(data.dtype) not in HAVE_INTEGER_KEYS or (length is not None and length < _LONG):
            _sort_all(ib, source, size, values, total, counted)
        else:
            most = _MOST if length is None else min(_MOST, 1 << ((length // 4).bit_length() - 1))
            few = _look_up(ib, source, size, most, total, bool(counted))
            with ib.if_scope(total[0] <= most):
                found = cast(minimum(total[0], most), size.dtype)
                in_order = sort_row(ib, found, most, lambda i: few[0][i], data.dtype, True, with_places=bool(counted))
                with ib.for_range(0, found, "i") as i:
                    values[i] = in_order.key(i)
                    for counts in counted:
                        counts[i] = few[1][minimum(maximum(in_order.place(i), 0), most - 1)]
            with ib.else_scope():
                _sort_all(ib, source, size, values, total, counted)
        with ib.for_range(cast(minimum(total[0], size), size.dtype), size, "i") as i:
            values[i] = const(0, data.dtype)
            for counts in counted:
                counts[i] = 0
        number[0] = cast(total[0], _INDEX)
        return ib.get()

    shapes = [(size,), (1,), *([(size,)] if return_counts else [])]
    types = [str(data.dtype), *["int32"] * (len(shapes) - 1)]
    result: list[te.Tensor] = te.extern(
        shapes, [data], body, name="unique_values", dtype=types, tag=default_tag("unique_values")
    )
    return result


def _sort_all(
    ib: IRBuilder, source: BufferVar, size: Expr, values: BufferVar, total: BufferVar, counted: list[BufferVar]
) -> None:
    """Sort the elements, and keep the first of those that are alike. Each is written to the next free place, and the
    next one over it unless it is new: no branch hangs on what the values are."""
    comes_before = before(source.dtype, True)
    in_order = sort_row(ib, size, size, lambda i: source[i], source.dtype, True, with_places=False)
    total[0] = const(0, "int64")
    for counts in counted:
        with ib.for_range(0, size, "i") as i:
            counts[i] = 0
    with ib.for_range(0, size, "i") as i:
        key = ib.let("key", in_order.key(i))
        is_new = ib.let("is_new", (i < 1) | comes_before(in_order.key(maximum(i - 1, 0)), key))
        free = ib.let("free", total[0])  # at most i
        values[free] = key
        total[0] = free + select(is_new, const(1, "int64"), const(0, "int64"))
        for counts in counted:
            own = ib.let("own", minimum(maximum(total[0] - 1, 0), size - 1))
            counts[own] = counts[own] + 1


def _look_up(
    ib: IRBuilder, source: BufferVar, size: Expr, most: int, total: BufferVar, with_counts: bool
) -> tuple[BufferVar, BufferVar]:
    """The different values as they first appear, and how often they do; `total` is more than `most` if there are."""
    integer = key_type(source.dtype)
    wide = DataType(f"uint{max(integer.bits, 32)}")
    slots = 4 * most
    numbers = ib.allocate("int32", (slots,), name="numbers")  # of the value in a slot, from 1 on; 0 in a free one
    keys = ib.allocate(integer, (most + 1,), name="met_keys")
    values = ib.allocate(source.dtype, (most + 1,), name="met")
    counts = ib.allocate("int32", (most + 1 if with_counts else 1,), name="met_counts")
    at = ib.allocate(size.dtype, (1,), name="at", scope="local")
    slot = ib.allocate("int32", (1,), name="slot", scope="local")
    with ib.for_range(0, slots, "i") as i:
        numbers[i] = 0
    at[0] = const(0, size.dtype)

    def number() -> Expr:
        """Of the value in the slot, less 1."""
        return minimum(numbers[minimum(maximum(slot[0], 0), slots - 1)] - 1, most)

    with ib.while_loop(all_of(at[0] < size, total[0] <= most)):
        value = ib.let("value", source[maximum(minimum(at[0], size - 1), 0)])
        key = ib.let("key", unsigned_key(value, True))
        spread = cast(key, wide) * const(_SPREAD[wide.bits], wide)
        slot[0] = cast(spread >> const(wide.bits - (slots.bit_length() - 1), wide), _INDEX)
        with ib.while_loop(all_of(number() >= 0, logical_not(keys[maximum(number(), 0)].equal(key)))):
            slot[0] = (slot[0] + 1) & (slots - 1)
        with ib.if_scope(number() < 0):
            free = ib.let("free", minimum(cast(total[0], _INDEX), most))  # which it is already
            numbers[minimum(maximum(slot[0], 0), slots - 1)] = free + 1
            keys[free] = key
            values[free] = value
            if with_counts:
                counts[free] = 0
            total[0] = total[0] + 1
        if with_counts:
            own = ib.let("own", maximum(number(), 0))
            counts[own] = counts[own] + 1
        at[0] = at[0] + 1
    return values, counts
