"""IntegerProducts: products of dequantized tensors are sums of integers, and what follows has the scale of its result.

    %0 = nn.conv2d(dequantize(%x, s, 0), dequantize(w, t, 0));    →    %0 = cast(qnn.conv2d(%x, w, …), "float32");
    %1 = nn.relu(add(%0, b));                                          %1 = add(%0 * (s·t/u), b/u);
    qnn.quantize(%1, u, 0)                                             cast(clip(rint(nn.relu(%1)), …), "int8")

Between the product and the quantize numbers are real, so any operator may stand there and no rounding is added. The
scale of the result is divided into constants and scales on the way, where operators let it pass (sums, relu, limits):
no element is divided. A quantize moves before what only moves numbers (reshape, max_pool, concatenate), which so moves
bytes. Islands without a product are left to FakeQuantizationToInteger.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, const
from loopwright.relay.op.qnn.scales import limits
from loopwright.relay.op.registry import make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.precision.fake_quantization_to_integer import PRODUCTS, integer_product
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call, use_counts
from loopwright.relay.visitor import post_order

# Operators that a quantize may move before: their results are numbers of their first argument.
_MOVES: Final = (
    "reshape transpose squeeze expand_dims nn.batch_flatten strided_slice concatenate "
    "nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.global_max_pool2d"
).split()
_SUMS: Final = "add subtract maximum minimum nn.bias_add".split()
_DEEPEST: Final = 32  # expressions between a product and its quantize that are looked through


class _Products(TypedRewrite):
    """Products of dequantized tensors as dequantized products of integers."""

    def rewrite(self, call: Call) -> Expr:
        return integer_product(self, call) if call.op.name in PRODUCTS else call


class _Epilogues(TypedRewrite):
    """What stands between such products and a quantize, in the scale of the quantize."""

    def __init__(self, mod: IRModule, uses: dict[Expr, int]) -> None:
        super().__init__(mod)
        self.uses = uses

    def visit_call(self, call: Call) -> Expr:
        if is_call(call, "qnn.quantize") and all(map(_is_one_number, call.args[1:])) and _number(call.args[1]) > 0:
            result = self._quantized(call, call.args[0], _DEEPEST)
            if result is not None:
                result.span = result.span or call.span
                return result
        return super().visit_call(call)

    def _is_inside(self, expression: Expr, depth: int) -> bool:
        """Whether an expression is computed for this one use, and not too far away."""
        return depth > 0 and isinstance(expression, (Call, Tuple)) and self.uses.get(expression, 0) <= 1

    def _quantized(self, call: Call, data: Expr, depth: int) -> Expr | None:
        """The integers that the quantize makes of `data`; None where it is left as it is."""
        if self._is_inside(data, depth) and is_call(data, *_MOVES):
            if is_call(data, "concatenate"):
                if not isinstance(data.args[0], Tuple) or not self._is_inside(data.args[0], depth):
                    return None
                fields = data.args[0].fields
                parts = [self._quantized(call, field, depth - 1) for field in fields]
                if all(part is None for part in parts):
                    return None
                both = zip(fields, parts, strict=True)
                whole = [self._plain(call, field) if part is None else part for field, part in both]
                return Call(data.op, [Tuple(whole)], data.attrs, span=data.span)
            inner = self._quantized(call, data.args[0], depth - 1)
            rest = [self.visit(arg) for arg in data.args[1:]]
            return None if inner is None else Call(data.op, [inner, *rest], data.attrs, span=data.span)
        if not self._is_epilogue(data, depth):
            return None
        zero = _number(call.args[2])
        low, high = limits(str(call.attrs.out_dtype))
        # A limit at 0 is that of the type where 0 is its least number.
        covered = data.args[0] if is_call(data, "nn.relu") and zero == low else data
        scaled = self._scaled(covered, 1.0 / _number(call.args[1]), depth)
        nearest = make("rint" if call.attrs.rounding == "TONEAREST_EVEN" else "round", scaled)
        moved = nearest + const(zero, "float32") if zero else nearest
        top = float(high) if high < 2**24 else float(2**31 - 128)
        limited = make("clip", moved, a_min=float(low), a_max=top)
        return make("cast", limited, dtype=call.attrs.out_dtype)

    def _plain(self, call: Call, data: Expr) -> Expr:
        return Call(call.op, [self.visit(data), *call.args[1:]], call.attrs, span=call.span)

    def _is_epilogue(self, data: Expr, depth: int) -> bool:
        """Whether there is a product, or a sum of quantized tensors, to which the scale can be moved."""
        if not self._is_inside(data, depth) or not isinstance(data, Call):
            return False
        if is_call(data, "qnn.dequantize"):
            return is_call(data.args[0], *_INTEGER_PRODUCTS)
        if is_call(data, "nn.relu", "clip"):
            return self._is_epilogue(data.args[0], depth - 1)
        if is_call(data, *_SUMS, "multiply", "divide"):
            is_sum = is_call(data, "add", "subtract") and all(is_call(arg, "qnn.dequantize") for arg in data.args)
            return is_sum or any(self._is_epilogue(arg, depth - 1) for arg in data.args)
        return False

    def _scaled(self, data: Expr, factor: float, depth: int) -> Expr:
        """`data` times a factor, which is multiplied into constants and scales as far as they reach."""
        if isinstance(data, Constant):
            return const(data.data.astype("float64") * factor, "float32")
        if is_call(data, "qnn.dequantize"):
            result = self._dequantized(data, factor)
            if result is not None:
                return result
        if self._is_inside(data, depth):
            if is_call(data, "nn.relu"):
                return Call(data.op, [self._scaled(data.args[0], factor, depth - 1)], data.attrs, span=data.span)
            if is_call(data, "clip"):
                bounds = {"a_min": data.attrs.a_min * factor, "a_max": data.attrs.a_max * factor}
                return make("clip", self._scaled(data.args[0], factor, depth - 1), **bounds)
            if is_call(data, *_SUMS):
                both = [self._scaled(arg, factor, depth - 1) for arg in data.args]
                return Call(data.op, both, data.attrs, span=data.span)
            if is_call(data, "multiply", "divide"):
                # Into a constant where one is a factor, else into the first, which may have scales of its own.
                one, other = data.args
                if is_call(data, "multiply") and isinstance(other, Constant):
                    both = [self.visit(one), self._scaled(other, factor, depth - 1)]
                else:
                    both = [self._scaled(one, factor, depth - 1), self.visit(other)]
                return Call(data.op, both, data.attrs, span=data.span)
        return self.visit(data) * const(factor, "float32")

    def _dequantized(self, data: Call, factor: float) -> Expr | None:
        """(q - zero point) · scale · factor; None where scales are no constants, or somebody else needs it too."""
        stored, scale, zero = data.args
        if not isinstance(scale, Constant) or not isinstance(zero, Constant):
            return None
        if is_call(stored, *_INTEGER_PRODUCTS) and self.uses.get(data, 0) > 1:
            return None
        of = self.tensor_type(stored)
        if of is None:
            return None
        rank = len(of.shape)
        after = [1] * (rank - 1 - data.attrs.axis % rank) if rank else []

        def beside(numbers: np.ndarray) -> Expr:
            return const(numbers.reshape((-1, *after) if numbers.size > 1 else ()), "float32")

        factors = np.asarray(scale.data, "float64") * factor
        real = make("cast", self.visit(stored), dtype="float32")
        scaled = real * beside(factors)
        return scaled - beside(np.asarray(zero.data, "float64") * factors) if zero.data.any() else scaled


_INTEGER_PRODUCTS: Final = tuple(name.replace("nn.", "qnn.") for name in PRODUCTS)


def _number(value: Expr) -> float:
    assert isinstance(value, Constant)
    return float(np.asarray(value.data).reshape(()))


def _is_one_number(value: Expr) -> bool:
    return isinstance(value, Constant) and value.data.size == 1


def IntegerProducts() -> GraphPass:
    """Products of dequantized tensors as sums of integers; what follows them is real, in the scale of its quantize."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        if not any(is_call(each, "qnn.dequantize") for each in post_order(function.body)):
            return function
        result = _Products(mod).apply(function)
        return _Epilogues(mod, use_counts(result.body)).apply(result)

    return GraphPass(change, PassInfo(0, "IntegerProducts"))
