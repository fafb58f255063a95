"""Instructions of AVX-512 that bodies are made of on CPUs that have them; what they compute, others compute too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright import ir
from loopwright.ir import intrinsics
from loopwright.ir.machine_intrinsics import vectorcombine, vectorhigh, vectorlow
from loopwright.runtime.dtype import DataType
from loopwright.target.cpu import CpuDescription

_WIDEST: Final = 512  # bits in a vector; wider ones are cut in halves
# The feature that brings the instructions for vectors of so many bits.
_FEATURES: Final = {128: "avx512vl", 256: "avx512vl", **dict.fromkeys((512, 1024, 2048, 4096), "avx512f")}
_LETTERS: Final = {32: "s", 64: "d"}
_POSITIVE: Final = 0b0100
FROM_ONE: Final = 0b00  # the interval [1, 2)
_FROM_THREE_QUARTERS: Final = 0b11
_NEGATIVE_IS_NAN: Final = 0b1000
_CURRENT_ROUNDING: Final = 4


def has_avx512(dtype: DataType, cpu: CpuDescription) -> bool:
    """Whether the CPU has the instructions for vectors of `dtype`, and is not told to keep to shorter ones."""
    bits = dtype.bits * dtype.lanes
    fits = min(bits, _WIDEST) <= cpu.vector_bits
    return dtype.element in ("float32", "float64") and _FEATURES.get(bits) in cpu.features and fits


def exponent_avx512(x: ir.Expr) -> ir.Expr:
    """floor(log2 |x|) as a float: -∞ for zero, ∞ for infinity. `x` is a variable."""
    return _call("getexp", [x])


def mantissa_avx512(x: ir.Expr, interval: int = _FROM_THREE_QUARTERS) -> ir.Expr:
    """x times the power of two that brings it into [¾, 1½); 1 for zero and infinity, NaN for negative numbers."""
    return _call("getmant", [x], ir.const(interval | _NEGATIVE_IS_NAN, "int32"))


def positive_mantissa_avx512(x: ir.Expr) -> ir.Expr:
    """|x| times the power of two that brings it into [1, 2); 1 for zero and infinity."""
    return _call("getmant", [x], ir.const(FROM_ONE | _POSITIVE, "int32"))


def scaled_avx512(x: ir.Expr, n: ir.Expr) -> ir.Expr:
    """x · 2^n for an integer n in a float, rounded once; both are variables."""
    return _call("scalef", [x, n])


def _call(name: str, vectors: Sequence[ir.Expr], *options: ir.Expr) -> ir.Expr:
    """The intrinsic with all lanes on; `vectors` are variables, since they are cut in two if they are too wide."""
    dtype = vectors[0].dtype
    lanes, bits = dtype.lanes, dtype.lanes * dtype.bits
    if bits > _WIDEST:
        half = dtype.with_lanes(lanes // 2)
        low, high = ([part(half, x) for x in vectors] for part in (vectorlow, vectorhigh))
        return vectorcombine(dtype, _call(name, low, *options), _call(name, high, *options))
    mask = ir.const(-1, "int16" if lanes == 16 else "int8")
    rounding = [ir.const(_CURRENT_ROUNDING, "int32")] if bits == _WIDEST else []
    intrinsic = f"llvm.x86.avx512.mask.{name}.p{_LETTERS[dtype.bits]}.{bits}"
    off = ir.const(0.0, dtype)  # what lanes that are off would have
    return intrinsics.call_llvm_pure_intrin(dtype, intrinsic, *vectors, *options, off, mask, *rounding)
