"""dp4a: C[0] += sum over k of A[k] * B[k], for four products of int8 at once, modulo 2³² (CUDA, sm_61 and later).

Operands that were copied to registers or to shared memory four bytes at a time are read as words.
(CUDA C++ Programming Guide, integer intrinsics: __dp4a.)
"""

from __future__ import annotations

from typing import Final

from loopwright.transform.tensor_intrinsics.declare import from_text
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin

_HEAD: Final = """
from loopwright.script import tir as T

@T.prim_func
def main(
    A: T.Buffer((4,), "int8", offset_factor=1),
    B: T.Buffer((4,), "int8", offset_factor=1),
    C: T.Buffer((1,), "int32", offset_factor=1),
):
    with T.block("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
"""
_DESCRIPTION: Final = (
    _HEAD
    + """        for k in range(4):
            with T.block("update"):
                vk = T.axis.reduce(4, k)
                C[0] = C[0] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vk])
"""
)
_INSTRUCTION: Final = (
    _HEAD
    + """        C[0] = T.call_pure_extern("int32", "__dp4a", A.vload([0], "int8x4"), B.vload([0], "int8x4"), C[0])
"""
)


def register() -> None:
    """Declare the intrinsic of this file."""
    TensorIntrin.register("dp4a", from_text(_DESCRIPTION), from_text(_INSTRUCTION))
