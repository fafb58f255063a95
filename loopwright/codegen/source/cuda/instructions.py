"""Helpers that are one instruction of a GPU: conversions of small floats, which take some fifteen else, and extrema.

They differ in the bits of NaN only. A quotient without special cases is four, and no branch, around which the compiler
would not move loads; it is within 0.51 units in the last place. On the CPU, where kernels are emulated, there are no
such instructions.
"""

from __future__ import annotations

from typing import Final


def _on(arch: int, instruction: str, result: str, to: str, *operands: str) -> tuple[str, str]:
    """The condition, and the call of the instruction; an operand is its constraint and its name."""
    places = ", ".join(f"%{k}" for k in range(len(operands) + 1))
    given = ", ".join(f'"{operand[0]}"({operand[1]})' for operand in operands)
    condition = f"defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= {arch}"
    return condition, f'{result} y; asm("{instruction} {places};" : "={to}"(y) : {given}); return y;'


INSTRUCTIONS: Final = {
    "lw_decode_f16": _on(530, "cvt.f32.f16", "float", "f", "hx"),
    "lw_encode_f16": _on(530, "cvt.rn.f16.f32", "uint16_t", "h", "fx"),
    "lw_encode_bf16": _on(900, "cvt.rn.bf16.f32", "uint16_t", "h", "fx"),
    # PTX, min and max: with .NaN the result is NaN if an operand is, and -0 is less than +0.
    "lw_min_f32": _on(800, "min.NaN.f32", "float", "f", "fa", "fb"),
    "lw_max_f32": _on(800, "max.NaN.f32", "float", "f", "fa", "fb"),
    "lw_exp2_approx_f32": _on(500, "ex2.approx.ftz.f32", "float", "f", "fx"),
    "lw_quotient_f32": (
        "defined(__CUDA_ARCH__)",
        'float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b)); const float q = a * r; '
        "return fmaf(fmaf(-q, b, a), r, q);",
    ),
}
