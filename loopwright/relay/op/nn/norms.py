"""Normalisation in graphs.

batch_norm becomes a product and a sum before anything is compiled (`expand`), so that convolutions take it in. The
others are kernels of their own: layer_norm and its kin read each row while it is near, which a chain of reductions and
element-wise operators would not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Expr, const
from loopwright.relay.op.from_topi import FromTopi, type_of_compute
from loopwright.relay.op.registry import Kind, Operator, make, register
from loopwright.relay.op.sizes import normal_axes, normal_axis
from loopwright.relay.types import TensorType
from loopwright.topi.registry import OPERATORS


def _channels(op: str, data: TensorType | None, axis: int, given: list[TensorType | None]) -> list[Type | None]:
    """Parameters without a type have one number for each index along `axis`."""
    if data is None:
        return [data, *given]
    size = data.shape[normal_axis(op, axis, len(data.shape))]
    own = TensorType((size,), str(data.dtype))
    return [data, *[own if one is None else one for one in given]]


Data = te.Tensor | np.ndarray  # an input of `compute`, and of `reference`


@register("nn.batch_norm", Kind.OUT_FUSABLE)
class BatchNorm(FromTopi):
    """(x - mean) / sqrt(variance + epsilon) · gamma + beta, for each channel; and the mean and variance again."""

    results = 3

    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True

    def infer_inputs(self, data: TensorType | None, *given: TensorType | None) -> list[Type | None]:
        return _channels("nn.batch_norm", data, self.axis, list(given))

    def infer(
        self, data: TensorType, gamma: TensorType, beta: TensorType, moving_mean: TensorType, moving_var: TensorType
    ) -> Type:
        self.type_of_compute(data, gamma, beta, moving_mean, moving_var)
        return TupleType((data, moving_mean, moving_var))

    def expand(self, data: Expr, gamma: Expr, beta: Expr, mean: Expr, var: Expr) -> list[Expr]:  # type: ignore[override]
        of = data.checked_type
        assert isinstance(of, TensorType)
        axis = normal_axis("nn.batch_norm", self.axis, len(of.shape))
        dtype = str(of.dtype)
        factor = const(1.0, dtype) / make("sqrt", var + const(self.epsilon, dtype))
        factor = factor * gamma if self.scale else factor
        shift = make("negative", mean) * factor
        shift = shift + beta if self.center else shift
        after = len(of.shape) - 1 - axis

        def along(value: Expr) -> Expr:
            spread: Expr = make("expand_dims", value, axis=1, num_newaxis=after) if after else value
            return spread

        return [data * along(factor) + along(shift), mean, var]


class _Norm(Operator):
    """One tensor and a factor and a term for each index along an axis.

    Each class says its attributes, in the order of the call: `axis`, `epsilon`, `center` (add beta), `scale`.
    """

    axis: ClassVar[int]
    epsilon: ClassVar[float]
    center: ClassVar[bool]
    scale: ClassVar[bool]

    def infer_inputs(
        self, data: TensorType | None, gamma: TensorType | None, beta: TensorType | None
    ) -> list[Type | None]:
        return _channels(self.op_name, data, self.axis, [gamma, beta])

    def infer(self, data: TensorType, gamma: TensorType, beta: TensorType) -> Type:
        return type_of_compute(self, data, gamma, beta)

    def call_topi(self, data: Data, gamma: Data | None, beta: Data | None) -> tuple[str, list[object]]:
        """The function of topi, and its arguments."""
        raise NotImplementedError

    def compute(self, data: te.Tensor, gamma: te.Tensor, beta: te.Tensor) -> te.Tensor:
        name, arguments = self.call_topi(data, gamma if self.scale else None, beta if self.center else None)
        return getattr(topi.nn, name)(*arguments)

    def reference(self, data: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
        given = gamma if self.scale else np.ones_like(gamma), beta if self.center else np.zeros_like(beta)
        wide = [one.astype(np.result_type(one.dtype, np.float32)) for one in (data, *given)]
        name, arguments = self.call_topi(*wide)
        return OPERATORS[f"nn.{name}"].reference(*arguments)


@register("nn.layer_norm", Kind.OUT_FUSABLE)
class LayerNorm(_Norm):
    """Normalised along `axis`; gamma and beta have its size."""

    axis: int = -1  # type: ignore[misc]
    epsilon: float = 1e-5  # type: ignore[misc]
    center: bool = True  # type: ignore[misc]
    scale: bool = True  # type: ignore[misc]

    def call_topi(self, data: Data, gamma: Data | None, beta: Data | None) -> tuple[str, list[object]]:
        return "layer_norm", [data, gamma, beta, [self.axis], self.epsilon]


@register("nn.instance_norm", Kind.OUT_FUSABLE)
class InstanceNorm(_Norm):
    """Each channel of each image normalised; `axis` is that of the channels."""

    axis: int = 1  # type: ignore[misc]
    epsilon: float = 1e-5  # type: ignore[misc]
    center: bool = True  # type: ignore[misc]
    scale: bool = True  # type: ignore[misc]

    def call_topi(self, data: Data, gamma: Data | None, beta: Data | None) -> tuple[str, list[object]]:
        channel = normal_axis("nn.instance_norm", self.axis, data.ndim)
        axes = [axis for axis in range(1, data.ndim) if axis != channel]
        return "instance_norm", [data, gamma, beta, axes, self.epsilon, channel]


@register("nn.group_norm", Kind.OUT_FUSABLE)
class GroupNorm(_Norm):
    """Channels in `num_groups` groups, each group of each image normalised; `axis` is that of the channels."""

    num_groups: int
    axis: int = 1  # type: ignore[misc]
    epsilon: float = 1e-5  # type: ignore[misc]
    center: bool = True  # type: ignore[misc]
    scale: bool = True  # type: ignore[misc]

    def call_topi(self, data: Data, gamma: Data | None, beta: Data | None) -> tuple[str, list[object]]:
        channel = normal_axis("nn.group_norm", self.axis, data.ndim)
        axes = [axis for axis in range(1, data.ndim) if axis != channel]
        return "group_norm", [data, gamma, beta, self.num_groups, channel, axes, self.epsilon]


@register("nn.rms_norm", Kind.OUT_FUSABLE)
class RmsNorm(FromTopi):
    """x / sqrt(mean of x² + epsilon) · weight, along `axis`."""

    axis: int | Sequence[int] = -1
    epsilon: float = 1e-5

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        return self.type_of_compute(data, weight)

    def arguments(self, data: object, weight: object) -> list[object]:
        return [data, weight, list(self.axis) if isinstance(self.axis, tuple) else [self.axis], self.epsilon]


@register("nn.lrn", Kind.OPAQUE)
class Lrn(FromTopi):
    """x / (bias + alpha · Σ x² over `size` neighbours along `axis` / size) ** beta."""

    size: int = 5
    axis: int = 1
    bias: float = 2.0
    alpha: float = 1e-5
    beta: float = 0.75

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def arguments(self, data: object) -> list[object]:
        return [data, self.size, self.axis, self.alpha, self.beta, self.bias]


@register("nn.l2_normalize", Kind.OUT_FUSABLE)
class L2Normalize(Operator):
    """x / sqrt(max(Σ x² along `axis`, eps)); over all axes without one."""

    eps: float
    axis: int | Sequence[int] | None = None

    def infer(self, data: TensorType) -> Type:
        normal_axes("nn.l2_normalize", self._axes(), len(data.shape))
        return data

    def _axes(self) -> int | Sequence[int] | None:
        return None if self.axis in (None, ()) else self.axis

    def expand(self, data: Expr) -> Expr:
        of = data.checked_type
        assert isinstance(of, TensorType)
        dtype = str(of.dtype)
        total = make("sum", data * data, axis=self._axes(), keepdims=True, exclude=False)
        length: Expr = data / make("sqrt", make("maximum", total, const(self.eps, dtype)))
        return length

    def compute(self, data: te.Tensor) -> te.Tensor:
        total = topi.sum(topi.multiply(data, data), self._axes(), keepdims=True)
        return topi.divide(data, topi.sqrt(topi.maximum(total, self.eps)))

    def reference(self, data: np.ndarray) -> np.ndarray:
        axes = tuple(normal_axes("nn.l2_normalize", self._axes(), data.ndim))
        return data / np.sqrt(np.maximum((data * data).sum(axis=axes, keepdims=True), self.eps))
