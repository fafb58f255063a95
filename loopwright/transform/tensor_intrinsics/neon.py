"""NEON: the dot-product instructions of Armv8.2, and multiply-add on eight float16.

`dot_4x4_i8i8s32_sdot`: C[i] += sum over k of A[k] * B[i, k], for 4 results and 4 products each (feature dotprod); udot
is the same on uint8, into int32 or uint32; `dot_4x4_i8i8s32_neon` is for machines without the feature. The four
elements of A are spread over the register; B is contiguous, so it is packed as [.., 4 columns, 4 rows of the
reduction]. `fma_8_f16_neon`: C[i] += A[0] * B[i] with one rounding (feature fullfp16).
(Arm Architecture Reference Manual, C7.2: SDOT, UDOT, FMLA.)
"""

from __future__ import annotations

from loopwright.transform.tensor_intrinsics.declare import from_text, register_dot
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin


def register() -> None:
    """Declare the intrinsics of this file."""
    register_dot("dot_4x4_i8i8s32_sdot", "llvm.aarch64.neon.sdot.v4i32.v16i8", 4, "int8", "int8")
    register_dot("dot_4x4_u8u8s32_udot", "llvm.aarch64.neon.udot.v4i32.v16i8", 4, "uint8", "uint8")
    register_dot("dot_4x4_i8i8s32_neon", None, 4, "int8", "int8")
    register_dot("dot_4x4_u8u8u32_udot", "llvm.aarch64.neon.udot.v4i32.v16i8", 4, "uint8", "uint8", "uint32")
    register_dot("dot_4x4_u8u8i32_hdot", "llvm.aarch64.neon.udot.v4i32.v16i8", 4, "uint8", "uint8")
    TensorIntrin.register("fma_8_f16_neon", from_text(_FMA_DESCRIPTION), from_text(_FMA_INSTRUCTION))


_FMA_DESCRIPTION = """
from loopwright.script import tir as T

@T.prim_func
def main(
    A: T.Buffer((1,), "float16", offset_factor=1),
    B: T.Buffer((8,), "float16", offset_factor=1),
    C: T.Buffer((8,), "float16", offset_factor=1),
):
    with T.block("root"):
        T.reads(C[0:8], A[0:1], B[0:8])
        T.writes(C[0:8])
        for i in range(8):
            with T.block("update"):
                vi = T.axis.spatial(8, i)
                C[vi] = C[vi] + A[0] * B[vi]
"""

_FMA_INSTRUCTION = """
from loopwright.script import tir as T

@T.prim_func
def main(
    A: T.Buffer((1,), "float16", offset_factor=1),
    B: T.Buffer((8,), "float16", offset_factor=1),
    C: T.Buffer((8,), "float16", offset_factor=1),
):
    with T.block("root"):
        T.reads(C[0:8], A[0:1], B[0:8])
        T.writes(C[0:8])
        C[T.ramp(0, 1, 8)] = T.call_llvm_pure_intrin(
            "float16x8", "llvm.fma.v8f16", T.broadcast(A[0], 8), B.vload([0], "float16x8"), C.vload([0], "float16x8")
        )
"""
