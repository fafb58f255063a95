"""Scan loops: running totals along one axis of a tensor, as loops for a CPU.

    rows        each in its order, a few at once: their independent chains hide the latency of one
    columns     neighbouring lines side by side, one in each lane: the totals so far are held in registers where they
                fit, and are otherwise read back from the line of results before

`topi` writes running sums with these. GPU rules write them again, and compare, to know what they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright.arith import simplified_size
from loopwright.ir import Expr, IntImm, const
from loopwright.ir import product as product_of
from loopwright.ir.intrinsics import ceildiv, minimum
from loopwright.ir.ir_builder import BufferVar, IRBuilder

_CHAINS: Final = 4  # rows at once
_TINY: Final = 4  # elements of rows that are written out: vectors of rows are then a few interleaved loads
_HELD: Final = 8  # vectors of totals that stay in registers, however few those are
_STRIP_VECTORS: Final = 64  # of a longer line: the results before are still in L1 when they are added to

Element = Callable[[Sequence[Expr]], Expr]
Join = Callable[[Expr, Expr], Expr]


def product(sizes: Sequence[Expr]) -> Expr:
    """How many elements these sizes are."""
    return simplified_size(product_of(sizes))


def known(value: Expr) -> int | None:
    """The number that a size is; None where it is known only when the program runs."""
    simple = simplified_size(value)
    return int(simple.value) if isinstance(simple, IntImm) else None


def unravelled(flat: Expr, sizes: Sequence[Expr]) -> list[Expr]:
    """The indices of element number `flat` of a tensor of these sizes."""
    if any(known(size) == 0 for size in sizes):
        return [const(0, flat.dtype)] * len(sizes)  # of no elements, none is ever asked for
    indices: list[Expr] = []
    for size in reversed(sizes[1:]):
        indices.append(flat % size)
        flat = flat // size
    return [*([flat] if sizes else []), *reversed(indices)]


def columns_from(sizes: Sequence[Expr]) -> int:
    """The axis from which on lines are columns. Open sizes are in front of it, or its own.

    The indices of a column would be quotients by other open sizes, with which columns cannot be proved to be apart.
    """
    return max((k for k, size in enumerate(sizes) if known(size) is None), default=0)


def along_rows(
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


def across_rows(
    ib: IRBuilder, around: list[Expr], size: Expr, behind: list[Expr], element: Element, out: BufferVar, join: Join,
    first: Expr | None, lanes: int,
) -> None:  # fmt: skip
    """Lines of neighbouring rows, in strips that stay in registers or in L1."""
    inner = columns_from(behind)
    over, behind = [*around, *behind[:inner]], behind[inner:]
    width = product(behind)
    columns = known(width)
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
