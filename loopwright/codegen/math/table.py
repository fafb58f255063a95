"""Which functions have a body of our own, for which element type. docs/math.md states how accurate they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright import ir
from loopwright.codegen.math import (
    erf,
    exp,
    fmod,
    hyperbolic,
    hypot,
    inverse_trigonometric,
    log,
    low_precision,
    nextafter,
    pow,
    rsqrt,
    trigonometric,
    trigonometric_float64,
)
from loopwright.codegen.math.avx512 import has_avx512
from loopwright.codegen.math.division import division_bodies
from loopwright.runtime.dtype import DataType
from loopwright.target.cpu import CpuDescription

# Functions whose divisors are from 1 to 2^100, and whose quotients are no larger: no case of a division is special.
TAME_QUOTIENTS: Final = frozenset({("sigmoid", "float32"), ("tanh", "float32")})

# (function, element type) → the body, from arguments of that type with any number of lanes
BODIES: Final[dict[tuple[str, str], Callable[..., ir.Expr]]] = {
    ("exp", "float32"): exp.exp_float32,
    ("exp2", "float32"): exp.exp2_float32,
    ("exp2_approx", "float32"): exp.exp2_float32,
    ("exp10", "float32"): exp.exp10_float32,
    ("log", "float32"): log.log_float32,
    ("log2", "float32"): log.log2_float32,
    ("log10", "float32"): log.log10_float32,
    ("log1p", "float32"): log.log1p,
    ("sigmoid", "float32"): hyperbolic.sigmoid_float32,
    ("tanh", "float32"): hyperbolic.tanh_float32,
    ("sinh", "float32"): hyperbolic.sinh_float32,
    ("cosh", "float32"): hyperbolic.cosh_float32,
    ("asinh", "float32"): hyperbolic.asinh,
    ("acosh", "float32"): hyperbolic.acosh,
    ("atanh", "float32"): hyperbolic.atanh,
    ("erf", "float32"): erf.erf_float32,
    ("sin", "float32"): trigonometric.sin_float32,
    ("cos", "float32"): trigonometric.cos_float32,
    ("tan", "float32"): trigonometric.tan_float32,
    ("asin", "float32"): inverse_trigonometric.asin,
    ("acos", "float32"): inverse_trigonometric.acos_float32,
    ("atan", "float32"): inverse_trigonometric.atan_float32,
    ("atan2", "float32"): inverse_trigonometric.atan2_float32,
    ("pow", "float32"): pow.pow_float32,
    ("pow", "float64"): pow.pow_float64,
    ("rsqrt", "float32"): rsqrt.rsqrt,
    ("rsqrt", "float64"): rsqrt.rsqrt,
    ("exp", "float64"): exp.exp_float64,
    ("log", "float64"): log.log_float64,
    ("sigmoid", "float64"): hyperbolic.sigmoid_float64,
    ("tanh", "float64"): hyperbolic.tanh_float64,
    ("erf", "float64"): erf.erf_float64,
    ("exp2", "float64"): exp.exp2_float64,
    ("exp2_approx", "float64"): exp.exp2_float64,
    ("exp10", "float64"): exp.exp10_float64,
    ("log2", "float64"): log.log2_float64,
    ("log10", "float64"): log.log10_float64,
    ("log1p", "float64"): log.log1p,
    ("sinh", "float64"): hyperbolic.sinh_float64,
    ("cosh", "float64"): hyperbolic.cosh_float64,
    ("asinh", "float64"): hyperbolic.asinh,
    ("acosh", "float64"): hyperbolic.acosh,
    ("atanh", "float64"): hyperbolic.atanh,
    ("asin", "float64"): inverse_trigonometric.asin,
    ("acos", "float64"): inverse_trigonometric.acos_float64,
    ("atan", "float64"): inverse_trigonometric.atan_float64,
    ("atan2", "float64"): inverse_trigonometric.atan2_float64,
    ("hypot", "float32"): hypot.hypot_float32,
    ("hypot", "float64"): hypot.hypot_float64,
    ("fmod", "float32"): fmod.fmod,
    ("fmod", "float64"): fmod.fmod,
    ("sin", "float64"): trigonometric_float64.sin_float64,
    ("cos", "float64"): trigonometric_float64.cos_float64,
    ("tan", "float64"): trigonometric_float64.tan_float64,
    ("nextafter", "float16"): nextafter.nextafter,
    ("nextafter", "bfloat16"): nextafter.nextafter,
    ("nextafter", "float32"): nextafter.nextafter,
    ("nextafter", "float64"): nextafter.nextafter,
    ("nextafter", "e4m3_float8"): nextafter.nextafter,
    ("nextafter", "e5m2_float8"): nextafter.nextafter,
    ("decode", "bfloat16"): low_precision.decode_bfloat16,
    ("encode", "bfloat16"): low_precision.encode_bfloat16,
    ("decode", "float16"): low_precision.decode_float16,
    ("encode", "float16"): low_precision.encode_float16,
    ("decode", "e4m3_float8"): low_precision.decode_e4m3,
    ("encode", "e4m3_float8"): low_precision.encode_e4m3,
    ("decode", "e5m2_float8"): low_precision.decode_e5m2,
    ("encode", "e5m2_float8"): low_precision.encode_e5m2,
}

# Divisions of vectors of integers; there is none for one integer, which machines divide.
DIVISIONS: Final = division_bodies()

# Bodies for vectors of AVX-512. They give the same bits as those above, except that they make signaling NaNs quiet.
BODIES_AVX512: Final[dict[tuple[str, str], Callable[..., ir.Expr]]] = {
    ("exp", "float32"): exp.exp_float32_avx512,
    ("exp2", "float32"): exp.exp2_float32_avx512,
    ("exp2_approx", "float32"): exp.exp2_float32_avx512,
    ("log", "float32"): log.log_float32_avx512,
    ("sigmoid", "float32"): hyperbolic.sigmoid_float32_avx512,
    ("log2", "float32"): log.log2_float32_avx512,
    ("log10", "float32"): log.log10_float32_avx512,
    ("exp", "float64"): exp.exp_float64_avx512,
    ("log", "float64"): log.log_float64_avx512,
    ("log2", "float64"): log.log2_float64_avx512,
    ("log10", "float64"): log.log10_float64_avx512,
    ("erf", "float64"): erf.erf_float64_avx512,
    ("pow", "float32"): pow.pow_float32_avx512,
    ("pow", "float64"): pow.pow_float64_avx512,
}


# What has no body for a type is the C library's function of that name, computed in float64.
C_LIBRARY: Final = frozenset(
    "acos acosh asin asinh atan atanh cos cosh erf exp exp2 exp10 log log2 log10 log1p sin sinh tan tanh "
    "pow atan2 hypot ldexp".split()
)


def has_body(name: str, dtype: DataType) -> bool:
    """Whether `name` on values of `dtype` is computed by a body of ours."""
    return (name, str(dtype.element)) in BODIES


def expand(
    name: str, args: Sequence[ir.Expr], source: DataType, target: DataType, cpu: CpuDescription | None = None
) -> ir.Expr:
    """The body of `name` on `args`, the best for that CPU; without one, it is plain arithmetic.

    `decode` takes the bits of a small float type `source` to float32, and `encode` a float32 to the bits of `target`.
    """
    element = target if name == "encode" else source
    key = name, str(element.element)
    if cpu is not None and key in BODIES_AVX512 and has_avx512(source, cpu):
        return BODIES_AVX512[key](*args)
    return (BODIES.get(key) or DIVISIONS[key])(*args)


def body_types(name: str, source: DataType, target: DataType) -> tuple[DataType, DataType]:
    """The types of the arguments and of the result of a body; `decode` takes and `encode` gives bits."""
    if name == "decode":
        return DataType(f"uint{source.bits}").with_lanes(source.lanes), target
    if name == "encode":
        return source, DataType(f"uint{target.bits}").with_lanes(target.lanes)
    return source, target
