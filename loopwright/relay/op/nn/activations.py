"""Activations in graphs: relu and its kin, the softmax family, dropout."""

from __future__ import annotations

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Call, Expr, const
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.op.sizes import normal_axis
from loopwright.relay.types import TensorType


@register("nn.relu", Kind.ELEMWISE)
class Relu(FromTopi):
    """max(x, 0)."""

    def infer(self, data: TensorType) -> Type:
        return data

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data = call.args[0]
        zeros = make("zeros_like", data)
        return [make("where", make("less", zeros, data), grad, zeros)]


@register("nn.leaky_relu", Kind.ELEMWISE)
class LeakyRelu(FromTopi):
    """x where it is positive, `alpha` times x elsewhere."""

    alpha: float = 0.01

    def infer(self, data: TensorType) -> Type:
        return data

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data = call.args[0]
        below = grad * make("full_like", grad, const(self.alpha))
        return [make("where", make("less", make("zeros_like", data), data), grad, below)]


@register("nn.prelu", Kind.BROADCAST)
class Prelu(FromTopi):
    """nn.leaky_relu with a slope for each index along `axis`."""

    axis: int = 1

    def infer_inputs(self, data: TensorType | None, alpha: TensorType | None) -> list[Type | None]:
        if data is not None and alpha is None:
            axis = normal_axis("nn.prelu", self.axis, len(data.shape))
            alpha = TensorType((data.shape[axis],), str(data.dtype))
        return [data, alpha]

    def infer(self, data: TensorType, alpha: TensorType) -> Type:
        return self.type_of_compute(data, alpha)


class _Softmax(FromTopi):
    axis: int = -1

    def infer(self, data: TensorType) -> Type:
        normal_axis(self.op_name, self.axis, len(data.shape))
        return data


@register("nn.softmax", Kind.OUT_FUSABLE)
class Softmax(_Softmax):
    """exp(x - max) / Σ exp(x - max) along `axis`."""

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        inner = make("sum", grad * call, axis=self.axis, keepdims=True, exclude=False)
        return [(grad - inner) * call]


@register("nn.fast_softmax", Kind.OUT_FUSABLE)
class FastSoftmax(_Softmax):
    """nn.softmax: our exponentials are quick as they are."""


@register("nn.log_softmax", Kind.OUT_FUSABLE)
class LogSoftmax(_Softmax):
    """The logarithm of nn.softmax, with no digits lost."""

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        total = make("sum", grad, axis=self.axis, keepdims=True, exclude=False)
        return [grad - make("exp", call) * total]


@register("nn.dropout", Kind.OPAQUE)
class Dropout(Operator):
    """The data as it is, and a mask of ones: nothing is dropped when nothing is trained."""

    results = 2

    rate: float = 0.5

    def infer(self, data: TensorType) -> Type:
        return TupleType((data, data))

    def compute(self, data: te.Tensor) -> list[te.Tensor]:
        return [topi.identity(data), topi.full_like(data, 1)]

    def reference(self, data: np.ndarray) -> list[np.ndarray]:
        return [data, np.ones_like(data)]

    def expand(self, data: Expr) -> list[Expr]:  # type: ignore[override]
        return [data, make("ones_like", data)]


@calls("nn.dropout")
def dropout(data: Expr, rate: float = 0.5) -> Expr:
    """The data as it is; in training, some of it would be dropped."""
    first: Expr = make("nn.dropout", data, rate=rate)[0]
    return first
