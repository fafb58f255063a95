"""AMX on windows: a convolution whose pixels are read where they lie, without a matrix of windows.

    C[f, y, x] += A[f // 16, k0, k1, c // 64, f % 16, c % 64]
                  * D[c // 4, y * sy + k0 * dy, (k1 * dx) % sx, x + (k1 * dx) // sx, c % 4]

D is an image with 4 channels side by side (2 for bfloat16): 16 neighbouring pixels of a line, in as many groups of
channels as a tile has rows, are a tile of the right factor as they lie, for each place of the window. The pixels of a
line are parted by their remainder by the stride (the dimension of remainders is left out for a stride of 1), so that
those which one place of the window meets are neighbours. Weights are the left factor, packed in tiles. Sums stay in
tile registers over the whole window and all channels; 2 × 2 tiles at a time, two of filters by two of pixels:
neighbours in a line, or in two lines. A line is cut into equal tiles, and so are the channels.

    amx_window_<filters>x<lines>x<pixels>_<k0>x<k1>x<channels>_s<sy>x<sx>_d<dy>x<dx>_<types>[_from_zero]

or without lines, on C[f, x], A[f // 16, k1, …] and D[c // 4, …]: amx_window_<filters>x<pixels>_<k1>x<channels>_s<sx>_…
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import NamedTuple

from loopwright.ir import (
    Buffer,
    BufferStore,
    Expr,
    IterType,
    PrimFunc,
    Stmt,
    Var,
    cast,
    const,
    decl_buffer,
    seq,
)
from loopwright.runtime.dtype import DataType
from loopwright.transform.tensor_intrinsics.declare import description, function, load
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin
from loopwright.transform.tensor_intrinsics.x86_amx import FROM_ZERO, KINDS, ROWS, Kind, configured, do, loop, move

_NAME = re.compile(r"amx_window_([\dx]+)_([\dx]+)_s([\dx]+)_d([\dx]+)_([a-z]+\d+[a-z]+\d+[a-z]+\d+)(_from_zero)?")


@dataclass(frozen=True)
class WindowShape:
    """Sizes of a convolution in one or two dimensions: of the result, the window, and how it moves."""

    filters: int
    pixels: tuple[int, ...]
    window: tuple[int, ...]
    channels: int
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.pixels)

    @property
    def is_valid(self) -> bool:
        sizes = (self.filters, self.channels, *self.pixels, *self.window, *self.strides, *self.dilations)
        ranks = {self.rank, len(self.window), len(self.strides), len(self.dilations)}
        return ranks <= {1, 2} and len(ranks) == 1 and min(sizes) >= 1

    def text(self) -> str:
        """As it stands in a name."""
        parts = (self.filters, *self.pixels), (*self.window, self.channels), self.strides, self.dilations
        result, window, strides, dilations = ("x".join(map(str, part)) for part in parts)
        return f"{result}_{window}_s{strides}_d{dilations}"

    def image(self, side: int) -> tuple[int, ...]:
        """The shape of the part of D that takes part."""
        reach = (self.window[-1] - 1) * self.dilations[-1]
        lines = [
            (size - 1) * stride + (window - 1) * dilation + 1
            for size, stride, window, dilation in zip(
                self.pixels[:-1], self.strides[:-1], self.window[:-1], self.dilations[:-1], strict=True
            )
        ]
        parted = [len(self.remainders())] if self.strides[-1] > 1 else []
        return (self.channels // side, *lines, *parted, self.pixels[-1] + reach // self.strides[-1], side)

    def remainders(self) -> range:
        """Of the pixels that places of the window meet, by the stride."""
        met = {index * self.dilations[-1] % self.strides[-1] for index in range(self.window[-1])}
        return range(max(met) + 1)

    def place(self, pixels: list[Expr], window: list[Expr]) -> list[Expr]:
        """The indices of D between channels, for pixels of the result and a place of the window."""
        at = [
            pixel * stride + location * dilation
            for pixel, stride, location, dilation in zip(
                pixels[:-1], self.strides[:-1], window[:-1], self.dilations[:-1], strict=True
            )
        ]
        step, moved = self.strides[-1], window[-1] * self.dilations[-1]
        if step > 1:
            at.append(moved % step)
        return [*at, pixels[-1] + (moved // step if step > 1 else moved)]


def register_named(name: str) -> None:
    """Declare the intrinsic that a name of this family means, if it means one."""
    answer = _NAME.fullmatch(name)
    if answer is None or answer[5] not in KINDS:
        return
    result, window, strides, dilations = (tuple(map(int, answer[k].split("x"))) for k in range(1, 5))
    if len(result) < 2 or len(window) < 2:
        return
    shape = WindowShape(result[0], result[1:], window[:-1], window[-1], strides, dilations)
    if shape.text() in name and is_size(shape, answer[5]):
        amx_window(shape, answer[5], from_zero=bool(answer[6]))


def amx_window(shape: WindowShape, types: str = "s8u8s32", from_zero: bool = False) -> str:
    """The name of the intrinsic for a convolution; registered when first asked for.

    Filters are a multiple of 16; channels one of the 4 (int8) or 2 (bfloat16) that lie side by side, in equal tiles.
    `from_zero`: C need not be there before, its sums begin here.
    """
    if types not in KINDS:
        raise ValueError(f"amx_window: types {types!r} are not one of {', '.join(KINDS)}")
    if not is_size(shape, types):
        raise ValueError(f"amx_window: {shape.text()} is not made of whole tiles of {types}")
    name = f"amx_window_{shape.text()}_{types}{FROM_ZERO if from_zero else ''}"
    if name not in TensorIntrin.known:
        kind, depth = KINDS[types], depth_of_tiles(shape.channels, types)
        described = _description(kind, shape, depth, from_zero)
        TensorIntrin.register(name, described, _implementation(kind, shape, depth, from_zero))
    return name


def depth_of_tiles(channels: int, types: str) -> int:
    """The channels of one tile, when they are cut into the fewest equal ones.

    >>> depth_of_tiles(128, "s8u8s32"), depth_of_tiles(96, "s8u8s32"), depth_of_tiles(12, "s8u8s32")
    (64, 48, 12)
    """
    kind = KINDS[types]
    return ceil(channels / ceil(channels / kind.depth) / kind.side_by_side) * kind.side_by_side


def is_size(shape: WindowShape, types: str) -> bool:
    """Whether there is an intrinsic of that size."""
    if not shape.is_valid or shape.filters % ROWS:
        return False
    return shape.channels % depth_of_tiles(shape.channels, types) == 0


def _buffers(kind: Kind, shape: WindowShape, depth: int, strided: bool) -> tuple[Buffer, Buffer, Buffer]:
    side = kind.side_by_side

    def declared(name: str, dtype: str, extents: tuple[int, ...], inner: tuple[int, ...]) -> Buffer:
        outer = [Var(f"stride{name}{position}", "int32") for position in range(len(extents) - len(inner))]
        strides = (*outer, *[const(step) for step in inner]) if strided else ()
        return decl_buffer(extents, dtype, name, strides=strides, offset_factor=1)

    tiles = (shape.filters // ROWS, *shape.window, shape.channels // depth, ROWS, depth)
    a = declared("A", kind.a, tiles, (depth, 1))
    d = declared("D", kind.b, shape.image(side), (side, 1))
    return a, d, declared("C", kind.c, (shape.filters, *shape.pixels), (1,))


def _description(kind: Kind, shape: WindowShape, depth: int, from_zero: bool) -> PrimFunc:
    a, d, c = _buffers(kind, shape, depth, strided=False)
    side, wide, rank = kind.side_by_side, DataType(kind.c), shape.rank

    def update(f: Var, *at: Var) -> BufferStore:
        pixels, window, (block, channel) = at[:rank], at[rank:-2], at[-2:]
        group = block * (depth // side) + channel // side
        image = load(d, group, *shape.place([*pixels], [*window]), channel % side)
        weight = load(a, f // ROWS, *window, block, f % ROWS, channel)
        return BufferStore(c, load(c, f, *pixels) + cast(weight, wide) * cast(image, wide), (f, *pixels))

    names = ("y", "x")[-rank:]
    axes = [
        ("f", shape.filters, IterType.DataPar),
        *[(name, size, IterType.DataPar) for name, size in zip(names, shape.pixels, strict=True)],
        *[(f"k{name}", size, IterType.CommReduce) for name, size in zip(names, shape.window, strict=True)],
        ("b", shape.channels // depth, IterType.CommReduce),
        ("c", depth, IterType.CommReduce),
    ]
    return description([a, d, c], axes, update, from_zero)


class _Tiles(NamedTuple):
    """Tiles along one axis, so many times: where the first begins, how far apart repetitions are, and their sizes."""

    begin: int
    step: int
    times: int
    sizes: tuple[int, ...]  # one tile, or two next to each other


def _pairs(size: int, tile: int) -> Iterator[_Tiles]:
    """An axis in pairs of tiles, and what is left of it.

    >>> [tuple(tiles) for tiles in _pairs(100, 15)]
    [(0, 30, 3, (15, 15)), (90, 0, 1, (10,))]
    """
    whole = size // (2 * tile)
    if whole:
        yield _Tiles(0, 2 * tile, whole, (tile, tile))
    left = size - whole * 2 * tile
    if left:
        sizes = (tile, left - tile) if left > tile else (left,)
        yield _Tiles(whole * 2 * tile, 0, 1, sizes)


def _singles(size: int, tile: int) -> Iterator[_Tiles]:
    """An axis in tiles one by one, and what is left of it."""
    yield _Tiles(0, tile, size // tile, (tile,))
    if size % tile:
        yield _Tiles(size // tile * tile, 0, 1, (size % tile,))


def _cuts(shape: WindowShape) -> Iterator[tuple[_Tiles, _Tiles, _Tiles]]:
    """Filters, lines and pixels of a line in tiles: pairs of lines where a line is an odd number of tiles."""
    lines = shape.pixels[0] if shape.rank == 2 else 1
    count = ceil(shape.pixels[-1] / ROWS)
    # Tiles of one place of the window begin with a cache line, those of larger windows do not anyway.
    tile = ROWS if shape.window == (1,) else ceil(shape.pixels[-1] / count)
    filters = [*_pairs(shape.filters, ROWS)]
    if lines > 1 and count % 2 == 1:
        yield from product(filters, _pairs(lines, 1), _singles(shape.pixels[-1], tile))
    else:
        yield from product(filters, _singles(lines, 1), _pairs(shape.pixels[-1], tile))


def _implementation(kind: Kind, shape: WindowShape, depth: int, from_zero: bool) -> PrimFunc:
    a, d, c = _buffers(kind, shape, depth, strided=True)
    config = decl_buffer((64,), "uint8", "config", scope="local", data_alignment=64)
    kernel = _Kernel(kind, shape, a, d, c, depth, from_zero)
    body: list[Stmt] = []
    for filters, lines, pixels in _cuts(shape):
        body += _configure(config, kernel, filters.sizes, _right(lines, pixels))
        names = [Var(name, "int32") for name in ("fr", "yr", "xr")]
        cuts = (filters, lines, pixels)
        begin = [name * cut.step + cut.begin for name, cut in zip(names, cuts, strict=True)]
        nest = kernel.tiles(begin, filters.sizes, lines, pixels)
        for name, cut in zip(reversed(names), reversed(cuts), strict=True):
            nest = loop(name, cut.times, nest)
        body += [nest, do("llvm.x86.tilerelease")]
    return function([a, d, c], seq(body), [config])


def _right(lines: _Tiles, pixels: _Tiles) -> tuple[int, ...]:
    """The columns of the tiles of pixels."""
    return pixels.sizes * len(lines.sizes)


def _configure(config: Buffer, kernel: _Kernel, heights: tuple[int, ...], widths: tuple[int, ...]) -> list[Stmt]:
    """Palette 1, then for each tile the bytes of a row and the rows: C is 0 to 3, A 4 and 5, D 6 and 7."""
    bytes_of, values = DataType(kernel.kind.a).nbytes, [0] * 64
    values[0] = 1
    for tile in range(8):
        height = heights[min(tile - 4 if tile in (4, 5) else tile // 2, len(heights) - 1)]
        width = 4 * widths[min(tile % 2, len(widths) - 1)]
        is_image = tile >= 6
        values[16 + 2 * tile] = kernel.depth * bytes_of if tile in (4, 5) else width
        values[48 + tile] = kernel.depth // kernel.kind.side_by_side if is_image else height
    return configured(config, values)


class _Kernel(NamedTuple):
    """The convolution, for one or two tiles of filters by one or two of pixels."""

    kind: Kind
    shape: WindowShape
    a: Buffer
    d: Buffer
    c: Buffer
    depth: int
    from_zero: bool

    def tiles(self, begin: list[Expr], heights: tuple[int, ...], lines: _Tiles, pixels: _Tiles) -> Stmt:
        filter_, line, pixel = begin
        c, rank = self.c, self.shape.rank
        down = [filter_ + sum(heights[:i]) for i in range(len(heights))]
        across = [
            [line + sum(lines.sizes[:i]), pixel + sum(pixels.sizes[:j])][-rank:]
            for i in range(len(lines.sizes))
            for j in range(len(pixels.sizes))
        ]
        start: list[Stmt] = []
        end: list[Stmt] = []
        for (i, row), (j, location) in product(enumerate(down), enumerate(across)):
            tile, cell = 2 * i + j, (row, *location)
            zero = do("llvm.x86.tilezero", const(tile, "int8"))
            start.append(zero if self.from_zero else move("llvm.x86.tileloadd64", tile, c, cell, c.strides[0]))
            end.append(move("llvm.x86.tilestored64", tile, c, cell, c.strides[0]))
        return seq([*start, self._steps([filter_ // ROWS + i for i in range(len(heights))], across), *end])

    def _steps(self, tiles: list[Expr], across: list[list[Expr]]) -> Stmt:
        """Everything that is summed up for these tiles."""
        kind, shape, a, d = self.kind, self.shape, self.a, self.d
        window: list[Expr] = [Var(f"k{k}", "int32") for k in range(shape.rank)]
        block = Var("kc", "int32")
        steps: list[Stmt] = []
        for j, location in enumerate(across):
            at = (block * (self.depth // kind.side_by_side), *shape.place(location, window), 0)
            steps.append(move("llvm.x86.tileloadd64", 6 + j, d, at, d.strides[0]))
        for i, row in enumerate(tiles):
            weights = (row, *window, block, 0, 0)
            steps.append(move("llvm.x86.tileloadd64", 4 + i, a, weights, const(self.depth)))
            for j in range(len(across)):
                numbers = [const(number, "int8") for number in (2 * i + j, 4 + i, 6 + j)]
                steps.append(do(f"llvm.x86.{kind.instruction}", *numbers))
        nest: Stmt = loop(block, shape.channels // self.depth, seq(steps))
        for var, size in zip(reversed(window), reversed(shape.window), strict=True):
            assert isinstance(var, Var)
            nest = loop(var, size, nest)
        return nest
