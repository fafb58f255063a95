"""Transposing a square tile in registers: whole rows in, whole rows out, shuffles between.

    T[j, i] = A[i, j]        16 rows of 16 elements become 16 columns; A[i, 0, j, 0] with others between or after

Each round interleaves row r with row r + n/2, as one shuffles two halves of a deck of cards; the bits of a row's number
and of a column's then wander round as one number, and after log2(n) rounds they have changed places. A shuffle of two
registers is an instruction or two on any machine with vectors: n * log2(n) of them stand for n * n loads and stores.
"""

from __future__ import annotations

from loopwright.ir import (
    Buffer,
    BufferStore,
    Expr,
    IterType,
    LetStmt,
    PrimFunc,
    Ramp,
    Shuffle,
    Stmt,
    Var,
    const,
    decl_buffer,
    seq,
)
from loopwright.transform.tensor_intrinsics.declare import description, function, load
from loopwright.transform.tensor_intrinsics.registry import TRANSPOSES, TensorIntrin


def register(name: str) -> None:
    """Declare one of the intrinsics of this file."""
    what = TRANSPOSES[name]
    TensorIntrin.register(name, _description(*what), _implementation(*what))


def _buffers(size: int, between: int, after: int, dtype: str, strided: bool) -> tuple[Buffer, Buffer]:
    row, *others = [Var(f"stride_{dim}", "int32") for dim in range(between + 1)]
    ones = [const(1)] * (1 + after)
    strides = ((row, *others, *ones), (Var("T_stride", "int32"), const(1))) if strided else ((), ())
    source = decl_buffer((size, *[1] * between, size, *[1] * after), dtype, "A", strides=strides[0], offset_factor=1)
    return source, decl_buffer((size, size), dtype, "T", strides=strides[1], offset_factor=1)


def _description(size: int, between: int, after: int, dtype: str) -> PrimFunc:
    source, target = _buffers(size, between, after, dtype, strided=False)
    axes = [("i", size, IterType.DataPar), ("j", size, IterType.DataPar)]
    middle, end = [0] * between, [0] * after
    return description(
        [source, target], axes, lambda i, j: BufferStore(target, load(source, i, *middle, j, *end), (j, i))
    )


def _implementation(size: int, between: int, after: int, dtype: str) -> PrimFunc:
    source, target = _buffers(size, between, after, dtype, strided=True)
    whole = Ramp(const(0), const(1), size)
    named: list[tuple[Var, Expr]] = []

    def name(value: Expr) -> Var:
        named.append((Var(f"v{len(named)}", value.dtype), value))
        return named[-1][0]

    # A vector is an index of the last dimension: the ones before it, of one element, are no step in memory.
    rows = [name(load(source, row, *[0] * (between + after), whole)) for row in range(size)]
    half = size // 2
    low, high = ([const(lane // 2 + start + size * (lane % 2)) for lane in range(size)] for start in (0, half))
    for _ in range(size.bit_length() - 1):
        pairs = [(rows[row], rows[row + half]) for row in range(half)]
        rows = [name(Shuffle(pair, tuple(lanes))) for pair in pairs for lanes in (low, high)]
    body: Stmt = seq([BufferStore(target, row, (const(position), whole)) for position, row in enumerate(rows)])
    for var, value in reversed(named):
        body = LetStmt(var, value, body)
    return function([source, target], body)
