"""insert: the graph with quantize and dequantize around the tensors that products read.

    nn.conv2d(%x, w)    →    nn.conv2d(dequantize(quantize(%x, s, 0), s, 0), dequantize(w as int8, t, 0))

A tensor is quantized once, for all that read it: sums of branches read bytes too. Zero points are 0, so that products
need no corrections: a tensor that cannot be negative is uint8, any other int8. Weights are int8, with a scale for the
tensor or one for each output channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, const
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.op.registry import make
from loopwright.relay.quantize.config import QConfig
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.transform.types.infer_type import InferType
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import ExprMutator, post_order

CONVOLUTIONS: Final = ("nn.conv2d",)
# Operators whose results are never negative, and those whose results are not where their arguments are not.
_NOT_NEGATIVE: Final = ("nn.relu", "sigmoid", "nn.softmax", "exp", "abs", "sqrt")
_KEEPS_SIGN: Final = (
    "nn.max_pool2d nn.avg_pool2d nn.global_avg_pool2d nn.global_max_pool2d nn.adaptive_avg_pool2d reshape transpose "
    "squeeze expand_dims nn.batch_flatten strided_slice concatenate add multiply maximum nn.dropout copy mean sum"
).split()


@dataclass(frozen=True, eq=False)
class Layer:
    """A product that is to be one of integers."""

    call: Call

    @property
    def data(self) -> Expr:
        return self.call.args[0]

    @property
    def weight(self) -> Constant:
        result = self.call.args[1]
        assert isinstance(result, Constant)
        return result

    @property
    def channel(self) -> int:
        """The axis of the weights that counts output channels."""
        return int(self.call.attrs.kernel_layout.index("O")) if self.call.op.name in CONVOLUTIONS else 0

    @property
    def has_channels(self) -> bool:
        """Whether that axis counts all of them: depthwise weights may have a second axis for several of one input."""
        if self.call.op.name not in CONVOLUTIONS:
            return True
        attrs, of = self.call.attrs, self.call.checked_type
        assert isinstance(of, TensorType)
        result = of.shape[(attrs.out_layout or attrs.data_layout).index("C")]
        return bool(self.weight.data.shape[self.channel] == result)


def layers_of(main: Function, config: QConfig) -> list[Layer]:
    """The products of float32 by constant weights, but for those that the settings skip."""
    result: dict[str, list[Layer]] = {"conv": [], "dense": []}
    for each in post_order(main.body):
        if not is_call(each, *CONVOLUTIONS, "nn.dense") or not isinstance(each.args[1], Constant):
            continue
        types = [each.checked_type, each.args[0].checked_type, each.args[1].checked_type]
        if all(isinstance(of, TensorType) and str(of.dtype) == "float32" for of in types):
            result["dense" if is_call(each, "nn.dense") else "conv"].append(Layer(each))
    used = _without(result["conv"], config.skip_conv_layers)
    if not config.skip_dense_layer:
        used += _without(result["dense"], config.skip_dense_layers)
    return used


def _without(layers: Sequence[Layer], skipped: Iterable[int] | None) -> list[Layer]:
    locations = {location % len(layers) for location in skipped or () if -len(layers) <= location < len(layers)}
    return [layer for index, layer in enumerate(layers) if index not in locations]


def is_never_negative(data: Expr) -> bool:
    """Whether no element of the tensor can be below 0, whatever the inputs of the model are."""
    known: dict[Expr, bool] = {}
    for each in post_order(data):
        if is_call(each, *_NOT_NEGATIVE):
            known[each] = True
        elif is_call(each, "clip"):
            known[each] = each.attrs.a_min >= 0
        elif is_call(each, *_KEEPS_SIGN):
            known[each] = all(known.get(arg, False) for arg in each.args)
        elif isinstance(each, Tuple):
            known[each] = all(known.get(field, False) for field in each.fields)
        elif isinstance(each, Constant):
            known[each] = each.data.dtype.kind != "f" or bool((each.data >= 0).all())
    return known.get(data, False)


class _Insert(ExprMutator):
    def __init__(self, layers: Sequence[Layer], scales: Mapping[Expr, tuple[float, str]], config: QConfig) -> None:
        super().__init__()
        self.calls = {layer.call: layer for layer in layers}
        self.scales = scales
        self.config = config

    def _enter(self, expression: Expr) -> Expr:
        result = super()._enter(expression)
        if expression in self.scales:  # whoever reads it reads the rounded one
            result = self.memo_map[expression] = rounded(result, *self.scales[expression])
        return result

    def visit_call(self, call: Call) -> Expr:
        changed = super().visit_call(call)
        layer = self.calls.get(call)
        if layer is None:
            return changed
        assert isinstance(changed, Call)
        args = [changed.args[0], _integers(layer, self.config), *changed.args[2:]]
        return Call(changed.op, args, changed.attrs, changed.type_args, changed.span)


def rounded(value: Expr, scale: float, dtype: str) -> Expr:
    """The value as the nearest numbers that integers of the scale stand for."""
    step, zero = const(scale, "float32"), const(0, "int32")
    stored = make("qnn.quantize", value, step, zero, out_dtype=dtype, rounding="TONEAREST_EVEN")
    stored.span = getattr(value, "span", None)  # kernels are named after the operator that ends them
    return make("qnn.dequantize", stored, step, zero)


def _integers(layer: Layer, config: QConfig) -> Expr:
    """The weights as the integers they are nearest to, dequantized."""
    weight, axis = layer.weight.data.astype("float64"), layer.channel
    top = 2 ** (config.nbit_weight - 1) - 1
    others = tuple(k for k in range(weight.ndim) if k != axis)
    by_channel = config.weight_scale == "channel" and layer.has_channels
    sizes = np.abs(weight).max(axis=others if by_channel else None, initial=0.0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    if config.weight_scale == "power2":
        sizes = 2.0 ** np.ceil(np.log2(sizes))
    scale = np.maximum(sizes / top, np.finfo("float32").tiny).astype("float32")
    shape = [-1 if k == axis else 1 for k in range(weight.ndim)] if scale.ndim else []
    stored = np.clip(np.rint(weight / scale.reshape(shape)), -top, top)
    return make("qnn.dequantize", const(stored, "int8"), const(scale, "float32"), const(0, "int32"), axis=axis)


def insert(
    mod: IRModule, layers: Sequence[Layer], scales: Mapping[Expr, tuple[float, str]], config: QConfig
) -> IRModule:
    """The module with these layers on integers; `scales` has the step and the type of each tensor that they read."""
    main = graph_function(mod)
    body = _Insert(layers, scales, config).visit(main.body)
    changed = mod.copy()
    changed["main"] = main.rebuilt(main.params, body)  # type: ignore[assignment]
    return InferType()(changed)
