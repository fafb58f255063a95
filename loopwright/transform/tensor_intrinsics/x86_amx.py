"""AMX: tiles of 16 rows of 64 bytes, and the product of two tiles added to a third.

    C[16 × 16] int32   += A[16 × 64] int8 · B[64 × 16] int8          (tdpbssd, tdpbusd, tdpbsud, tdpbuud)
    C[16 × 16] float32 += A[16 × 32] bfloat16 · B[32 × 16] bfloat16  (tdpbf16ps)

A tile of B holds 4 bytes of the reduction side by side: [k // 4, j, k % 4] for int8, [k // 2, j, k % 2] for bfloat16;
so B is packed like that, with tiles of 16 columns. A and C may have any row stride. `amx_dot` makes the intrinsic for
larger blocks: for each pair of columns of tiles and each pair of rows, 2 × 2 tiles of C stay in tile registers while
the reduction runs, which loads half as much per product; tiles are configured once for all of them, and once more for
rows that are left over. (Intel SDM volume 1, chapter 18.)
The process needs the kernel's permission to use tiles; building a program that uses them asks for it.
tdpbf16ps adds the products of each pair exactly, in an order of its own, and treats subnormals as zero: its sums differ
from those of the description by rounding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from loopwright.ir import (
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    ForKind,
    IterType,
    PrimFunc,
    Stmt,
    Var,
    cast,
    const,
    decl_buffer,
    seq,
)
from loopwright.ir.intrinsics import address_of, call_llvm_intrin
from loopwright.runtime.dtype import DataType
from loopwright.transform.tensor_intrinsics.declare import description, function, load
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin, declaring

ROWS = 16  # of a tile
ROW_BYTES = 64
PAIR = 2 * ROWS
FROM_ZERO = "_from_zero"


class Kind(NamedTuple):
    """An instruction, and what it multiplies."""

    instruction: str
    a: str
    b: str
    c: str

    @property
    def side_by_side(self) -> int:
        """Elements of the reduction in 4 bytes."""
        return 4 // DataType(self.a).nbytes

    @property
    def depth(self) -> int:
        """The reduction of one instruction."""
        return ROW_BYTES // DataType(self.a).nbytes


KINDS = {
    "s8s8s32": Kind("tdpbssd", "int8", "int8", "int32"),
    "u8s8s32": Kind("tdpbusd", "uint8", "int8", "int32"),
    "s8u8s32": Kind("tdpbsud", "int8", "uint8", "int32"),
    "u8u8s32": Kind("tdpbuud", "uint8", "uint8", "int32"),
    "bf16bf16f32": Kind("tdpbf16ps", "bfloat16", "bfloat16", "float32"),
}


def register() -> None:
    """Declare the intrinsics of one tile."""
    for types in ("s8s8s32", "u8s8s32", "bf16bf16f32"):
        amx_dot(16, 16, KINDS[types].depth, types)


def register_named(name: str) -> None:
    """Declare the intrinsic that a name of this family means, if it means one."""
    result = re.fullmatch(r"amx_dot_(\d+)x(\d+)x(\d+)_(\w+?)(_from_zero)?", name)
    if result is None or result[4] not in KINDS:
        return
    m, n, k = int(result[1]), int(result[2]), int(result[3])
    if _is_size(KINDS[result[4]], m, n, k):
        amx_dot(m, n, k, result[4], from_zero=bool(result[5]))


def amx_dot(m: int, n: int, k: int, types: str = "u8s8s32", from_zero: bool = False) -> str:
    """The name of the intrinsic for m × n results and a reduction of k; registered when first asked for.

    `n` is a multiple of 16, `k` one of 64 (int8) or 32 (bfloat16). Its parameters are A[m, k], B[n / 16, k / 4, 16, 4]
    (without the first dimension for n = 16; k / 2 and 2 for bfloat16) and C[m, n]. `from_zero`: C need not be there
    before, its sums begin here.
    """
    if types not in KINDS:
        raise ValueError(f"amx_dot: types {types!r} are not one of {', '.join(KINDS)}")
    kind = KINDS[types]
    if not _is_size(kind, m, n, k):
        message = f"m is at least 1, n a multiple of 16 and k a multiple of {kind.depth}"
        raise ValueError(f"amx_dot: {message}; got {m}, {n}, {k}")
    name = f"amx_dot_{m}x{n}x{k}_{types}{FROM_ZERO if from_zero else ''}"
    if name not in TensorIntrin.known:
        desc = _description(kind, m, n, k, from_zero)
        with declaring("x86_amx"):
            TensorIntrin.register(name, desc, _implementation(kind, m, n, k, from_zero))
    return name


def _is_size(kind: Kind, m: int, n: int, k: int) -> bool:
    return m >= 1 and n >= ROWS and n % ROWS == 0 and k >= kind.depth and k % kind.depth == 0


def _buffers(kind: Kind, m: int, n: int, k: int, strided: bool) -> tuple[Buffer, Buffer, Buffer]:
    packed = (k // kind.side_by_side, ROWS, kind.side_by_side)
    shape = packed if n == ROWS else (n // ROWS, *packed)

    def strides(name: str, rank: int, free: int) -> dict[str, Any]:
        if not strided:
            return {}
        inner = [1, kind.side_by_side, ROWS * kind.side_by_side] if name == "B" else [1]
        outer = [Var(f"stride{name}{position}", "int32") for position in range(free)]
        return {"strides": (*outer, *[const(size) for size in reversed(inner[: rank - free])])}

    a = decl_buffer((m, k), kind.a, "A", offset_factor=1, **strides("A", 2, 1))
    b = decl_buffer(shape, kind.b, "B", offset_factor=1, **strides("B", len(shape), len(shape) - 3))
    c = decl_buffer((m, n), kind.c, "C", offset_factor=1, **strides("C", 2, 1))
    return a, b, c


def _description(kind: Kind, m: int, n: int, k: int, from_zero: bool) -> PrimFunc:
    a, b, c = _buffers(kind, m, n, k, strided=False)
    side, wide = kind.side_by_side, DataType(kind.c)

    def update(i: Var, j: Var, r: Var) -> BufferStore:
        inner = (r // side, j if n == ROWS else j % ROWS, r % side)
        packed = load(b, *inner) if n == ROWS else load(b, j // ROWS, *inner)
        return BufferStore(c, load(c, i, j) + cast(load(a, i, r), wide) * cast(packed, wide), (i, j))

    axes = [("i", m, IterType.DataPar), ("j", n, IterType.DataPar), ("k", k, IterType.CommReduce)]
    return description([a, b, c], axes, update, from_zero)


def _implementation(kind: Kind, m: int, n: int, k: int, from_zero: bool) -> PrimFunc:
    a, b, c = _buffers(kind, m, n, k, strided=True)
    config = decl_buffer((64,), "uint8", "config", scope="local", data_alignment=64)
    body: list[Stmt] = []
    for begin, count, heights in _strips(m):
        body += _configure(config, heights)
        kernel = _Kernel(kind, a, b, c, k // kind.depth, heights, from_zero)
        for first, panels, width in _panels(n):
            across, down = Var("jr", "int32"), Var("ir", "int32")
            tile = kernel.tile(down * PAIR + begin, across * width + first, width)
            body.append(loop(across, panels, loop(down, count, tile)))
        body.append(do("llvm.x86.tilerelease"))
    return function([a, b, c], seq(body), [config])


def _strips(rows: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Where strips of rows begin, how many there are, and the rows of the tiles of each.

    >>> _strips(100), _strips(16), _strips(31)
    ([(0, 3, (16, 16)), (96, 1, (4,))], [(0, 1, (16,))], [(0, 1, (16, 15))])
    """
    whole, left = divmod(rows, PAIR)
    strips: list[tuple[int, int, tuple[int, ...]]] = [(0, whole, (ROWS, ROWS))] if whole else []
    if left:
        strips.append((whole * PAIR, 1, (ROWS, left - ROWS) if left > ROWS else (left,)))
    return strips


def _panels(columns: int) -> list[tuple[int, int, int]]:
    """Which tile of columns panels begin with, how many panels there are, and how many tiles each has."""
    pairs, left = divmod(columns // ROWS, 2)
    return [part for part in ((0, pairs, 2), (2 * pairs, left, 1)) if part[1]]


def _configure(config: Buffer, heights: Sequence[int]) -> list[Stmt]:
    """Palette 1, then for each tile the bytes of a row (16 bits) and the rows: C is 0 to 3, A 4 and 5, B 6 and 7."""
    values = [0] * 64
    values[0] = 1
    for tile in range(8):
        values[16 + 2 * tile] = ROW_BYTES
        row = tile - 4 if tile >= 4 else tile // 2
        values[48 + tile] = ROWS if tile >= 6 else heights[min(row, len(heights) - 1)]
    return configured(config, values)


def configured(config: Buffer, values: Sequence[int]) -> list[Stmt]:
    """The tile registers take the shapes that these 64 bytes say."""
    stores = [BufferStore(config, const(value, "uint8"), (const(index),)) for index, value in enumerate(values)]
    return [*stores, do("llvm.x86.ldtilecfg", address_of(load(config, 0)))]


class _Kernel(NamedTuple):
    """The product of a strip of rows by a panel of columns, in so many steps of the reduction."""

    kind: Kind
    a: Buffer
    b: Buffer
    c: Buffer
    steps: int
    heights: Sequence[int]
    from_zero: bool

    def tile(self, row: Expr, panel: Expr, width: int) -> Stmt:
        """C[row.., panel * 16..] += A[row..] · B[panel..], for as many tiles as registers hold."""
        kind, a, b, c = self.kind, self.a, self.b, self.c
        flat = b.ndim == 3  # one panel alone has no dimension of panels
        begin: list[Stmt] = []
        end: list[Stmt] = []
        for i, j in [(i, j) for i in range(len(self.heights)) for j in range(width)]:
            tile, location = 2 * i + j, (row + i * ROWS, (panel + j) * ROWS)
            zero = do("llvm.x86.tilezero", const(tile, "int8"))
            begin.append(zero if self.from_zero else move("llvm.x86.tileloadd64", tile, c, location, c.strides[0]))
            end.append(move("llvm.x86.tilestored64", tile, c, location, c.strides[0]))
        at = Var("kk", "int32")
        steps: list[Stmt] = []
        for j in range(width):
            position = (at * ROWS, 0, 0) if flat else (panel + j, at * ROWS, 0, 0)
            steps.append(move("llvm.x86.tileloadd64", 6 + j, b, position, const(ROW_BYTES // b.dtype.nbytes)))
        for i in range(len(self.heights)):
            steps.append(move("llvm.x86.tileloadd64", 4 + i, a, (row + i * ROWS, at * kind.depth), a.strides[0]))
            for j in range(width):
                numbers = [const(number, "int8") for number in (2 * i + j, 4 + i, 6 + j)]
                steps.append(do(f"llvm.x86.{kind.instruction}", *numbers))
        return seq([*begin, loop(at, self.steps, seq(steps)), *end])


def loop(var: Var, extent: int, body: Stmt) -> Stmt:
    return For(var, const(0), const(extent), ForKind.SERIAL, body)


def move(name: str, tile: int, buffer: Buffer, indices: tuple[Any, ...], stride: Expr) -> Stmt:
    step = cast(stride, DataType("int64")) * buffer.dtype.nbytes
    return do(name, const(tile, "int8"), address_of(load(buffer, *indices)), step)


def do(name: str, *arguments: Expr) -> Stmt:
    return Evaluate(call_llvm_intrin("void", name, *arguments))
