"""sort, argsort, topk: rows in order, all of them or the first few.

    values, indices = topi.topk(scores, k=5)

Sorting is stable: equal elements keep their order, ascending and descending alike. NaN counts as greater than every
number, so it comes last ascending and first descending. Rows are sorted in parallel (`sort_row.py`); the few greatest
of a long row are picked in one walk along it instead.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, log2
from typing import Final

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast, logical_and
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import any as any_of
from loopwright.ir.intrinsics import maximum, minimum
from loopwright.ir.ir_builder import IRBuilder, create
from loopwright.runtime.dtype import DataType
from loopwright.te.assumed_sizes import assume
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.ordering.merge_sort import before
from loopwright.topi.ordering.network_sort import num_lanes
from loopwright.topi.ordering.select_row import candidates
from loopwright.topi.ordering.sort_row import HAVE_INTEGER_KEYS, sort_row
from loopwright.topi.ordering.sort_rows import Rows, sort_rows
from loopwright.topi.parts.any_lane import BLOCK, any_lane
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.rows import check_axis, rows_along
from loopwright.topi.parts.sizes import check_same, known
from loopwright.topi.registry import operator
from loopwright.topi.testing import sorting as meaning
from loopwright.topi.types import Dim

# Up to this many elements are picked by insertion from a row whose length is not known: if it is long, nearly all of
# it is turned down by one comparison.
_FEW: Final = 64
_FOUND_AT_A_GLANCE: Final = (1, 2)  # a walk along the row costs less than to sort it, however short it is
_STEP: Final = 0.7  # ns for an element of a walk along a row, see `_are_sooner_sorted`
_INSERTION: Final = 12.0
_STAGE: Final = 0.4  # for an element in each of the lanes, at each stage of a network
_LONG: Final = 2048  # rows from here on are not sorted for the sake of a quarter of them


@operator(reference=meaning.sort, samples=meaning.sort_samples)
def sort(data: te.Tensor, axis: int = -1, is_ascend: bool | int = 1) -> te.Tensor:
    """The elements of each row along `axis` in order."""
    axis = check_axis("sort", data, axis)
    rows, at = rows_along(data.shape, axis)
    size = data.shape[axis]

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])

        def store(row: Expr, i: Expr, key: Expr, place: Expr | None) -> None:
            out[at(row, i)] = key

        every = Rows(
            rows, size, lambda row, i: source[at(row, i)], data.dtype, bool(is_ascend), False, axis == data.ndim - 1
        )
        sort_rows(ib, every, size, store)
        return ib.get()

    result: te.Tensor = te.extern(data.shape, [data], body, name="sort_cpu", tag=default_tag("sort_cpu"))
    return result


@operator(reference=meaning.argsort, samples=meaning.argsort_samples)
def argsort(
    data: te.Tensor,
    valid_count: te.Tensor | None = None,
    axis: int = -1,
    is_ascend: bool | int = 1,
    dtype: str = "float32",
) -> te.Tensor:
    """Where the elements of each row along `axis` are, in order.

    With `valid_count`, one number a row, only that many elements at the beginning of the row are sorted; the places
    after them are their own, and the result is int32.
    """
    axis = check_axis("argsort", data, axis)
    rows, at = rows_along(data.shape, axis)
    size = data.shape[axis]
    if valid_count is not None:
        if not isinstance(valid_count, te.Tensor) or valid_count.ndim != data.ndim - 1:
            raise InvalidShapeError(
                "argsort",
                f"valid_count {valid_count!r} does not have one number for each row of {data.name}",
                "it has the shape of the data without the axis that is sorted",
            )
        around = [extent for k, extent in enumerate(data.shape) if k != axis]
        for k, (extent, own) in enumerate(zip(around, valid_count.shape, strict=True)):
            check_same("argsort", f"dimension {k} of the rows", (data.name, extent), (valid_count.name, own))
        dtype = "int32"

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])

        def store(row: Expr, i: Expr, key: Expr, place: Expr | None) -> None:
            assert place is not None
            out[at(row, i)] = cast(place, DataType(dtype))

        if valid_count is None:
            every = Rows(
                rows, size, lambda row, i: source[at(row, i)], data.dtype, bool(is_ascend), True, axis == data.ndim - 1
            )
            sort_rows(ib, every, size, store)
            return ib.get()
        with ib.for_range(0, rows, "row", kind="parallel") as row:
            around = at(row, 0)
            given = ib.buffer_ptr(ins[1])[(*around[:axis], *around[axis + 1 :])]
            count = ib.let("count", maximum(minimum(cast(given, size.dtype), size), 0))
            in_order = sort_row(ib, count, size, lambda i: source[at(row, i)], data.dtype, bool(is_ascend))
            with ib.for_range(0, count, "i") as i:
                out[at(row, i)] = cast(in_order.place(i), DataType(dtype))
            with ib.for_range(count, size, "i") as i:
                out[at(row, i)] = cast(i, DataType(dtype))
        return ib.get()

    name = "argsort_cpu" if valid_count is None else "argsort_nms_cpu"
    inputs = [data] if valid_count is None else [data, valid_count]
    result: te.Tensor = te.extern(data.shape, inputs, body, name=name, dtype=dtype, tag=default_tag(name))
    return result


@operator(reference=meaning.topk, samples=meaning.topk_samples)
def topk(
    data: te.Tensor,
    k: te.Tensor | Dim = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> te.Tensor | list[te.Tensor]:
    """The first `k` elements of each row along `axis` in order (greatest first unless `is_ascend`), and where they are.

    `k` below 1 is all of them; a tensor of one integer leaves it open until the program runs: the size of the result is
    then a variable that the caller knows, and what `k` gives when it runs must not be more.
    """
    axis = check_axis("topk", data, axis)
    choose("topk", "ret_type", ret_type, ("both", "values", "indices"))
    rows, at = rows_along(data.shape, axis)
    size = data.shape[axis]
    count = _count(k, size)
    shape = [count if position == axis else extent for position, extent in enumerate(data.shape)]
    given = [("values", str(data.dtype)), ("indices", dtype)]
    given = [(what, kind) for what, kind in given if ret_type in (what, "both")]

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source = ib.buffer_ptr(ins[0])
        targets = {what: ib.buffer_ptr(out) for (what, _), out in zip(given, outs, strict=True)}

        def store(row: Expr, i: Expr, key: Expr, location: Expr | None) -> None:
            if "values" in targets:
                targets["values"][at(row, i)] = key
            if location is not None and "indices" in targets:
                targets["indices"][at(row, i)] = cast(location, DataType(dtype))

        with_places = "indices" in targets
        if _is_selected(count, size, data.dtype):
            with ib.for_range(0, rows, "row", kind="parallel") as row:
                few = candidates(ib, count, size, lambda i: source[at(row, i)], data.dtype, is_ascend)
                in_order = sort_row(ib, few.number, size, lambda i: few.keys[i], data.dtype, is_ascend)
                with ib.for_range(0, count, "i") as i:
                    place = ib.let("place", minimum(maximum(in_order.place(i), 0), size - 1))
                    store(row, i, in_order.key(i), few.places[place])
            return ib.get()
        every = Rows(
            rows, size, lambda row, i: source[at(row, i)], data.dtype, is_ascend, with_places, axis == data.ndim - 1
        )
        if not _is_few(count, size) or (every.are_for_lanes and _are_sooner_sorted(count, size, data.dtype)):
            sort_rows(ib, every, minimum(count, size) if known(count) is None else count, store)
            return ib.get()
        with ib.for_range(0, rows, "row", kind="parallel") as row:
            _pick(ib, known(count) or 0, size, lambda i: source[at(row, i)], data.dtype, is_ascend, row, store)
        return ib.get()

    inputs = [data] if not isinstance(k, te.Tensor) else [data, k]
    return te.extern(
        [shape] * len(given),
        inputs,
        body,
        name="topk_cpu",
        dtype=[kind for _, kind in given],
        tag=default_tag("topk_cpu"),
    )


def _count(k: te.Tensor | Dim, size: Expr) -> Expr:
    """How many elements of a row are wanted."""
    if isinstance(k, te.Tensor):
        return te.size_var("k", str(size.dtype))
    number = known(k)
    if number is None:
        assume(logical_and(as_expr(k) >= 0, as_expr(k) <= size), [k, size], "the first to be no larger than the second")
        return cast(as_expr(k), size.dtype)
    if number < 1:
        return size
    length = known(size)
    if length is not None and number > length:
        raise InvalidShapeError("topk", f"k is {number}, but a row has {length} elements", "ask for no more than those")
    if length is None:
        assume(size >= number, [size], f"it at least {number}, for so many are asked for")
    return cast(as_expr(number), size.dtype)


def _is_few(count: Expr, size: Expr) -> bool:
    number, length = known(count), known(size)
    if number is None:
        return False
    if length is None:
        return number <= _FEW
    return length >= max(8 * number, number * number // 2)  # what is inserted moves half of the others


def _are_sooner_sorted(count: Expr, size: Expr, dtype: DataType) -> bool:
    """Whether short rows that are sorted side by side take less time than a walk along each of them.

    In nanoseconds of a row: the walk puts a new element among the first ones count * (1 + ln(size / count)) times, if
    the order is random, and mispredicts a branch each time; a network has stages in the square of the logarithm.
    """
    number, length = known(count), known(size)
    if number is None or length is None or number in _FOUND_AT_A_GLANCE:
        return False
    walk = _STEP * length + _INSERTION * number * (1 + log(length / number))
    return _STAGE * length * log2(length) ** 2 / num_lanes(dtype, True, length) < walk


def _is_selected(count: Expr, size: Expr, dtype: DataType) -> bool:
    """Whether the first ones are looked for by their digits: there are many, but far fewer than the row has."""
    number, length = known(count), known(size)
    if number is None or length is None or str(dtype) not in HAVE_INTEGER_KEYS:
        return False
    return length >= max(_LONG, 4 * number) and not _is_few(count, size)


def _pick(
    ib: IRBuilder,
    count: int,
    size: Expr,
    load: Callable[[Expr], Expr],
    dtype: DataType,
    is_ascend: bool,
    row: Expr,
    store: Callable[[Expr, Expr, Expr, Expr | None], None],
) -> None:
    """Keep the first `count` of a row, in order, while walking along it; each new one moves the later ones up."""
    comes_before = before(dtype, is_ascend)
    index = str(size.dtype)
    keys = ib.allocate(dtype, (count,), name="keys")
    locations = ib.allocate(index, (count,), name="places")
    held = ib.allocate(index, (1,), name="held", scope="local")
    slot = ib.allocate(index, (1,), name="slot", scope="local")
    held[0] = 0

    def offer(i: Expr) -> None:
        key = ib.let("key", load(i))
        with ib.if_scope(any_of(held[0] < count, comes_before(key, keys[count - 1]))):
            # The last one falls out when all places are taken; equal ones stay before the new one.
            slot[0] = minimum(held[0], count - 1)
            with ib.while_loop(all_of(slot[0] > 0, comes_before(key, keys[maximum(slot[0] - 1, 0)]))):
                keys[slot[0]] = keys[slot[0] - 1]
                locations[slot[0]] = locations[slot[0] - 1]
                slot[0] = slot[0] - 1
            keys[slot[0]] = key
            locations[slot[0]] = i
            held[0] = minimum(held[0] + 1, count)

    # The first ones fill the places; from then on blocks are passed over in which none comes before the last that is
    # held, which is nearly all of a long row.
    length, first = known(size), -(-count // BLOCK) * BLOCK
    if length is None or length < 2 * first + BLOCK:
        with ib.for_range(0, size, "i") as i:
            offer(i)
    else:
        with ib.for_range(0, first, "i", dtype=size.dtype) as i:
            offer(i)
        with ib.for_range(first // BLOCK, length // BLOCK, "block", dtype=size.dtype) as block:
            start, last = ib.let("start", block * BLOCK), ib.let("last", keys[count - 1])
            is_any = any_lane(ib, lambda lane: comes_before(load(start + lane), last))
            with ib.if_scope(is_any), ib.for_range(0, BLOCK, "lane", dtype=size.dtype) as lane:
                offer(start + lane)
        with ib.for_range(length // BLOCK * BLOCK, length, "i", dtype=size.dtype) as i:
            offer(i)
    with ib.for_range(0, minimum(held[0], count), "i") as i:
        store(row, i, keys[i], locations[i])
