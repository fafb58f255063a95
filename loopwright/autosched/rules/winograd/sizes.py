"""Sizes: the tiles of a convolution by winograd, how it is divided, and whether it pays, all by counting cycles.

Two ways to divide it:

    strips    for some rows of tiles: transform the data, do the products, transform the results. All that lies between
              stays near the core; the transformed weights are read again for each strip.
    phases    transform all data, do all products, transform all results: each weight is read once. Threads share out
              tiles, then pairs of position and channels, then tiles.

Which tile is taken, and whether any, is decided for one core, so that results do not depend on the number of cores; how
it is divided changes no result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from loopwright.autosched.choices import again, alone, pick
from loopwright.autosched.cost import EDGE_OF_EACH_ROW, OVERHEAD, at_once, micro_kernel
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.rules.winograd.allowed import TILES
from loopwright.autosched.rules.winograd.layer import Layer
from loopwright.autosched.tile_search import ONE_AHEAD, cheapest, divisors
from loopwright.schedule.winograd.matrices import MOST_POINTS, Matrix, transforms

DIRECT = 0.83  # of the peak that the direct form reaches, by the same price of a micro-kernel
GAIN = 1.25  # how much faster it must be, by this count, to be worth its rounding
PLENTY = 8 << 20  # bytes of weights that a tile may have for nothing: larger tiles multiply them
DEAR = 1.5  # cycles that a byte beyond these must save against smaller tiles
MOST_BETWEEN = 16 << 20  # bytes of transformed data and results at one time, where smaller strips can keep to that


@dataclass(frozen=True)
class Sizes:
    """The sizes that were chosen, and what they should cost in cycles of one core, or of all that take part."""

    tile: int
    counts: tuple[int, int]  # tiles down and across
    size: int  # positions along one dimension of a tile
    rows: int | None  # rows of tiles in a strip; None for phases
    mr: int
    vectors: int
    lanes: int
    threads: int
    cycles: float
    alone: float  # on one core, however many take part
    direct: float
    memory: float  # what its weights are charged with, in cycles

    @property
    def nr(self) -> int:
        return self.vectors * self.lanes

    @property
    def register_tile(self) -> int:
        return self.mr * self.vectors

    @property
    def gain(self) -> float:
        """How many times as fast as the direct form it is, on one core."""
        return self.direct / self.alone

    def weight_bytes(self, layer: Layer) -> int:
        """What the transformed weights take."""
        return self.size**2 * layer.inputs * layer.outputs * bytes_of(layer.dtype)

    @property
    def uses(self) -> int:
        """How often a transformed weight is used before others take its place."""
        return prod(self.counts) if self.rows is None else self.rows * self.counts[1]


def choose_sizes(layer: Layer, machine: Machine, largest: int) -> Sizes | str:
    """The sizes that cost least, with tiles of at most `largest`; or why there are none."""
    lanes = machine.lanes(layer.dtype)
    high, wide = layer.taps
    if high != wide:
        return f"the window of {high} × {wide} is not square"
    if layer.inputs % lanes or layer.outputs % lanes:
        return f"{layer.inputs} and {layer.outputs} channels do not fill vectors of {lanes}"
    tiles = [tile for tile in TILES if tile <= largest and tile + high - 1 <= MOST_POINTS]
    if not tiles:
        return f"a window of {high} × {wide} leaves too few correct digits"
    with alone():
        of_each = [cheapest(_all(layer, machine, tile, 1)) for tile in tiles]
    best = pick("output tile", of_each, _with_memory)
    threads = machine.threads_for(best.cycles)
    if threads == 1:
        return again(best, lambda: cheapest(_all(layer, machine, best.tile, 1)))
    return cheapest(_all(layer, machine, best.tile, threads))


def _with_memory(sizes: Sizes) -> float:
    return sizes.cycles + sizes.memory


def _all(layer: Layer, machine: Machine, tile: int, threads: int) -> Iterator[Sizes]:
    down = ceil(layer.places[0] / tile)
    strips = divisors(down)
    fitting = [rows for rows in (None, *strips) if _between(layer, tile, threads, rows) <= MOST_BETWEEN]
    for rows in fitting or strips[:1]:
        for mr, vectors in _register_tiles(layer, machine, tile, rows):
            yield _costed(layer, machine, tile, threads, rows, mr, vectors)


def _between(layer: Layer, tile: int, threads: int, rows: int | None) -> int:
    """Bytes of transformed data and results that exist at one time: all of them, or the strips of all threads."""
    down, across = (ceil(locations / tile) for locations in layer.places)
    at_once = layer.images * down if rows is None else rows * min(threads, layer.images * down // rows)
    positions = (tile + layer.taps[0] - 1) ** 2
    return positions * at_once * across * (layer.inputs + layer.outputs) * bytes_of(layer.dtype)


def _register_tiles(layer: Layer, machine: Machine, tile: int, rows: int | None) -> Iterator[tuple[int, int]]:
    """Tiles of sums, of the image's tiles by vectors of channels: in part of a row of the image, or in whole rows."""
    down, across = (ceil(locations / tile) for locations in layer.places)
    rows = rows if rows is not None else down
    heights = [*range(1, across + 1), *[count * across for count in range(2, rows + 1) if rows % count == 0]]
    panels = layer.outputs // machine.lanes(layer.dtype)
    for vectors in (1, 2, 3, 4):
        for mr in heights:
            if mr * vectors + vectors + ONE_AHEAD <= machine.registers and panels % vectors == 0:
                yield mr, vectors


def _costed(layer: Layer, machine: Machine, tile: int, threads: int, rows: int | None, mr: int, vectors: int) -> Sizes:
    built = transforms(tile, layer.taps[0])
    lanes, width = machine.lanes(layer.dtype), bytes_of(layer.dtype)
    counts = (ceil(layer.places[0] / tile), ceil(layer.places[1] / tile))
    count = layer.images * prod(counts)
    together = count if rows is None else rows * counts[1]
    strips = count // together
    positions = built.size**2

    panels = layer.outputs // (lanes * vectors)
    full, rest = divmod(counts[1], mr) if mr < counts[1] else (counts[1] / mr, 0)
    tiles = full * (micro_kernel(machine, mr, vectors, layer.inputs) + 2 * mr * vectors)
    tiles += (micro_kernel(machine, rest, vectors, layer.inputs) + OVERHEAD) if rest else 0.0
    products = count / counts[1] * positions * panels * tiles * (EDGE_OF_EACH_ROW if rest else 1.0)

    moved = together * positions * (layer.inputs + layer.outputs) * width  # transformed data and results of a strip
    weights = positions * layer.inputs * layer.outputs * width
    again = weights / machine.bytes_per_cycle(weights + moved)
    strip = products / strips
    products = at_once(strip, _streamed(weights, machine)) + (strips - 1) * at_once(strip, again, is_cached=True)
    passing = strips * 2 * moved / machine.bytes_per_cycle(moved + moved // 2)  # other things lie beside them

    steps = machine.fma_per_cycle * lanes
    data = 2 * built.size * _operations(built.data) / steps + 2 * positions / lanes
    result = (built.size + tile) * _operations(built.result) / steps + 2 * positions / lanes
    transform = count * (data * layer.inputs + result * layer.outputs)
    overlap = (rows * tile + built.window - 1) / (rows * tile) if rows is not None else built.size / tile
    turned = machine.moves.transposed_copy
    transform += turned * layer.images * prod(layer.places) * (layer.inputs * overlap + layer.outputs)
    if not layer.is_constant:
        transform += layer.inputs * layer.outputs * (machine.element_cycles * built.window**2 + 2 * positions / lanes)

    cycles = alone = products + passing + transform
    if threads > 1:
        tasks = layer.images * counts[0] // rows if rows is not None else positions * panels
        turns = ceil(tasks / threads)
        cycles = cycles / tasks * turns + machine.fork_cycles * (1 if rows is not None else 3)
        if rows is not None:  # every core reads all weights
            cycles += turns * again
    read = layer.inputs * layer.outputs * prod(layer.taps) * width
    direct = at_once(layer.products / steps / DIRECT, _streamed(read, machine))
    memory = DEAR * max(0, weights - PLENTY)
    return Sizes(tile, counts, built.size, rows, mr, vectors, lanes, threads, cycles, alone, direct, memory)


def _streamed(size: int, machine: Machine) -> float:
    """Cycles to read weights that were last used in the call before: those of other layers have come in between."""
    return size / (machine.memory_bytes_per_cycle if size > machine.l2 else machine.l2_bytes_per_cycle)


def _operations(matrix: Matrix) -> int:
    """About how many additions and multiplications a matrix takes: pairs of rows or columns share theirs."""
    terms = sum(1 for row in matrix for number in row if number)
    return terms - len(matrix) // 2
