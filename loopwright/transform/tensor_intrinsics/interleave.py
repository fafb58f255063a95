"""Interleaving rows: the packing that dot-product instructions want, as loads of whole rows and one shuffle.

    P[j, r] = B[r, j]        4 rows of 16 columns become 16 groups of 4

Element by element this is a store for each byte, and costs more than the product of a small matrix. A shuffle of the
rows, put one after the other in a register, is a few instructions on any machine with vectors.
"""

from __future__ import annotations

import re

from loopwright.ir import (
    Buffer,
    BufferStore,
    Expr,
    IterType,
    PrimFunc,
    Ramp,
    Shuffle,
    Var,
    const,
    decl_buffer,
)
from loopwright.ir.machine_intrinsics import vectorcombine
from loopwright.transform.tensor_intrinsics.declare import description, function, load
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin


def register() -> None:
    """Declare the intrinsics of this file."""
    for rows, columns, dtype in ((4, 16, "int8"), (4, 4, "int8"), (2, 16, "bfloat16")):
        name = f"interleave_{rows}x{columns}_{dtype}"
        TensorIntrin.register(name, _description(rows, columns, dtype), _implementation(rows, columns, dtype))


def register_named(name: str) -> None:
    """Declare the intrinsic that a name of this family means, if it means one."""
    result = re.fullmatch(r"interleave_(2|4)x(\d+)_(u?int8|u?int16|bfloat16|float16)", name)
    if result and 1 < int(result[2]) <= 64:
        rows, columns, dtype = int(result[1]), int(result[2]), result[3]
        TensorIntrin.register(name, _description(rows, columns, dtype), _implementation(rows, columns, dtype))


def _buffers(rows: int, columns: int, dtype: str, strided: bool) -> tuple[Buffer, Buffer]:
    strides = (Var("stride", "int32"), const(1)) if strided else ()
    source = decl_buffer((rows, columns), dtype, "B", strides=strides, offset_factor=1)
    return source, decl_buffer((columns, rows), dtype, "P", offset_factor=1)


def _description(rows: int, columns: int, dtype: str) -> PrimFunc:
    source, target = _buffers(rows, columns, dtype, strided=False)
    axes = [("r", rows, IterType.DataPar), ("j", columns, IterType.DataPar)]
    return description([source, target], axes, lambda r, j: BufferStore(target, load(source, r, j), (j, r)))


def _implementation(rows: int, columns: int, dtype: str) -> PrimFunc:
    source, target = _buffers(rows, columns, dtype, strided=True)
    lines: list[Expr] = [load(source, row, Ramp(const(0), const(1), columns)) for row in range(rows)]
    while len(lines) > 1:
        wide = str(lines[0].dtype.with_lanes(2 * lines[0].dtype.lanes))
        lines = [vectorcombine(wide, a, b) for a, b in zip(lines[::2], lines[1::2], strict=True)]
    order = [const(row * columns + column) for column in range(columns) for row in range(rows)]
    whole = Ramp(const(0), const(1), rows * columns)
    return function([source, target], BufferStore(target, Shuffle((lines[0],), tuple(order)), (const(0), whole)))
