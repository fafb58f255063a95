"""Blocks of dot products in vector registers: the innermost part of a product whose instruction adds several products.

    C[i, j] += sum over k of A[i, k] * B[k // group, j, k % group]        m rows, n columns, a depth of k

One instruction multiplies `group` neighbours of the reduction and adds them to one lane: 4 bytes (vpdpbusd, sdot), 2
bfloat16 (vdpbf16ps, bfdot), 2 int16 (vpmaddwd), or one float16 (fma). So B is packed with a group side by side, and a
group of A is spread over a register. All sums stay in registers while the reduction runs; A and C may have any row
stride. `dot_block` makes the intrinsic for a size and a kind of the table below; the row says which features it needs.

vpmaddubsw is not among them: its sums of two products saturate at 16 bits (255 * 127 * 2 is more). vpmaddwd on numbers
that were 8 bits wide cannot overflow. (Intel SDM volume 2; Arm Architecture Reference Manual, C7.2.)
Instructions on floats add in an order of their own, and vdpbf16ps and bfdot treat subnormals as zero; fma on float16
rounds once where the description rounds twice: results differ from the description's by rounding.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from loopwright.ir import (
    Broadcast,
    Buffer,
    BufferStore,
    Expr,
    For,
    ForKind,
    IterType,
    LetStmt,
    PrimFunc,
    Ramp,
    Stmt,
    Var,
    cast,
    const,
    decl_buffer,
    seq,
)
from loopwright.ir.intrinsics import call_llvm_pure_intrin, reinterpret
from loopwright.runtime.dtype import DataType
from loopwright.transform.tensor_intrinsics.declare import description, function, load
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin

FROM_ZERO: Final = "_from_zero"


class DotKind(NamedTuple):
    """An instruction: what it multiplies and adds to, how many lanes, and how it is called."""

    a: str
    b: str
    c: str
    lanes: int
    group: int
    instruction: str
    features: tuple[str, ...]  # of the CPU, all of them
    order: str = "cab"  # of the instruction's operands: the sum, the group of A, the vector of B
    adds_after: bool = False  # the instruction multiplies; an addition follows


KINDS: Final[dict[str, DotKind]] = {
    "u8s8_vnni512": DotKind("uint8", "int8", "int32", 16, 4, "llvm.x86.avx512.vpdpbusd.512", ("avx512vnni",)),
    "s8u8_vnni512": DotKind("int8", "uint8", "int32", 16, 4, "llvm.x86.avx512.vpdpbusd.512", ("avx512vnni",), "cba"),
    "u8s8_vnni256": DotKind("uint8", "int8", "int32", 8, 4, "llvm.x86.avx512.vpdpbusd.256", ("avxvnni",)),
    "s8u8_vnni256": DotKind("int8", "uint8", "int32", 8, 4, "llvm.x86.avx512.vpdpbusd.256", ("avxvnni",), "cba"),
    "s8s8_vnni256": DotKind("int8", "int8", "int32", 8, 4, "llvm.x86.avx2.vpdpbssd.256", ("avxvnniint8",)),
    "u8u8_vnni256": DotKind("uint8", "uint8", "int32", 8, 4, "llvm.x86.avx2.vpdpbuud.256", ("avxvnniint8",)),
    "s16s16_madd512": DotKind(
        "int16", "int16", "int32", 16, 2, "llvm.x86.avx512.pmaddw.d.512", ("avx512bw",), "ab", True
    ),
    "s16s16_madd256": DotKind("int16", "int16", "int32", 8, 2, "llvm.x86.avx2.pmadd.wd", ("avx2",), "ab", True),
    "s16s16_madd128": DotKind("int16", "int16", "int32", 4, 2, "llvm.x86.sse2.pmadd.wd", ("sse2",), "ab", True),
    "bf16bf16_512": DotKind(
        "bfloat16", "bfloat16", "float32", 16, 2, "llvm.x86.avx512bf16.dpbf16ps.512", ("avx512bf16",)
    ),
    "f16f16_512": DotKind("float16", "float16", "float16", 32, 1, "llvm.fma.v32f16", ("avx512fp16",), "abc"),
    "s8s8_sdot": DotKind("int8", "int8", "int32", 4, 4, "llvm.aarch64.neon.sdot.v4i32.v16i8", ("dotprod",)),
    "u8u8_udot": DotKind("uint8", "uint8", "int32", 4, 4, "llvm.aarch64.neon.udot.v4i32.v16i8", ("dotprod",)),
    "u8s8_usdot": DotKind("uint8", "int8", "int32", 4, 4, "llvm.aarch64.neon.usdot.v4i32.v16i8", ("i8mm",)),
    "s8u8_usdot": DotKind("int8", "uint8", "int32", 4, 4, "llvm.aarch64.neon.usdot.v4i32.v16i8", ("i8mm",), "cba"),
    "bf16bf16_neon": DotKind(
        "bfloat16", "bfloat16", "float32", 4, 2, "llvm.aarch64.neon.bfdot.v4f32.v8bf16", ("bf16",)
    ),
    "f16f16_neon": DotKind("float16", "float16", "float16", 8, 1, "llvm.fma.v8f16", ("fullfp16",), "abc"),
}


def register_named(name: str) -> None:
    """Declare the intrinsic that a name of this family means, if it means one."""
    result = re.fullmatch(r"dot_block_(\d+)x(\d+)x(\d+)_(\w+?)(_from_zero)?", name)
    if result is None or result[4] not in KINDS:
        return
    m, n, k = int(result[1]), int(result[2]), int(result[3])
    if _is_size(KINDS[result[4]], m, n, k):
        dot_block(m, n, k, result[4], from_zero=bool(result[5]))


def dot_block(m: int, n: int, k: int, kind: str, from_zero: bool = False) -> str:
    """The name of the intrinsic for m × n results and a reduction of k; registered when first asked for.

    `n` is a multiple of the instruction's lanes and `k` of its group. Its parameters are A[m, k], B[k / group, n,
    group] (B[k, n] for a group of one) and C[m, n]. `from_zero`: C need not be there before, its sums begin here.
    """
    if kind not in KINDS:
        raise ValueError(f"dot_block: kind {kind!r} is not one of {', '.join(KINDS)}")
    row = KINDS[kind]
    if not _is_size(row, m, n, k):
        message = f"m is at least 1, n a multiple of {row.lanes} and k of {row.group}"
        raise ValueError(f"dot_block: {message}; got {m}, {n}, {k}")
    name = f"dot_block_{m}x{n}x{k}_{kind}{FROM_ZERO if from_zero else ''}"
    if name not in TensorIntrin.known:
        TensorIntrin.register(name, _description(row, m, n, k, from_zero), _implementation(row, m, n, k, from_zero))
    return name


def _is_size(kind: DotKind, m: int, n: int, k: int) -> bool:
    return m >= 1 and n >= kind.lanes and n % kind.lanes == 0 and k >= kind.group and k % kind.group == 0


def _buffers(kind: DotKind, m: int, n: int, k: int, strided: bool) -> tuple[Buffer, Buffer, Buffer]:
    def rows(name: str) -> dict[str, Any]:
        return {"strides": (Var(f"stride{name}", "int32"), const(1))} if strided else {}

    packed = (k, n) if kind.group == 1 else (k // kind.group, n, kind.group)
    a = decl_buffer((m, k), kind.a, "A", offset_factor=1, **rows("A"))
    b = decl_buffer(packed, kind.b, "B", offset_factor=1)
    c = decl_buffer((m, n), kind.c, "C", offset_factor=1, **rows("C"))
    return a, b, c


def _description(kind: DotKind, m: int, n: int, k: int, from_zero: bool) -> PrimFunc:
    a, b, c = _buffers(kind, m, n, k, strided=False)
    wide = DataType(kind.c)

    def update(i: Var, j: Var, r: Var) -> BufferStore:
        packed = load(b, r, j) if kind.group == 1 else load(b, r // kind.group, j, r % kind.group)
        return BufferStore(c, load(c, i, j) + cast(load(a, i, r), wide) * cast(packed, wide), (i, j))

    axes = [("i", m, IterType.DataPar), ("j", n, IterType.DataPar), ("k", k, IterType.CommReduce)]
    return description([a, b, c], axes, update, from_zero)


def _implementation(kind: DotKind, m: int, n: int, k: int, from_zero: bool) -> PrimFunc:
    a, b, c = _buffers(kind, m, n, k, strided=True)
    lanes, vectors = kind.lanes, n // kind.lanes
    sums = decl_buffer((m * n,), kind.c, "sums", scope="local", data_alignment=64)
    wide = DataType(kind.c).with_lanes(lanes)

    def cells(row: int, vector: int) -> Ramp:
        return Ramp(const(row * n + vector * lanes), const(1), lanes)

    def columns(vector: int) -> Ramp:
        return Ramp(const(vector * lanes), const(1), lanes)

    tile = [(row, vector) for row in range(m) for vector in range(vectors)]
    zero = Broadcast(const(0, kind.c), lanes)
    begin = [
        BufferStore(sums, zero if from_zero else load(c, row, columns(vector)), (cells(row, vector),))
        for row, vector in tile
    ]
    end = [BufferStore(c, load(sums, cells(row, vector)), (const(row), columns(vector))) for row, vector in tile]

    at = Var("kk", "int32")
    named: list[tuple[Var, Expr]] = []

    def name(what: str, value: Expr) -> Var:
        named.append((Var(what, value.dtype), value))
        return named[-1][0]

    panel = [name(f"b{vector}", _vector(kind, b, at, vector)) for vector in range(vectors)]
    updates: list[Stmt] = []
    for row in range(m):
        spread = name(f"a{row}", _spread(kind, a, row, at))
        for vector in range(vectors):
            old = load(sums, cells(row, vector))
            operands = {"a": spread, "b": panel[vector], "c": old}
            new: Expr = call_llvm_pure_intrin(wide, kind.instruction, *[operands[letter] for letter in kind.order])
            updates.append(BufferStore(sums, old + new if kind.adds_after else new, (cells(row, vector),)))
    step = seq(updates)
    for var, value in reversed(named):
        step = LetStmt(var, value, step)
    loop = For(at, const(0), const(k // kind.group), ForKind.SERIAL, step)
    return function([a, b, c], seq([*begin, loop, *end]), [sums])


def _vector(kind: DotKind, b: Buffer, at: Var, vector: int) -> Expr:
    """A register of the panel: so many columns, a group of each."""
    if kind.group == 1:
        return load(b, at, Ramp(const(vector * kind.lanes), const(1), kind.lanes))
    return load(b, at, vector * kind.lanes, Ramp(const(0), const(1), kind.lanes * kind.group))


def _spread(kind: DotKind, a: Buffer, row: int, at: Var) -> Expr:
    """A group of a row, in every lane."""
    if kind.group == 1:
        return Broadcast(load(a, row, at), kind.lanes)
    group = load(a, row, Ramp(at * kind.group, const(1), kind.group))
    bits = DataType(kind.a).bits * kind.group
    whole = Broadcast(reinterpret(f"int{bits}", group), kind.lanes)
    return reinterpret(DataType(kind.a).with_lanes(kind.group * kind.lanes), whole)
