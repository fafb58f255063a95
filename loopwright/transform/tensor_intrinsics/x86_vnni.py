"""AVX-512 VNNI: vpdpbusd multiplies 64 uint8 by 64 int8 and adds each four products to one of 16 int32.

`dot_16x4_vnni`: C[i] += sum over k of A[k] * B[i, k], for 16 results and 4 products each. The four elements of A are
spread over the register; B is contiguous, so it is packed as [.., 16 columns, 4 rows of the reduction].
(Intel SDM volume 2C, VPDPBUSD: the sum does not saturate.)
`dot_16x4_avx512` is the same for machines without VNNI.
"""

from __future__ import annotations

from loopwright.transform.tensor_intrinsics.declare import register_dot


def register() -> None:
    """Declare the intrinsics of this file."""
    register_dot("dot_16x4_vnni", "llvm.x86.avx512.vpdpbusd.512", 16, "uint8", "int8")
    register_dot("dot_16x4_avx512", None, 16, "uint8", "int8")
