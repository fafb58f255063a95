"""Conversions of small floats that are one instruction: the bodies of `codegen/math` take some fifteen.

They differ in the bits of NaN only. On the CPU, where kernels are emulated, there is no such instruction.
"""

from __future__ import annotations

from typing import Final


def _convert(instruction: str, result: str, constraints: tuple[str, str]) -> str:
    to, source = constraints
    return f'{result} y; asm("{instruction} %0, %1;" : "={to}"(y) : "{source}"(x)); return y;'


CONVERSIONS: Final = {
    "lw_decode_f16": ("defined(__CUDA_ARCH__)", _convert("cvt.f32.f16", "float", ("f", "h"))),
    "lw_encode_f16": ("defined(__CUDA_ARCH__)", _convert("cvt.rn.f16.f32", "uint16_t", ("h", "f"))),
    "lw_encode_bf16": (
        "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900",
        _convert("cvt.rn.bf16.f32", "uint16_t", ("h", "f")),
    ),
}
