"""quantize, dequantize: from real numbers to integers of a scale, and back."""

from __future__ import annotations

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Expr, const
from loopwright.relay.op.composed import Composed
from loopwright.relay.op.qnn.scales import along, cast, check_scale, limits, rank_of
from loopwright.relay.op.registry import Kind, make, register
from loopwright.relay.types import TensorType


@register("qnn.quantize", Kind.BROADCAST)
class Quantize(Composed):
    """round(data / scale) + zero point, within the limits of `out_dtype`.

    Halves are rounded away from zero, or, with the rounding TONEAREST_EVEN, to the even integer.
    """

    axis: int = -1
    out_dtype: str = "int8"
    rounding: str = "TONEAREST"

    def infer(self, data: TensorType, output_scale: TensorType, output_zero_point: TensorType) -> Type:
        if not data.dtype.is_float:
            raise TypeMismatch(f"qnn.quantize takes real numbers, and not {data}")
        if self.rounding not in ("TONEAREST", "TONEAREST_EVEN"):
            raise TypeMismatch(f"qnn.quantize: rounding is {self.rounding!r}", hint="TONEAREST or TONEAREST_EVEN")
        check_scale("qnn.quantize", data, self.axis, output_scale, output_zero_point)
        return TensorType(data.shape, self.out_dtype)

    def expand(self, data: Expr, output_scale: Expr, output_zero_point: Expr) -> Expr:  # type: ignore[override]
        rank = rank_of(data)
        nearest = "rint" if self.rounding == "TONEAREST_EVEN" else "round"
        locations = make(nearest, cast(data, "float32") / along(output_scale, self.axis, rank))
        moved = locations + make("cast", along(output_zero_point, self.axis, rank), dtype="float32")
        low, high = limits(self.out_dtype)
        # The greatest float32 that an int32 holds is not its limit.
        top = float(high) if high < 2**24 else float(2**31 - 128)
        result: Expr = make("cast", make("clip", moved, a_min=float(low), a_max=top), dtype=self.out_dtype)
        return result


@register("qnn.dequantize", Kind.BROADCAST)
class Dequantize(Composed):
    """(data - zero point) · scale."""

    axis: int = -1
    out_dtype: str = "float32"

    def infer(self, data: TensorType, input_scale: TensorType, input_zero_point: TensorType) -> Type:
        if not data.dtype.is_int:
            raise TypeMismatch(f"qnn.dequantize takes integers, and not {data}")
        check_scale("qnn.dequantize", data, self.axis, input_scale, input_zero_point)
        return TensorType(data.shape, self.out_dtype)

    def expand(self, data: Expr, input_scale: Expr, input_zero_point: Expr) -> Expr:  # type: ignore[override]
        rank = rank_of(data)
        away = cast(data, "int32") - along(input_zero_point, self.axis, rank)
        real = make("cast", away, dtype="float32") * along(input_scale, self.axis, rank)
        result: Expr = real if self.out_dtype == "float32" else make("cast", real, dtype=self.out_dtype)
        return result


# The types that simulated quantization stands for, by the number its input carries.
PASSED_ON, INT8, UINT8, INT32 = -1, 0, 1, 2
_SIMULATED = {INT8: (-128, 127), UINT8: (0, 255), INT32: (-(2**31), 2**31 - 128)}


@register("qnn.simulated_quantize", Kind.BROADCAST)
class SimulatedQuantize(Composed):
    """What quantize gives, as real numbers; the type is a number that is known when the program runs.

    0 is int8, 1 uint8, 2 int32, and -1 leaves the data as it is.
    """

    axis: int = -1

    def infer(
        self,
        data: TensorType,
        in_dtype: TensorType,
        output_scale: TensorType,
        output_zero_point: TensorType,
    ) -> Type:
        check_scale("qnn.simulated_quantize", data, self.axis, output_scale, output_zero_point)
        return data

    def expand(self, data: Expr, in_dtype: Expr, output_scale: Expr, output_zero_point: Expr) -> Expr:  # type: ignore[override]
        rank = rank_of(data)
        locations = make("round", data / along(output_scale, self.axis, rank))
        moved = locations + make("cast", along(output_zero_point, self.axis, rank), dtype="float32")
        result = data
        for code, (low, high) in _SIMULATED.items():
            limited = make("clip", moved, a_min=float(low), a_max=float(high))
            result = make("where", make("equal", in_dtype, const(code, "int32")), limited, result)
        return result


@register("qnn.simulated_dequantize", Kind.BROADCAST)
class SimulatedDequantize(Composed):
    """(data - zero point) · scale of real numbers; a type of -1 leaves the data as it is."""

    axis: int = -1

    def infer(
        self, data: TensorType, in_dtype: TensorType, input_scale: TensorType, input_zero_point: TensorType
    ) -> Type:
        check_scale("qnn.simulated_dequantize", data, self.axis, input_scale, input_zero_point)
        return data

    def expand(self, data: Expr, in_dtype: Expr, input_scale: Expr, input_zero_point: Expr) -> Expr:  # type: ignore[override]
        rank = rank_of(data)
        away = data - make("cast", along(input_zero_point, self.axis, rank), dtype="float32")
        real = away * along(input_scale, self.axis, rank)
        result: Expr = make("where", make("equal", in_dtype, const(PASSED_ON, "int32")), data, real)
        return result
