"""FakeQuantizationToInteger: real numbers between dequantize and quantize become the integers they were.

    %0 = qnn.dequantize(%x, s, z);                   →    %0 = qnn.conv2d(%x, w, z, 0, s, t);
    %1 = nn.conv2d(%0, qnn.dequantize(w, t, 0));          %1 = clip(%0, 0, …);
    qnn.quantize(nn.relu(%1), u, y)                       qnn.requantize(%1, s * t, 0, u, y)

An island reaches from a quantize back to the dequantizes (and constants) it depends on. Every operator in it needs a
rule (`fake_quantization/rules.py`); where one has none the island stays as it is, or, with `hard_fail`, an error says
which. `use_qat` also takes what has no quantize after it: a convolution of dequantized tensors becomes a dequantized
convolution of integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple
from loopwright.relay.op.registry import Op, make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.precision.fake_quantization.affine import Affine, Operand, Quantized, requantized
from loopwright.relay.transform.precision.fake_quantization.rules import KEEPS_NUMBERS, RULES
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.types import TensorType
from loopwright.runtime.errors import LoopwrightError

PRODUCTS = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul")


class NoIntegerRule(LoopwrightError, ValueError):
    """FakeQuantizationToInteger was told to fail where an operator has no rule for integers, and one has none.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(3,), dtype="int8")
        one, zero = relay.const(1.0), relay.const(0)
        y = relay.qnn.op.quantize(relay.cos(relay.qnn.op.dequantize(x, one, zero)), one, zero)
        relay.transform.FakeQuantizationToInteger(hard_fail=True)(relay.IRModule.from_expr(relay.Function([x], y)))
    """

    code = "LW1221"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} stands between dequantize and quantize, and there is no rule for it on integers",
            hint="register_fake_quantization_to_integer adds one; without hard_fail it is computed in real numbers",
        )


class _Island:
    """One island: the integers of each expression in it, from the dequantizes to its end."""

    def __init__(self, types: TypedRewrite) -> None:
        self.types = types
        self.found: dict[Expr, Operand] = {}
        self.failed: str | None = None

    def value(self, root: Expr, wanted: Affine | None) -> Operand | None:
        """The integers of an expression; None where a rule is missing."""
        order = self._order(root, wanted)
        if order is None:
            return None
        for expression, want in order:
            result = self._one(expression, want)
            if result is None:
                return None
            self.found[expression] = result
        return self.found[root]

    def _order(self, root: Expr, wanted: Affine | None) -> list[tuple[Expr, Affine | None]] | None:
        """The expressions of the island, arguments first, each with the affine that may be given there."""
        order: list[Expr] = []
        entered: set[Expr] = set()
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            expression, ready = stack.pop()
            if ready:
                order.append(expression)
                continue
            if expression in entered:
                continue
            entered.add(expression)
            below = self._below(expression)
            if below is None:
                self.failed = getattr(getattr(expression, "op", None), "name", type(expression).__name__)
                return None
            stack.append((expression, True))
            stack.extend((part, False) for part in reversed(below))
        wants: dict[Expr, Affine | None] = {root: wanted}
        for expression in reversed(order):
            want = wants[expression]
            keeps = isinstance(expression, Tuple) or (
                isinstance(expression, Call) and expression.op.name in KEEPS_NUMBERS
            )
            for part in self._below(expression) or ():
                given = want if keeps else None
                # What two want differently has a scale of its own.
                wants[part] = given if wants.get(part, given) is given else None
        return [(expression, wants[expression]) for expression in order]

    def _below(self, expression: Expr) -> Sequence[Expr] | None:
        """What an expression of the island depends on, in it; None for one that cannot be in it."""
        if isinstance(expression, Constant) or is_call(expression, "qnn.dequantize"):
            return ()
        if isinstance(expression, Tuple):
            return expression.fields
        if isinstance(expression, Call) and isinstance(expression.op, Op) and expression.op.name in RULES:
            return expression.args
        return None

    def _one(self, expression: Expr, wanted: Affine | None) -> Operand | None:
        if isinstance(expression, Constant):
            return expression
        if isinstance(expression, Tuple):
            return [self.found[field] for field in expression.fields]
        if is_call(expression, "qnn.dequantize"):
            data, scale, zero = expression.args
            of = self.types.tensor_type(data)
            assert isinstance(of, TensorType)
            axis = expression.attrs.axis % max(len(of.shape), 1)
            return Quantized(data, Affine(scale, zero, str(of.dtype), axis))
        assert isinstance(expression, Call)
        for arg in expression.args:
            self.types.type_of(arg)
        self.types.type_of(expression)
        args = [self.found[arg] for arg in expression.args]
        if not any(isinstance(arg, (Quantized, list)) for arg in args):
            return None
        result = RULES[expression.op.name](expression, args, wanted)
        if result is None:
            self.failed = expression.op.name
        return result


class _ToInteger(TypedRewrite):
    def __init__(self, mod: IRModule, hard_fail: bool, use_qat: bool, optional: Sequence[str]) -> None:
        super().__init__(mod)
        self.hard_fail = hard_fail
        self.products = frozenset([*(PRODUCTS if use_qat else ()), *optional])

    def rewrite(self, call: Call) -> Expr:
        if is_call(call, "qnn.quantize"):
            return self._quantize(call)
        if call.op.name in self.products:
            return integer_product(self, call)
        return call

    def _quantize(self, call: Call) -> Expr:
        data, scale, zero = call.args
        if isinstance(data, Constant):
            return call
        of = self.tensor_type(call)
        assert of is not None
        wanted = Affine(scale, zero, str(call.attrs.out_dtype), call.attrs.axis % max(len(of.shape), 1))
        island = _Island(self)
        result = island.value(data, wanted)
        if result is None:
            if self.hard_fail and island.failed is not None and self._has_dequantize(data):
                raise NoIntegerRule(island.failed)
            return call
        return requantized(result, wanted) if isinstance(result, Quantized) else call

    def _has_dequantize(self, data: Expr) -> bool:
        from loopwright.relay.visitor import post_order

        return any(is_call(each, "qnn.dequantize") for each in post_order(data))


def integer_product(types: TypedRewrite, call: Call) -> Expr:
    """A product of dequantized tensors as a dequantized product of integers; the call where it is none."""
    if not all(is_call(arg, "qnn.dequantize") for arg in call.args):
        return call
    result = _Island(types).value(call, None)
    if not isinstance(result, Quantized):
        return call
    scale = result.affine.scale, result.affine.zero_point
    return make("qnn.dequantize", result.expr, *scale, axis=result.affine.axis)


def FakeQuantizationToInteger(
    hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: Sequence[str] | None = None
) -> GraphPass:
    """Compute on integers what stands between dequantize and quantize."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _ToInteger(mod, hard_fail, use_qat, tuple(optional_qnn_ops or ())).apply(function)

    return GraphPass(change, PassInfo(0, "FakeQuantizationToInteger"))
