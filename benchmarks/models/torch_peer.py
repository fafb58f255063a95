"""torch_peer: an ONNX graph as a torch module, for the operators of the models that are raced.

    module = torch_module(onnx.load("resnet50.onnx"))
    with torch.inference_mode():
        y = module(x)

It is what someone would have written by hand: one call of torch for each node, weights as parameters, channels in the
order they come. The graph becomes an `fx.GraphModule`, whose code is those calls one below the other: nothing is
interpreted between them, and `torch.compile` sees all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn


class NotRaced(Exception):
    """An operator that none of the models has."""


def torch_module(model: Any) -> nn.Module:
    """The graph of an onnx.ModelProto as a module; several outputs are a tuple."""
    from onnx import helper, numpy_helper

    opset = max(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    root, graph = nn.Module(), fx.Graph()
    values: dict[str, Any] = {"": None}
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in arrays:
            values[value.name] = graph.placeholder(_identifier(value.name))
    for node in model.graph.node:
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        if node.op_type == "Constant":
            arrays[node.output[0]] = numpy_helper.to_array(attributes["value"])
            continue
        if node.op_type not in _OPERATORS:
            raise NotRaced(f"{node.op_type}, of the node {node.name or node.output[0]!r}")
        operator, known = _OPERATORS[node.op_type]
        inputs = []
        for place, name in enumerate(node.input):
            if place in known:  # a number or a shape that torch takes as such
                inputs.append(arrays[name].tolist() if name else None)
                continue
            if name not in values:
                values[name] = graph.get_attr(_parameter(root, f"w{len(values)}", arrays[name]))
            inputs.append(values[name])
        if node.op_type == "Softmax":
            attributes["flattens"] = opset < 13
        made = graph.call_function(operator, tuple(inputs), attributes)
        values[node.output[0]] = made
    outputs = tuple(values[value.name] for value in model.graph.output)
    graph.output(outputs[0] if len(outputs) == 1 else outputs)
    return fx.GraphModule(root, graph).eval()


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _parameter(root: nn.Module, name: str, array: np.ndarray) -> str:
    tensor = torch.from_numpy(np.array(array))  # memory of its own
    if tensor.is_floating_point():
        root.register_parameter(name, nn.Parameter(tensor, requires_grad=False))
    else:
        root.register_buffer(name, tensor)
    return name


# --- operators: what ONNX means, in torch -----------------------------------------------------------------------------


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    kernel_shape: Sequence[int] = (),
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilations: Sequence[int] = (1, 1),
    group: int = 1,
) -> Tensor:
    x, same = _padded(x, pads, 0.0)
    return F.conv2d(x, weight, bias, tuple(strides), same, tuple(dilations), group)


def max_pool(
    x: Tensor, *, kernel_shape: Sequence[int], strides: Sequence[int] = (1, 1), pads: Sequence[int] = (0, 0, 0, 0)
) -> Tensor:
    x, same = _padded(x, pads, float("-inf"))
    return F.max_pool2d(x, tuple(kernel_shape), tuple(strides), same)


def average_pool(
    x: Tensor,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    count_include_pad: int = 0,
) -> Tensor:
    """Padding that is not the same on both sides is counted by the mean of a mask, unless it takes part."""
    padded, same = _padded(x, pads, 0.0)
    size, steps, counts = tuple(kernel_shape), tuple(strides), bool(count_include_pad)
    if padded is x or counts:
        return F.avg_pool2d(padded, size, steps, same, count_include_pad=counts)
    inside, _ = _padded(torch.ones_like(x[:1, :1]), pads, 0.0)
    return F.avg_pool2d(padded, size, steps) / F.avg_pool2d(inside, size, steps)


def _padded(x: Tensor, pads: Sequence[int], value: float) -> tuple[Tensor, tuple[int, int]]:
    """What torch pads itself is left to it: the same before and after."""
    top, left, bottom, right = pads
    if top == bottom and left == right:
        return x, (top, left)
    return F.pad(x, (left, right, top, bottom), value=value), (0, 0)


def global_average_pool(x: Tensor) -> Tensor:
    return x.mean((2, 3), keepdim=True)


def relu(x: Tensor) -> Tensor:
    return F.relu(x)


def lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    return F.local_response_norm(x, size, alpha, beta, bias)


def batch_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float = 1e-5, **_: Any
) -> Tensor:
    return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)


def layer_normalization(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-5
) -> Tensor:
    return F.layer_norm(x, x.shape[axis:], scale, bias, epsilon)


def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    transA: int = 0,
    transB: int = 0,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Tensor:
    a, b = a.t() if transA else a, b.t() if transB else b
    return alpha * (a @ b) if c is None else torch.addmm(c, a, b, beta=beta, alpha=alpha)


def softmax(x: Tensor, *, axis: int | None = None, flattens: bool) -> Tensor:
    """Before opset 13, all axes from `axis` on are one."""
    if not flattens:
        return F.softmax(x, -1 if axis is None else axis)
    return F.softmax(x.flatten(1 if axis is None else axis), -1).view(x.shape)


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    return x.reshape([x.shape[place] if size == 0 else size for place, size in enumerate(shape)])


def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    return x.flatten(axis)


def transpose(x: Tensor, *, perm: Sequence[int]) -> Tensor:
    return x.permute(tuple(perm))


def unsqueeze(x: Tensor, *, axes: Sequence[int]) -> Tensor:
    for axis in sorted(axes):
        x = x.unsqueeze(axis)
    return x


def concat(*parts: Tensor, axis: int) -> Tensor:
    return torch.cat(parts, axis)


def gather(table: Tensor, places: Tensor, *, axis: int = 0) -> Tensor:
    return F.embedding(places, table) if axis == 0 and table.dim() == 2 else torch.index_select(table, axis, places)


def clip(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    return torch.clamp(x, low, high)


def add(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def total(*parts: Tensor) -> Tensor:
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found


def multiply(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def divide(x: Tensor, y: Tensor) -> Tensor:
    return x / y


def matmul(x: Tensor, y: Tensor) -> Tensor:
    return x @ y


def erf(x: Tensor) -> Tensor:
    return torch.erf(x)


def dropout(x: Tensor, **_: Any) -> Tensor:
    """Nothing: nobody trains here."""
    return x


# With the places of inputs that are numbers when the module is made.
_OPERATORS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {
    "Add": (add, ()),
    "AveragePool": (average_pool, ()),
    "BatchNormalization": (batch_normalization, ()),
    "Clip": (clip, (1, 2)),
    "Concat": (concat, ()),
    "Conv": (conv, ()),
    "Div": (divide, ()),
    "Dropout": (dropout, ()),
    "Erf": (erf, ()),
    "Flatten": (flatten, ()),
    "Gather": (gather, ()),
    "Gemm": (gemm, ()),
    "GlobalAveragePool": (global_average_pool, ()),
    "LRN": (lrn, ()),
    "LayerNormalization": (layer_normalization, ()),
    "MatMul": (matmul, ()),
    "MaxPool": (max_pool, ()),
    "Mul": (multiply, ()),
    "Relu": (relu, ()),
    "Reshape": (reshape, (1,)),
    "Softmax": (softmax, ()),
    "Sum": (total, ()),
    "Transpose": (transpose, ()),
    "Unsqueeze": (unsqueeze, ()),
}
