"""unique_values: the different values of a vector in order, how many there are and how often each stands there.

Where many elements are alike, each is looked up in a table of the values met so far, and only those are sorted. When
they turn out to be too many for the table, all elements are sorted instead: that is known early, unless it does not
matter, as new values have to come often to be that many.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import isnan, maximum, minimum, reinterpret, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.ir.operators import logical_not
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.ordering.merge_sort import before
from loopwright.topi.ordering.radix_sort import key_type
from loopwright.topi.ordering.sort_row import HAVE_INTEGER_KEYS, sort_row
from loopwright.topi.parts.any_lane import BLOCK, any_lane
from loopwright.topi.parts.rows import check_axis
from loopwright.topi.parts.sizes import known
from loopwright.topi.registry import operator
from loopwright.topi.testing import sorting as meaning

_INDEX: Final = DataType("int32")
_COUNT: Final = DataType("int64")
_SURE: Final = 512  # values, from which on their share among the elements says how many are still to come
_MOST: Final = 1 << 16  # values in a table, which has four times as many slots
_SLOTS: Final = 4096  # at first: they fit into L1
_FULL: Final = 3  # bits: a table grows from an eighth of its slots on
_GROWTH: Final = 3  # bits: a table that has become too small gets eight times as many slots
_STRETCH: Final = 32  # blocks between two looks at how full the table is
_FEW: Final = 64  # values, of which hardly any share a home slot
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
            most = _MOST if length is None else min(_MOST, 1 << ((length // 2).bit_length() - 1))
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
    """The different values as they first appear, and how often they do; `total` is more than `most` if there are.

    The table has open addressing. A free slot holds the key of the first element, which therefore is found wherever the
    search for it begins. The table grows while it is more than an eighth full.
    """
    integer = key_type(source.dtype)
    wide = DataType(f"uint{max(integer.bits, 32)}")
    least, greatest = (min(slots, 4 * most).bit_length() - 1 for slots in (_SLOTS, 4 * most))
    room = most + _STRETCH * BLOCK + 1
    table = ib.allocate(integer, (1 << greatest,), name="table")
    numbers = ib.allocate("int32", ((1 << greatest) if with_counts else 1,), name="numbers")  # of the values in slots
    values = ib.allocate(source.dtype, (room,), name="met")
    counts = ib.allocate("int32", (room if with_counts else 1,), name="met_counts")
    bits = ib.allocate("int32", (1,), name="bits", scope="local")  # the table has two to the power of them slots
    slot = ib.allocate("int32", (1,), name="slot", scope="local")
    is_missed = ib.allocate("int32", (1,), name="is_missed", scope="local")
    first = ib.allocate(integer, (1,), name="first", scope="local")

    def home(key: Expr) -> Expr:
        spread = cast(key, wide) * const(_SPREAD[wide.bits], wide)
        # The mask changes nothing, and says that the slot exists.
        return cast(spread >> cast(wide.bits - bits[0], wide), _INDEX) & ((1 << greatest) - 1)

    def clear() -> None:
        with ib.for_range(0, const(1) << bits[0], "i") as i:
            table[i] = first[0]
            if with_counts:
                numbers[i] = 0

    def search(key: Expr) -> None:
        """Leave in `slot` where the key is or, if it is new, a free slot."""
        slot[0] = home(key)
        with ib.while_loop(all_of(logical_not(table[slot[0]].equal(key)), logical_not(table[slot[0]].equal(first[0])))):
            slot[0] = (slot[0] + 1) & ((const(1) << bits[0]) - 1)

    def is_elsewhere(key: Expr) -> Expr:
        return logical_not(table[home(key)].equal(key))

    def enter(key: Expr, number: Expr) -> None:
        table[slot[0]] = key
        if with_counts:
            numbers[slot[0]] = number

    def visit(i: Expr) -> None:
        value = ib.let("value", source[i])
        key = ib.let("key", _identity(value))
        search(key)
        with ib.if_scope(logical_not(table[slot[0]].equal(key))):
            free = ib.let("free", cast(total[0], _INDEX))
            enter(key, free)
            values[free] = value
            if with_counts:
                counts[free] = 0
            total[0] = total[0] + 1
        if with_counts:
            own = ib.let("own", numbers[slot[0]])
            counts[own] = counts[own] + 1

    def grow() -> None:
        bits[0] = minimum(bits[0] + _GROWTH, greatest)
        clear()
        with ib.for_range(1, cast(total[0], _INDEX), "i") as i:
            key = ib.let("key", _identity(values[i]))
            search(key)
            enter(key, i)

    def visit_block(block: Expr) -> None:
        is_missed[0] = 1
        if not with_counts:
            # Few values are nearly always in their home slots: one comparison for all lanes.
            with ib.if_scope(total[0] <= _FEW):
                is_any = any_lane(ib, lambda lane: is_elsewhere(_identity(source[block * BLOCK + lane])))
                is_missed[0] = cast(is_any, _INDEX)
        with ib.if_scope(is_missed[0] > 0), ib.for_range(0, BLOCK, "lane", dtype=size.dtype) as lane:
            visit(block * BLOCK + lane)

    total[0] = const(most + 1, "int64")
    with ib.if_scope(size >= _LONG) if known(size) is None else nullcontext():
        first[0] = _identity(source[0])
        bits[0] = least
        clear()
        values[0] = source[0]
        counts[0] = 0
        total[0] = const(1, "int64")
        whole = size // BLOCK
        with (
            ib.for_range(0, (whole + _STRETCH - 1) // _STRETCH, "stretch") as stretch,
            ib.if_scope(total[0] <= most),
        ):
            with ib.if_scope(all_of(bits[0] < greatest, (cast(total[0], _INDEX) << _FULL) > (const(1) << bits[0]))):
                grow()
            with ib.for_range(stretch * _STRETCH, minimum(stretch * _STRETCH + _STRETCH, whole), "block") as block:
                visit_block(block)
            # Where nearly all elements were new so far, more than half of all are different.
            seen, met = cast(stretch + 1, _COUNT) * (_STRETCH * BLOCK), ib.let("met", total[0])
            with ib.if_scope(all_of(16 * seen >= cast(size, _COUNT), met > _SURE, 16 * met > 15 * seen)):
                total[0] = const(most + 1, "int64")
        with ib.for_range(whole * BLOCK, size, "i") as i, ib.if_scope(total[0] <= most):
            visit(i)
    return values, counts


def _identity(value: Expr) -> Expr:
    """An unsigned integer that is the same for equal values: for 0.0 and -0.0, and for all NaNs."""
    kind, unsigned = value.dtype, key_type(value.dtype)
    if not kind.is_float:
        return cast(value, unsigned)
    pattern = reinterpret(unsigned, value + const(0.0, kind))  # which takes the sign from -0.0
    return select(isnan(value), const((1 << unsigned.bits) - 1, unsigned), pattern)
