"""Dots: where both operands run along the reduction, results are tiles of dot products, and nothing is packed.

    C[i, j] += A[i, k] * B[j, k]      few rows: copying B would cost more than reading it once, as it lies
    y[i]    += A[i, k] * x[k]         a matrix times a vector: a tile one result wide

A tile of `rows` × `columns` results has a vector of partial sums for each, or several; a step loads `rows` + `columns`
vectors along the reduction for `rows` · `columns` multiply-adds. In the end the lanes of each sum are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Final

from loopwright.autosched.cost import EDGE, OVERHEAD, SHARED_LOAD, UNALIGNED, on_threads
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.tile_search import ONE_AHEAD, cheapest

TYPES: Final = ("float32", "float64", "int32", "int64")
SIDES: Final = (1, 2, 3, 4, 5, 6, 8)  # of a tile
LANES_AT_END: Final = 4  # sums that are added up one by one, four results at a time
SEVERAL_STREAMS: Final = 1.6  # times as long as one long row takes from beyond L2: prefetchers see shorter runs
ROWS_OF_DOTS: Final = 32  # up to which dot products cost what they are said to
SLOWER_DOTS: Final = 1.35  # times as long as they are said to take, beyond
STOPS_AT_PAGES: Final = 3  # a core's `lookahead`, up to which its prefetcher does not see the next page
SHORTEST: Final = 4  # vectors of a reduction: lanes are added up as fast as less is multiplied
SHORTEST_WIDE: Final = 2  # the same of vectors of eight lanes or more: columns packed across cost more than their lanes
WIDE_LANES: Final = 8


@dataclass(frozen=True)
class DotTiles:
    """The sizes of a product by dot products, and what they should cost in cycles of one core."""

    product: Product  # the result's contiguous axis is the column, if it has more than one element
    rows: int
    columns: int
    vectors: int  # along the reduction, of each result
    lanes: int
    columns_first: bool  # the loop over columns is around the one over rows: B is read once
    threads: int
    cycles: float

    @property
    def width(self) -> int:
        """Steps of the reduction that are done at once."""
        return self.vectors * self.lanes

    @property
    def register_tile(self) -> int:
        return self.rows * self.columns * self.vectors


def runs_along(product: Product) -> bool:
    """Whether both operands and nothing else run along the reduction, so that dot products may be the way."""
    along = product.reduce[-1].var
    operands = (product.row_operand, product.column_operand)
    types = {product.facts.dtype, *[str(operand.buffer.dtype) for operand in operands]}
    sizes = [axis.extent for axis in product.facts.axes]
    return (
        len(types) == 1
        and types <= set(TYPES)
        and all(operand.stride(along) == 1 for operand in operands)
        and None not in sizes
        and product.k > SHORTEST
    )


def choose_dots(product: Product, machine: Machine) -> DotTiles | None:
    """The tiles that cost least; None where the operands do not lie so, or the reduction is too short."""
    lanes = machine.lanes(product.facts.dtype)
    shortest = SHORTEST_WIDE if lanes >= WIDE_LANES else SHORTEST
    if not runs_along(product) or product.k < shortest * lanes:
        return None
    product = _upright(product)
    return cheapest(_costed(product, machine, *tile) for tile in _tiles(product, machine))


def is_asked_for_ahead(product: Product, machine: Machine) -> bool:
    """Whether a matrix that streams from memory past a vector is better left to a reduction, which prefetches it.

    That is so where the hardware's prefetcher stops at the end of a page.
    """
    size = max(product.m, product.n) * product.k * bytes_of(product.facts.dtype) * product.batch
    stops = machine.cpu.microarchitecture.lookahead <= STOPS_AT_PAGES
    return min(product.m, product.n) == 1 and size > machine.l2 and stops


def _upright(product: Product) -> Product:
    """The product with the axis along which results are neighbours as its column."""
    row = product.row
    if product.n > 1 or row is None or product.m == 1 or product.facts.write.stride(row.var) != 1:
        return product
    return replace(
        product,
        row_operand=product.column_operand,
        column_operand=product.row_operand,
        row=product.column,
        column=row,
    )


def _tiles(product: Product, machine: Machine) -> Iterator[tuple[int, int, int]]:
    """Rows × columns × vectors of sums that registers hold beside the vectors of a step."""
    enough = machine.fma_per_cycle * machine.fma_latency
    longest = product.k // machine.lanes(product.facts.dtype)
    for rows in SIDES:
        for columns in SIDES:
            if rows > product.m or columns > product.n:
                continue
            vectors = 1
            while rows * columns * vectors < enough and 2 * SHORTEST * vectors <= longest:
                vectors *= 2
            while vectors > 1 and not _fits(rows, columns * vectors, machine):
                vectors //= 2
            if _fits(rows, columns * vectors, machine):
                yield rows, columns, vectors


def _fits(rows: int, vectors: int, machine: Machine) -> bool:
    """Whether registers hold the sums and the vectors of the columns, by which each row is multiplied in turn."""
    return rows * vectors + vectors + ONE_AHEAD <= machine.registers


def _costed(product: Product, machine: Machine, rows: int, columns: int, vectors: int) -> DotTiles:
    dtype = product.facts.dtype
    m, n, k, lanes, width = product.m, product.n, product.k, machine.lanes(dtype), bytes_of(dtype)
    sums, loads = rows * columns * vectors, (rows + columns) * vectors
    step = max(sums / machine.fma_per_cycle, loads / machine.loads_per_cycle, float(machine.fma_latency))
    step += loads * SHARED_LOAD * (UNALIGNED if k % lanes else 1.0)
    steps = ceil(k / (lanes * vectors))
    pieces = log2(lanes)  # of which fewer lanes than a vector has are made up, and which lanes are added up in
    cut = (loads + sums) * pieces if k % (lanes * vectors) else 0.0
    halvings = pieces + vectors - 1
    end = OVERHEAD + cut + rows * columns * halvings
    # The smaller operand stays near while the larger one passes by once, a strip at a time.
    columns_first = n >= m
    strip, whole = (columns, n) if columns_first else (rows, m)
    others = ceil(m / rows) if columns_first else ceil(n / columns)
    brought = strip * k * width / machine.bytes_per_cycle(whole * k * width * product.batch)
    if strip > 1 and whole * k * width * product.batch > machine.l2:
        brought *= SEVERAL_STREAMS
    near = (m if columns_first else n) * k * width  # read again for every strip
    tile = steps * step + end
    if near > machine.l1 // 2:
        again = (rows if columns_first else columns) * k * width / machine.bytes_per_cycle(near)
        tile = max(tile, again + end)
    waits = end if strip > 1 else 0.0  # one stream goes on while lanes are added up
    one_strip = max(tile, brought + waits) + (others - 1) * tile
    strips = ceil(whole / strip) * product.batch
    threads = machine.threads_for(one_strip * strips)
    cycles = one_strip * whole / strip * product.batch
    cycles = on_threads(machine, one_strip, strips, threads) if threads > 1 else cycles
    cycles *= (EDGE if m % rows else 1.0) * (EDGE if n % columns else 1.0)
    return DotTiles(product, rows, columns, vectors, lanes, columns_first, threads, cycles)
