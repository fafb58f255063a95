"""requantize: integers of one scale as integers of another, without a rounding in between.

    out = round((data - zero point) · multiplier / 2^shift) + new zero point

The quotient of the scales is a fraction of 31 bits and a shift, the product has 64 bits, and halves are rounded up
(UPWARD) or away from zero (TONEAREST). Scales that are constants become numbers in the graph; others are taken apart
when the program runs, with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Final

import numpy as np

from loopwright import te, topi
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import const as number
from loopwright.ir.intrinsics import maximum, minimum, reinterpret, select
from loopwright.ir.types import Type
from loopwright.relay.errors import BadAttribute, TypeMismatch
from loopwright.relay.expr import Expr, const
from loopwright.relay.op.qnn.scales import along, cast, check_scale, limits, numbers, rank_of, saturated
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.types import TensorType
from loopwright.te.tags import default_tag
from loopwright.topi import tag

_ROUNDINGS: Final = ("UPWARD", "TONEAREST")
_COMPUTE_TYPES: Final = ("int64", "float32", "float64")


def fraction_and_shift(scale: object) -> tuple[np.ndarray, np.ndarray]:
    """`scale` = fraction / 2^shift, the fraction below 2^31."""
    part, exponent = np.frexp(np.asarray(scale, np.float64))
    fraction = np.floor(part * 2.0**31 + 0.5).astype(np.int64)
    is_full = fraction == 2**31
    fraction = np.where(is_full, 2**30, fraction)
    return fraction, np.clip(31 - (exponent + is_full), 1, 62).astype(np.int64)


@register("qnn.requantize", Kind.BROADCAST)
class Requantize(Operator):
    """Integers of one scale and zero point as those of another, within the limits of `out_dtype`."""

    axis: int = -1
    rounding: str = "UPWARD"
    compute_dtype: str = "int64"
    out_dtype: str = "int8"

    def infer(
        self,
        data: TensorType,
        input_scale: TensorType,
        input_zero_point: TensorType,
        output_scale: TensorType,
        output_zero_point: TensorType,
    ) -> Type:
        if not data.dtype.is_int:
            raise TypeMismatch(f"qnn.requantize takes integers, and not {data}")
        check_scale("qnn.requantize", data, self.axis, input_scale, input_zero_point)
        check_scale("qnn.requantize", data, self.axis, output_scale, output_zero_point)
        return TensorType(data.shape, self.out_dtype)

    def expand(  # type: ignore[override]
        self, data: Expr, input_scale: Expr, input_zero_point: Expr, output_scale: Expr, output_zero_point: Expr
    ) -> Expr | None:
        one, other = numbers(input_scale), numbers(output_scale)
        if one is None or other is None:
            return None
        rank = rank_of(data)
        away = cast(data, "int64") - make("cast", along(input_zero_point, self.axis, rank), dtype="int64")
        ratio = np.asarray(one, np.float64) / np.asarray(other, np.float64)

        def placed(values: np.ndarray, dtype: str) -> Expr:
            result = const(values, dtype)
            return along(result, self.axis, rank)

        if self.compute_dtype == "int64":
            fraction, shift = fraction_and_shift(ratio)
            half = np.left_shift(np.int64(1), shift - 1)
            product = away * placed(fraction, "int64")
            if self.rounding == "TONEAREST":  # the half of a negative number goes down
                below = make("less", product, const(0, "int64"))
                nudged = product + make("where", below, placed(half - 1, "int64"), placed(half, "int64"))
            else:
                nudged = product + placed(half, "int64")
            rounded = make("right_shift", nudged, placed(shift, "int64"))
            moved = rounded + make("cast", along(output_zero_point, self.axis, rank), dtype="int64")
        else:
            real = make("cast", away, dtype=self.compute_dtype) * placed(ratio, self.compute_dtype)
            up = make("floor", real + const(0.5, self.compute_dtype))
            rounded = make("round", real) if self.rounding == "TONEAREST" else up
            limit = float(2**31 - 128)
            whole = make("cast", make("clip", rounded, a_min=-limit, a_max=limit), dtype="int64")
            moved = whole + make("cast", along(output_zero_point, self.axis, rank), dtype="int64")
        return saturated(moved, self.out_dtype)

    def compute(self, data: te.Tensor, *scales: te.Tensor) -> te.Tensor:
        at = self.axis % data.ndim if data.ndim else 0
        low, high = limits(self.out_dtype)

        def cell(*indices: PrimExpr) -> PrimExpr:
            one, zero, other, new_zero = [_read(scale, indices, at) for scale in scales]
            ratio = one.astype("float64") / other.astype("float64")
            away = data(*indices).astype("int64") - zero.astype("int64")
            rounded = self._scaled(away, ratio)
            limited = minimum(maximum(rounded + new_zero.astype("int64"), number(low, "int64")), number(high, "int64"))
            return limited.astype(self.out_dtype)

        return te.compute(data.shape, cell, name="T_requantize", tag=default_tag(tag.BROADCAST))

    def _scaled(self, away: PrimExpr, ratio: PrimExpr) -> PrimExpr:
        """`away` · `ratio`, rounded, as int64."""
        if self.compute_dtype != "int64":
            real = away.astype(self.compute_dtype) * ratio.astype(self.compute_dtype)
            rounded = topi.round(real) if self.rounding == "TONEAREST" else topi.floor(real + 0.5)
            limit = number(float(2**31 - 128), self.compute_dtype)
            return maximum(minimum(rounded, limit), -limit).astype("int64")
        # The bits of a float64: 11 of the exponent, 52 of the fraction after the leading one.
        bits = reinterpret("int64", ratio)
        exponent = ((bits >> 52) & 2047) - 1022
        whole = (bits & (2**52 - 1)) | 2**52
        fraction = (whole + (1 << 21)) >> 22
        is_full = fraction.equal(2**31)
        fraction = select(is_full, number(2**30, "int64"), fraction)
        shift = 31 - select(is_full, exponent + 1, exponent)
        shift = minimum(maximum(shift, number(1, "int64")), number(62, "int64"))
        half = number(1, "int64") << (shift - 1)
        product = away * fraction
        if self.rounding == "TONEAREST":
            half = select(product < 0, half - 1, half)
        return (product + half) >> shift

    def reference(self, data: np.ndarray, *scales: np.ndarray) -> np.ndarray:
        at = self.axis % data.ndim if data.ndim else 0
        after = [1] * (data.ndim - 1 - at) if data.ndim else []
        one, zero, other, new_zero = [s.reshape([-1, *after]) if s.ndim else s for s in scales]
        away = data.astype(np.int64) - zero
        ratio = one.astype(np.float64) / other.astype(np.float64)
        low, high = limits(self.out_dtype)
        if self.compute_dtype == "int64":
            fraction, shift = fraction_and_shift(ratio)
            product, half = away * fraction, np.left_shift(np.int64(1), shift - 1)
            nudge = np.where(product < 0, half - 1, half) if self.rounding == "TONEAREST" else half
            rounded = (product + nudge) >> shift
        else:
            real = away.astype(self.compute_dtype) * ratio.astype(self.compute_dtype)
            whole = np.trunc(real)
            away_from_zero = whole + np.where(np.abs(real - whole) >= 0.5, np.sign(real), 0)
            rounded = away_from_zero if self.rounding == "TONEAREST" else np.floor(real + 0.5)
            rounded = np.clip(rounded, -(2**31) + 128, 2**31 - 128).astype(np.int64)
        return np.clip(rounded + new_zero, low, high).astype(self.out_dtype)


def _read(scale: te.Tensor, indices: Sequence[PrimExpr], axis: int) -> PrimExpr:
    if not scale.ndim:
        return scale()
    return scale(0) if topi.utils.equal_const_int(scale.shape[0], 1) else scale(indices[axis])


_settings: ContextVar[tuple[str, str]] = ContextVar("loopwright_requantize", default=("UPWARD", "int64"))


class requantize_config:
    """`with requantize_config(rounding="TONEAREST"):` requantizations made inside round that way by default."""

    def __init__(self, rounding: str = "None", compute_dtype: str = "None", **_: object) -> None:
        default = _settings.get()
        self.rounding = default[0] if rounding == "None" else rounding
        self.compute_dtype = default[1] if compute_dtype == "None" else compute_dtype

    def __enter__(self) -> requantize_config:
        self._before = _settings.set((self.rounding, self.compute_dtype))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _settings.reset(self._before)


@calls("qnn.requantize")
def requantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
    out_dtype: str = "int8",
) -> Expr:
    """Integers of one scale and zero point as those of another; "None" stands for `requantize_config`'s choice."""
    default = _settings.get()
    how, kind = default[0] if rounding == "None" else rounding, default[1] if compute_dtype == "None" else compute_dtype
    if how not in _ROUNDINGS:
        raise BadAttribute("qnn.requantize", f"rounding is {how!r}", _ROUNDINGS)
    if kind not in _COMPUTE_TYPES:
        raise BadAttribute("qnn.requantize", f"compute_dtype is {kind!r}", _COMPUTE_TYPES)
    scales = (input_scale, input_zero_point, output_scale, output_zero_point)
    made: Expr = make("qnn.requantize", data, *scales, axis=axis, rounding=how, compute_dtype=kind, out_dtype=out_dtype)
    return made
