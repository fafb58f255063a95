"""FoldScaleAxis: a factor for each channel goes into the weights.

    %0 = nn.conv2d(%x, w);                  →    %0 = nn.conv2d(%x, w * reshape(s, (-1, 1, 1, 1)));
    nn.relu(%0 + b) * s                          nn.relu(%0 + b * s)

Backward, from a product towards the convolution (or dense layer) it came from: through sums, whose other operand takes
the factor as well, and through what a positive factor passes unchanged (relu, pooling). Forward, from a product to the
convolutions that use it. Only where nothing else uses what is changed, and where the weights are constants or smaller
than the data: then the factor costs nothing, or less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function
from loopwright.relay.op.registry import make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call, is_constant, use_counts
from loopwright.relay.types import TensorType, is_dynamic, same_dim

_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
# What a positive factor a channel passes unchanged; and what any factor does.
_POSITIVE = ("nn.relu", "nn.leaky_relu")
_POSITIVE_POOLS = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.global_max_pool2d", "nn.adaptive_max_pool2d")
_LINEAR_POOLS = ("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.global_avg_pool2d", "nn.adaptive_avg_pool2d")


# How a call is rebuilt from the operand that takes the factor, and that operand.
_Path = tuple[Callable[[Expr], Expr], Expr]


class _Scale:
    """A factor for each index along an axis: `vector` is an expression of one dimension."""

    def __init__(self, vector: object, axis: int, length: int) -> None:
        self.vector = vector
        self.axis = axis
        self.length = length

    @property
    def is_positive(self) -> bool:
        return isinstance(self.vector, Constant) and bool((self.vector.data > 0).all())

    def shaped(self, shape: Sequence[int]) -> Expr:
        """The factors in another shape of as many elements."""
        if isinstance(self.vector, Constant):
            return Constant(self.vector.data.reshape(tuple(shape)))
        return make("reshape", self.vector, newshape=tuple(shape))

    def along(self, axis: int, rank: int) -> Expr:
        """The factors along `axis` of a tensor of `rank` dimensions, 1 after it."""
        return self.shaped((self.length, *[1] * (rank - 1 - axis)))


def channel_scale(given: object, given_type: TensorType, result: TensorType) -> _Scale | None:
    """The factor a channel that an operand of a product is: all but one of its sizes are 1."""
    sizes = [*[1] * (len(result.shape) - len(given_type.shape)), *given_type.shape]
    wide = [axis for axis, size in enumerate(sizes) if not same_dim(size, 1)]
    if len(wide) != 1 or not isinstance(sizes[wide[0]], int) or not same_dim(sizes[wide[0]], result.shape[wide[0]]):
        return None
    length = int(sizes[wide[0]])  # type: ignore[arg-type]
    scale = _Scale(given, wide[0], length)
    return _Scale(given if len(given_type.shape) == 1 else scale.shaped((length,)), wide[0], length)


class _Fold(TypedRewrite):
    """What both directions need: who uses what, and how weights take a factor."""

    def __init__(self, mod: IRModule, root: Expr) -> None:
        super().__init__(mod)
        self.uses = use_counts(root)
        self.came: dict[Expr, Expr] = {}  # rewritten call → the one it came from

    def visit_call(self, call: Call) -> Expr:
        changed = super().visit_call(call)
        self.came[changed] = call
        return changed

    def used_once(self, expression: Expr) -> bool:
        return self.uses.get(self.came.get(expression, expression), 1) <= 1

    def scaled_operand(self, operand: Expr, scale: _Scale, result: TensorType) -> Expr | None:
        """An operand of a sum times the factor, where that is cheap: it is smaller than the result, or constant."""
        of = self.tensor_type(operand)
        if of is None:
            return None
        small = sum(not same_dim(size, 1) for size in of.shape) <= 1
        if not small and not is_constant(operand):
            return None
        return _times(operand, scale.along(scale.axis, len(result.shape)))

    def _worth_it(self, data: Expr, weight: Expr) -> bool:
        if is_constant(weight):
            return True
        one, other = self.tensor_type(data), self.tensor_type(weight)
        if one is None or other is None or is_dynamic(other):
            return False
        return is_dynamic(one) or bool(np.prod(other.concrete_shape) <= np.prod(one.concrete_shape))

    def scaled_outputs(self, call: Call, scale: _Scale) -> Expr | None:
        """The call with weights whose output channels have the factor; None where that cannot be."""
        if call.op.name in _CONVOLUTIONS:
            layout, attrs = str(call.attrs.out_layout or call.attrs.data_layout), call.attrs
            if not _is_plain(layout) or layout.index("C") != scale.axis or not _is_plain(attrs.kernel_layout):
                return None
            return self._with_weight(call, scale, attrs.kernel_layout, depthwise_axis="I")
        of = self.tensor_type(call)
        if of is None or scale.axis != len(of.shape) - 1:
            return None
        if is_call(call, "nn.dense"):
            return self._with_weight(call, scale, "OI")
        if is_call(call, "nn.matmul"):
            weight = self.tensor_type(call.args[1])
            if weight is not None and len(weight.shape) == 2:
                return self._with_weight(call, scale, "OI" if call.attrs.transpose_b else "IO")
        return None

    def scaled_inputs(self, call: Call, scale: _Scale) -> Expr | None:
        """The call with weights whose input channels have the factor."""
        if call.op.name in _CONVOLUTIONS:
            layout, attrs = str(call.attrs.data_layout), call.attrs
            if not _is_plain(layout) or layout.index("C") != scale.axis or not _is_plain(attrs.kernel_layout):
                return None
            if attrs.groups == 1:
                return self._with_weight(call, scale, attrs.kernel_layout, letter="I")
            data, weight = self.type_of(call.args[0]), self.type_of(call.args[1])
            if attrs.is_depthwise(data, weight):
                return self._with_weight(call, scale, attrs.kernel_layout)
            return None
        of = self.tensor_type(call.args[0])
        if is_call(call, "nn.dense") and of is not None and scale.axis == len(of.shape) - 1:
            return self._with_weight(call, scale, "OI", letter="I")
        return None

    def _with_weight(
        self, call: Call, scale: _Scale, layout: str, letter: str = "O", depthwise_axis: str = ""
    ) -> Expr | None:
        data, weight = call.args
        of = self.tensor_type(weight)
        if of is None or len(of.shape) != len(layout) or not self._worth_it(data, weight) or is_dynamic(of):
            return None
        sizes = dict(zip(layout, of.concrete_shape, strict=True))
        factors: Expr
        if sizes[letter] == scale.length:
            factors = scale.shaped([size if axis == letter else 1 for axis, size in sizes.items()])
        elif depthwise_axis and sizes["O"] * sizes["I"] == scale.length:
            # Several windows a channel: output c·multiplier + m is window m of channel c.
            factors = scale.shaped([sizes[axis] if axis in "OI" else 1 for axis in "OI" + _others(layout)])
            order = [("OI" + _others(layout)).index(axis) for axis in layout]
            factors = _transposed(factors, order)
        else:
            return None
        return Call(call.op, [data, _times(weight, factors)], call.attrs, span=call.span)


def _is_plain(layout: str) -> bool:
    return layout.isalpha() and layout.isupper()


def _others(layout: str) -> str:
    return "".join(axis for axis in layout if axis not in "OI")


def _transposed(value: Expr, order: Sequence[int]) -> Expr:
    if isinstance(value, Constant):
        return Constant(np.ascontiguousarray(value.data.transpose(order)))
    return make("transpose", value, axes=tuple(order))


def _times(one: object, other: object) -> Expr:
    if isinstance(one, Constant) and isinstance(other, Constant):
        with np.errstate(all="ignore"):
            return Constant(np.asarray(one.data * other.data, one.data.dtype))
    return make("multiply", one, other)


class _Backward(_Fold):
    """From a product to the weights of what is multiplied."""

    def rewrite(self, call: Call) -> Expr:
        if not is_call(call, "multiply"):
            return call
        of = self.tensor_type(call)
        if of is None or not of.dtype.is_float:
            return call
        for location in (1, 0):
            given = self.tensor_type(call.args[location])
            if given is None:
                continue
            scale = channel_scale(call.args[location], given, of)
            if scale is not None:
                result = self._into(call.args[1 - location], scale)
                if result is not None:
                    return result
        return call

    def _into(self, start: Expr, scale: _Scale) -> Expr | None:
        """The expression times the factor, with the factor in its weights; None where it does not reach them."""
        path: list[_Path] = []  # calls on the way down, whose first operand (or the named one) is followed
        current = start
        while True:
            step = self._step(current, scale)
            if step is None:
                return None
            if isinstance(step, Expr):
                result = step
                break
            path.append(step)
            current = step[1]
        for rebuild, _ in reversed(path):
            result = rebuild(result)
        return result

    def _step(self, call: Expr, scale: _Scale) -> Expr | _Path | None:
        """The call with the factor inside; or how it is rebuilt from the operand that takes it, and that operand."""
        of = self.tensor_type(call)
        if not isinstance(call, Call) or of is None or not self.used_once(call) or not hasattr(call.op, "name"):
            return None
        if len(of.shape) <= scale.axis or not same_dim(of.shape[scale.axis], scale.length):
            return None
        name = call.op.name
        result = self.scaled_outputs(call, scale)
        if result is not None:
            return result
        if _passes(call, scale):
            return (lambda new: Call(call.op, [new, *call.args[1:]], call.attrs, span=call.span)), call.args[0]
        if name == "nn.bias_add" and call.attrs.axis % len(of.shape) == scale.axis:
            bias = _times(call.args[1], scale.vector)
            return (lambda new: Call(call.op, [new, bias], call.attrs, span=call.span)), call.args[0]
        if name in ("add", "subtract"):
            return self._through_sum(call, scale, of)
        return None

    def _through_sum(self, call: Call, scale: _Scale, of: TensorType) -> _Path | None:
        for location in (1, 0):
            other = self.scaled_operand(call.args[location], scale, of)
            if other is None:
                continue

            def rebuilt(new: Expr, index: int = location, other: Expr = other) -> Expr:
                return Call(call.op, [new, other] if index == 1 else [other, new], call.attrs, span=call.span)

            return rebuilt, call.args[1 - location]
        return None


def _passes(call: Call, scale: _Scale) -> bool:
    """Whether the factor may be taken before the call, and the result is the same."""
    name = call.op.name
    if name in _POSITIVE:
        return scale.is_positive
    if name in (*_LINEAR_POOLS, *_POSITIVE_POOLS):
        layout = str(call.attrs.layout)
        plain = _is_plain(layout) and call.attrs.out_layout in ("", layout) and layout.index("C") == scale.axis
        return plain and (name in _LINEAR_POOLS or scale.is_positive)
    if name == "nn.pad":
        value = call.args[1]
        return call.attrs.pad_mode != "constant" or (isinstance(value, Constant) and not value.data.any())
    return False


class _Forward(_Fold):
    """From a product to the weights of those who use it."""

    def rewrite(self, call: Call) -> Expr:
        if call.op.name not in (*_CONVOLUTIONS, "nn.dense"):
            return call
        result = self._before(call.args[0])
        if result is None:
            return call
        data, scale = result
        changed = self.scaled_inputs(Call(call.op, [data, call.args[1]], call.attrs, span=call.span), scale)
        return call if changed is None else changed

    def _before(self, start: Expr) -> tuple[Expr, _Scale] | None:
        """The data without its factor, and the factor."""
        path: list[Call] = []
        current = start
        while isinstance(current, Call) and self.used_once(current) and hasattr(current.op, "name"):
            of = self.tensor_type(current)
            if is_call(current, "multiply"):
                answer = None if of is None or not of.dtype.is_float else self._factor(current, of)
                if answer is None or not all(_passes(each, answer[1]) for each in path):
                    return None
                result = answer[0]
                for each in reversed(path):
                    result = Call(each.op, [result, *each.args[1:]], each.attrs, span=each.span)
                return result, answer[1]
            if current.op.name not in (*_POSITIVE, *_POSITIVE_POOLS, *_LINEAR_POOLS, "nn.pad"):
                return None
            path.append(current)
            current = current.args[0]
        return None

    def _factor(self, product: Call, of: TensorType) -> tuple[Expr, _Scale] | None:
        for location in (1, 0):
            given, other = self.tensor_type(product.args[location]), self.tensor_type(product.args[1 - location])
            if given is None or other is None or len(other.shape) != len(of.shape):
                continue
            if not all(map(same_dim, other.shape, of.shape)):
                continue
            scale = channel_scale(product.args[location], given, of)
            if scale is not None:
                return product.args[1 - location], scale
        return None


def BackwardFoldScaleAxis() -> GraphPass:
    """Take factors that follow a convolution into its weights."""

    def fold(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Backward(mod, function).apply(function)

    return GraphPass(fold, PassInfo(3, "BackwardFoldScaleAxis"))


def ForwardFoldScaleAxis() -> GraphPass:
    """Take factors that come before a convolution into its weights."""

    def fold(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Forward(mod, function).apply(function)

    return GraphPass(fold, PassInfo(3, "ForwardFoldScaleAxis"))


def FoldScaleAxis() -> GraphPass:
    """Take factors into weights: backward, then forward."""

    def fold(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        backward = _Backward(mod, function).apply(function)
        return _Forward(mod, backward).apply(backward)

    return GraphPass(fold, PassInfo(3, "FoldScaleAxis"))
