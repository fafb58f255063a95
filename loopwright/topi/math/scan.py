"""scan: running sums and products along an axis.

    cumsum([1, 2, 3]) = [1, 3, 6]          exclusive: [0, 1, 3]

Every row along the axis is walked in order, from the first element to the last; the rows run in parallel. Where the
axis is not the last one, neighbouring rows lie side by side in memory and go together, one in each lane: the totals so
far are held in registers where they fit, and are otherwise read back from the line of results before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast, const
from loopwright.ir.intrinsics import ceildiv, minimum
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.ir.operators import add, mul
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.lanes import vector_lanes
from loopwright.topi.parts.row_major import product
from loopwright.topi.parts.rows import check_axis, unravelled
from loopwright.topi.parts.sizes import known
from loopwright.topi.registry import operator
from loopwright.topi.testing import scanning as meaning
from loopwright.topi.types import Scalar

_CHAINS: Final = 4  # rows at once: their independent chains hide the latency of one
_TINY: Final = 4  # elements of rows that are written out: vectors of rows are then a few interleaved loads
_HELD: Final = 8  # vectors of totals that stay in registers, however few those are
_STRIP_VECTORS: Final = 64  # of a longer line: the results before are still in L1 when they are added to

Element = Callable[[Sequence[Expr]], Expr]
Join = Callable[[Expr, Expr], Expr]


@operator(reference=meaning.scanop, samples=meaning.scanop_samples)
def scanop(
    data: te.Tensor,
    binop: Callable[[Expr, Expr], Expr],
    identity_value: Scalar,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Each element joined by `binop` with all before it along `axis`; of all elements in a line when `axis` is None.

    With `exclusive` an element is not part of its own result, and the first result is `identity_value`.
    """
    if not isinstance(data, te.Tensor):
        raise InvalidShapeError(op_name, f"the data is {type(data).__name__} {data!r}, not a tensor", None)
    kind = DataType(dtype or ("int32" if data.dtype.kind == "bool" else data.dtype))
    if axis is None:
        around, size, behind, shape = [], product(data.shape), [], [product(data.shape)]
    else:
        axis = check_axis(op_name, data, axis)
        around, size, behind, shape = (
            list(data.shape[:axis]), data.shape[axis], list(data.shape[axis + 1 :]), list(data.shape)
        )  # fmt: skip
    first = cast(as_expr(identity_value), kind)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])

        def element(index: Sequence[Expr]) -> Expr:
            indices = index if axis is not None else unravelled(index[0], data.shape)
            return cast(source[tuple(indices)], kind)

        def join(total: Expr, value: Expr) -> Expr:
            return cast(as_expr(binop(total, value)), kind)

        if known(product(shape)) == 0:
            return ib.get()
        if not behind or known(product(behind)) == 1:
            _along_rows(ib, around, size, len(behind), element, out, join, first if exclusive else None)
        else:
            _across_rows(ib, around, size, behind, element, out, join, first if exclusive else None)
        return ib.get()

    result: te.Tensor = te.extern([shape], [data], body, name=op_name, dtype=str(kind), tag=default_tag(op_name))
    return result


def _along_rows(
    ib: IRBuilder, around: list[Expr], size: Expr, units: int, element: Element, out: BufferVar, join: Join,
    first: Expr | None,
) -> None:  # fmt: skip
    """Each row in its order, a few at once; `first` is the first result where an element is no part of its own."""
    number = product(around)
    lines = known(number)
    length = known(size)
    is_tiny = length is not None and length <= _TINY
    together = _CHAINS if lines is not None and lines >= _CHAINS and not is_tiny else 1

    def walk(lines: Sequence[Expr]) -> None:
        totals = ib.allocate(out.dtype, (len(lines),), name="totals", scope="local")

        def at(line: Expr, i: Expr) -> list[Expr]:
            return [*unravelled(line, around), i, *[const(0, "int32")] * units]

        def step(i: Expr, value: Callable[[int, Expr], Expr]) -> None:
            for k, line in enumerate(lines):
                totals[k] = value(k, line)
            for k, line in enumerate(lines):
                out[tuple(at(line, i))] = totals[k]

        zero = const(0, size.dtype)
        with ib.if_scope(size > 0):
            step(zero, lambda k, line: element(at(line, zero)) if first is None else first)

        def later(i: Expr) -> None:
            before = i if first is None else i - 1
            step(i, lambda k, line: join(totals[k], element(at(line, before))))

        if is_tiny:
            for place in range(1, length or 0):
                later(const(place, size.dtype))
        else:
            with ib.for_range(1, size, "i") as i:
                later(i)

    with ib.for_range(0, number // together, "group", kind="parallel") as group:
        walk([group * together + k for k in range(together)])
    if together > 1 and (lines or 0) % together:
        with ib.for_range((lines or 0) // together * together, number, "line", kind="parallel") as line:
            walk([line])


def _across_rows(
    ib: IRBuilder, around: list[Expr], size: Expr, behind: list[Expr], element: Element, out: BufferVar, join: Join,
    first: Expr | None,
) -> None:  # fmt: skip
    """Lines of neighbouring rows, in strips that stay in registers or in L1."""
    # The axes in front of the last open size are not part of a strip: the indices of a column would be quotients by
    # open sizes, with which strips cannot be proved to be apart.
    inner = max((k for k, extent in enumerate(behind) if known(extent) is None), default=0)
    over, behind = [*around, *behind[:inner]], behind[inner:]
    width = product(behind)
    columns, lanes = known(width), vector_lanes(out.dtype)
    if columns is not None:
        lanes = min(lanes, 1 << (max(columns, 1).bit_length() - 1))
    in_registers = columns is not None and columns <= _HELD * lanes
    strip = columns if in_registers and columns is not None else _STRIP_VECTORS * lanes
    strips = ceildiv(width, strip)
    with ib.for_range(0, product(over) * strips, "strip", kind="parallel") as number, ib.if_scope(size > 0):
        indices = unravelled(number // strips, over)
        front, middle = indices[: len(around)], indices[len(around) :]
        begin = ib.let("begin", (number % strips) * strip)

        def at(i: Expr, column: Expr) -> list[Expr]:
            return [*front, i, *middle, *unravelled(column, behind)]

        if in_registers:
            assert columns is not None
            _carry_in_registers(ib, columns, lanes, size, at, element, out, join, first)
            return
        end = ib.let("end", minimum(begin + strip, width))

        def line(i: Expr, value: Callable[[list[Expr], list[Expr]], Expr]) -> None:
            vectors = (end - begin) // lanes
            with (
                ib.for_range(0, vectors, "vector") as vector,
                ib.for_range(0, lanes, "lane", kind="vectorize") as lane,
            ):
                column = begin + vector * lanes + lane
                out[tuple(at(i, column))] = value(at(i, column), at(i - 1, column))
            with ib.for_range(begin + vectors * lanes, end, "column") as column:
                out[tuple(at(i, column))] = value(at(i, column), at(i - 1, column))

        line(const(0, size.dtype), lambda here, before: element(here) if first is None else first)
        with ib.for_range(1, size, "i") as i:
            line(i, lambda here, before: join(out[tuple(before)], element(here if first is None else before)))


def _carry_in_registers(
    ib: IRBuilder, columns: int, lanes: int, size: Expr, at: Callable[[Expr, Expr], list[Expr]], element: Element,
    out: BufferVar, join: Join, first: Expr | None,
) -> None:  # fmt: skip
    """All columns at once. The last vector goes back so far that it is whole: what it shares is computed twice."""
    vectors = -(-columns // lanes)
    totals = ib.allocate(out.dtype, (vectors, lanes), name="totals", scope="local")

    def line(i: Expr, value: Callable[[Expr, Expr], Expr]) -> None:
        for vector in range(vectors):
            start = min(vector * lanes, columns - lanes)
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                totals[vector, lane] = value(totals[vector, lane], start + lane)
        for vector in range(vectors):
            start = min(vector * lanes, columns - lanes)
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                out[tuple(at(i, start + lane))] = totals[vector, lane]

    zero = const(0, size.dtype)
    line(zero, lambda total, column: element(at(zero, column)) if first is None else first)
    with ib.for_range(1, size, "i") as i:
        line(i, lambda total, column: join(total, element(at(i if first is None else i - 1, column))))


@operator(reference=meaning.cumsum, samples=meaning.cumsum_samples)
def cumsum(
    data: te.Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> te.Tensor:
    """Running sums along `axis`, in `dtype` (that of the data; bool is counted in int32)."""
    return scanop(data, add, 0, "cumsum_generic", axis, dtype, exclusive)


@operator(reference=meaning.cumprod, samples=meaning.cumprod_samples)
def cumprod(
    data: te.Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> te.Tensor:
    """Running products along `axis`, in `dtype` (that of the data; bool is counted in int32)."""
    return scanop(data, mul, 1, "cumprod_generic", axis, dtype, exclusive)
