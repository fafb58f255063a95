"""AMX: tiles of 16 rows of 64 bytes, and the product of two tiles added to a third.

    C[16 × 16] int32   += A[16 × 64] int8 · B[64 × 16] int8          (tdpbssd, tdpbusd)
    C[16 × 16] float32 += A[16 × 32] bfloat16 · B[32 × 16] bfloat16  (tdpbf16ps)

A tile of B holds 4 bytes of the reduction side by side: [k // 4, j, k % 4] for int8, [k // 2, j, k % 2] for bfloat16;
so B is packed like that, with tiles of 16 columns. A and C may have any row stride. `amx_dot` makes the intrinsic for
larger blocks, up to 2 × 2 tiles of C that stay in tile registers while the reduction runs: that loads half as much per
product, and configures the tiles once. (Intel SDM volume 1, chapter 18.)
The process needs the kernel's permission to use tiles; building a program that uses them asks for it.
tdpbf16ps adds the products of each pair exactly, in an order of its own, and treats subnormals as zero: its sums differ
from those of the description by rounding.
"""

from __future__ import annotations

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
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin

ROWS = 16  # of a tile
ROW_BYTES = 64


class _Kind(NamedTuple):
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


_KINDS = {
    "s8s8s32": _Kind("tdpbssd", "int8", "int8", "int32"),
    "u8s8s32": _Kind("tdpbusd", "uint8", "int8", "int32"),
    "s8u8s32": _Kind("tdpbsud", "int8", "uint8", "int32"),
    "u8u8s32": _Kind("tdpbuud", "uint8", "uint8", "int32"),
    "bf16bf16f32": _Kind("tdpbf16ps", "bfloat16", "bfloat16", "float32"),
}


def register() -> None:
    """Declare the intrinsics of one tile."""
    for types in ("s8s8s32", "u8s8s32", "bf16bf16f32"):
        amx_dot(16, 16, _KINDS[types].depth, types)


def amx_dot(m: int, n: int, k: int, types: str = "u8s8s32") -> str:
    """The name of the intrinsic for m × n results and a reduction of k; registered when first asked for.

    `m` and `n` are 16 or 32, `k` a multiple of 64 (int8) or 32 (bfloat16). Its parameters are A[m, k], B[n / 16, k / 4,
    16, 4] (without the first dimension for n = 16; k / 2 and 2 for bfloat16) and C[m, n].
    """
    if types not in _KINDS:
        raise ValueError(f"amx_dot: types {types!r} are not one of {', '.join(_KINDS)}")
    kind = _KINDS[types]
    if m not in (16, 32) or n not in (16, 32) or k < kind.depth or k % kind.depth:
        raise ValueError(f"amx_dot: m and n are 16 or 32 and k a multiple of {kind.depth}; got {m}, {n}, {k}")
    name = f"amx_dot_{m}x{n}x{k}_{types}"
    if TensorIntrin.get(name, allow_missing=True) is None:
        TensorIntrin.register(name, _description(kind, m, n, k), _implementation(kind, m, n, k))
    return name


def _buffers(kind: _Kind, m: int, n: int, k: int, strided: bool) -> tuple[Buffer, Buffer, Buffer]:
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


def _description(kind: _Kind, m: int, n: int, k: int) -> PrimFunc:
    a, b, c = _buffers(kind, m, n, k, strided=False)
    side, wide = kind.side_by_side, DataType(kind.c)

    def update(i: Var, j: Var, r: Var) -> BufferStore:
        inner = (r // side, j if n == ROWS else j % ROWS, r % side)
        packed = load(b, *inner) if n == ROWS else load(b, j // ROWS, *inner)
        return BufferStore(c, load(c, i, j) + cast(load(a, i, r), wide) * cast(packed, wide), (i, j))

    axes = [("i", m, IterType.DataPar), ("j", n, IterType.DataPar), ("k", k, IterType.CommReduce)]
    return description([a, b, c], axes, update)


def _implementation(kind: _Kind, m: int, n: int, k: int) -> PrimFunc:
    a, b, c = _buffers(kind, m, n, k, strided=True)
    config = decl_buffer((64,), "uint8", "config", scope="local", data_alignment=64)
    rows, columns = m // ROWS, n // ROWS
    tiles_c = [(i, j, i * columns + j) for i in range(rows) for j in range(columns)]
    tiles_a = [(i, 4 + i) for i in range(rows)]
    tiles_b = [(j, 6 + j) for j in range(columns)]

    def move(name: str, tile: int, buffer: Buffer, indices: tuple[Any, ...], stride: Expr) -> Stmt:
        step = cast(stride, DataType("int64")) * buffer.dtype.nbytes
        return _do(name, const(tile, "int8"), address_of(load(buffer, *indices)), step)

    # The configuration: palette 1, then for each tile the bytes of a row (16 bits) and the rows.
    bytes_of = [0] * 64
    bytes_of[0] = 1
    for tile in [number for *_, number in [*tiles_c, *tiles_a, *tiles_b]]:
        bytes_of[16 + 2 * tile], bytes_of[48 + tile] = ROW_BYTES, ROWS
    body: list[Stmt] = [
        BufferStore(config, const(value, "uint8"), (const(place),)) for place, value in enumerate(bytes_of)
    ]
    body.append(_do("llvm.x86.ldtilecfg", address_of(load(config, 0))))
    for i, j, tile in tiles_c:
        body.append(move("llvm.x86.tileloadd64", tile, c, (i * ROWS, j * ROWS), c.strides[0]))
    at = Var("kk", "int32")
    steps: list[Stmt] = []
    for i, tile in tiles_a:
        steps.append(move("llvm.x86.tileloadd64", tile, a, (i * ROWS, at * kind.depth), a.strides[0]))
    for j, tile in tiles_b:
        place = (at * ROWS, 0, 0) if columns == 1 else (j, at * ROWS, 0, 0)
        steps.append(move("llvm.x86.tileloadd64", tile, b, place, const(ROW_BYTES // DataType(kind.b).nbytes)))
    for i, j, tile in tiles_c:
        numbers = [const(number, "int8") for number in (tile, 4 + i, 6 + j)]
        steps.append(_do(f"llvm.x86.{kind.instruction}", *numbers))
    body.append(For(at, const(0), const(k // kind.depth), ForKind.SERIAL, seq(steps)))
    for i, j, tile in tiles_c:
        body.append(move("llvm.x86.tilestored64", tile, c, (i * ROWS, j * ROWS), c.strides[0]))
    body.append(_do("llvm.x86.tilerelease"))
    return function([a, b, c], seq(body), [config])


def _do(name: str, *arguments: Expr) -> Stmt:
    return Evaluate(call_llvm_intrin("void", name, *arguments))
