"""Cells around and between those of a tensor: pad, mirror_pad, dilate, upsampling; dyn.* where the program counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import SupportsInt

import numpy as np

from loopwright import te, topi
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import maximum, minimum
from loopwright.ir.types import Type
from loopwright.relay.errors import BadAttribute, TypeMismatch
from loopwright.relay.expr import Constant, Expr, const
from loopwright.relay.op.from_topi import FromTopi, only_interpreted, type_of_compute
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.types import AnyDim, Dim, TensorType, as_dim
from loopwright.te.tags import default_tag
from loopwright.topi.nn.padding import require_cells

_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect"}


@register("nn.pad", Kind.INJECTIVE)
class Pad(Operator):
    """Cells around the data: `pad_width` has a pair for each dimension.

    `pad_mode` is "constant" (they are `pad_value`), "edge" (the nearest cell) or "reflect" (mirrored, edge left out).
    A width may be an expression of size variables; one that turns out negative cuts cells off.
    """

    pad_width: tuple[tuple[int, int], ...]
    pad_mode: str = "constant"

    def infer(self, data: TensorType, pad_value: TensorType) -> Type:
        if len(self.pad_width) != len(data.shape):
            raise TypeMismatch(
                f"nn.pad: pad_width has {len(self.pad_width)} pairs, and the data {len(data.shape)} dimensions: {data}",
                hint="give a pair (before, after) for each dimension",
            )
        if self.pad_mode not in _MODES:
            raise TypeMismatch(f"nn.pad: pad_mode is {self.pad_mode!r}", hint=f"it is one of {', '.join(_MODES)}")
        return type_of_compute(self, data, pad_value)

    def _sides(self) -> tuple[list[int], list[int]]:
        return [low for low, _ in self.pad_width], [high for _, high in self.pad_width]

    def compute(self, data: te.Tensor, pad_value: te.Tensor) -> te.Tensor:
        before, after = self._sides()
        if self.pad_mode == "reflect":
            return topi.nn.mirror_pad(data, before, after, "REFLECT")
        if self.pad_mode == "edge":
            return _edge_pad(data, before, after)
        value = pad_value() if not pad_value.shape else pad_value(*[0] * pad_value.ndim)
        return topi.nn.pad(data, before, after, value.astype(data.dtype))

    def reference(self, data: np.ndarray, pad_value: np.ndarray) -> np.ndarray:
        if self.pad_mode == "constant":
            return np.pad(data, self.pad_width, constant_values=pad_value.reshape(()).astype(data.dtype))
        return np.pad(data, self.pad_width, mode=self.pad_mode)  # type: ignore[call-overload]


def _edge_pad(data: te.Tensor, before: Sequence[int], after: Sequence[int]) -> te.Tensor:
    shape = [size + low + high for size, low, high in zip(data.shape, before, after, strict=True)]
    for size, low, high in zip(data.shape, before, after, strict=True):
        if not low == high == 0:
            require_cells("nn.pad", size, 1)

    def cell(*at: PrimExpr) -> PrimExpr:
        inside = [
            index if low == high == 0 else maximum(minimum(index - low, size - 1), 0)
            for index, low, high, size in zip(at, before, after, data.shape, strict=True)
        ]
        return data(*inside)

    return te.compute(shape, cell, name="T_edge_pad", tag=default_tag(f"{topi.tag.INJECTIVE},pad"))


Width = SupportsInt | PrimExpr


@calls("nn.pad")
def pad(
    data: Expr, pad_width: Expr | Iterable[tuple[Width, Width]], pad_value: object = 0, pad_mode: str = "constant"
) -> Expr:
    """Cells around the data; the widths may be an expression, of shape (dimensions, 2)."""
    value = pad_value if isinstance(pad_value, Expr) else const(pad_value)
    widths = pad_width.data.tolist() if isinstance(pad_width, Constant) else pad_width
    result: Expr
    if isinstance(widths, Expr):
        result = make("dyn.nn.pad", data, widths, value, pad_mode=pad_mode)
    else:
        pairs = tuple((_width(low), _width(high)) for low, high in widths)
        result = make("nn.pad", data, value, pad_width=pairs, pad_mode=pad_mode)
    return result


def _width(given: Width) -> Dim:
    return as_dim(given) if isinstance(given, PrimExpr) else int(given)


@register("dyn.nn.pad", Kind.OPAQUE)
class DynPad(Operator):
    """nn.pad by widths that the program computes."""

    pad_mode: str = "constant"

    def infer(self, data: TensorType, pad_width: TensorType, pad_value: TensorType) -> Type:
        return TensorType([AnyDim() for _ in data.shape], str(data.dtype))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.nn.pad", "pad_width")

    def reference(self, data: np.ndarray, pad_width: np.ndarray, pad_value: np.ndarray) -> np.ndarray:
        pairs = tuple((int(low), int(high)) for low, high in pad_width)
        return Pad(pad_width=pairs, pad_mode=self.pad_mode).reference(data, pad_value)


@register("nn.mirror_pad", Kind.INJECTIVE)
class MirrorPad(FromTopi):
    """The data mirrored around itself; "SYMMETRIC" repeats the edge, "REFLECT" does not."""

    mode: str = "SYMMETRIC"
    pad_width: tuple[tuple[int, int], ...]

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def arguments(self, data: object) -> list[object]:
        return [data, [low for low, _ in self.pad_width], [high for _, high in self.pad_width], self.mode]


@calls("nn.mirror_pad")
def mirror_pad(data: Expr, pad_width: Iterable[tuple[SupportsInt, SupportsInt]], mode: str = "SYMMETRIC") -> Expr:
    """The data mirrored around itself, by pairs (before, after) for each dimension."""
    pairs = tuple((int(low), int(high)) for low, high in pad_width)
    result: Expr = make("nn.mirror_pad", data, pad_width=pairs, mode=mode)
    return result


@register("nn.dilate", Kind.INJECTIVE)
class Dilate(FromTopi):
    """The data with its neighbours `strides` cells apart, `dilation_value` between them."""

    strides: tuple[int, ...]
    dilation_value: float = 0.0

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("nn.upsampling", Kind.INJECTIVE)
class Upsampling(FromTopi):
    """Height and width times their scales."""

    scale_h: float = 1
    scale_w: float = 1
    layout: str = "NCHW"
    method: str = "nearest_neighbor"
    align_corners: bool = False

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@calls("nn.upsampling")
def upsampling(
    data: Expr,
    scale_h: object = 1,
    scale_w: object = 1,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Expr:
    """Height and width times their scales, which may be expressions."""
    scales = [_scale("nn.upsampling", one) for one in (scale_h, scale_w)]
    attributes: dict[str, object] = {"layout": layout, "method": method, "align_corners": align_corners}
    result: Expr
    if any(isinstance(one, Expr) for one in scales):
        given = [one if isinstance(one, Expr) else const(float(one)) for one in scales]
        result = make("dyn.nn.upsampling", data, *given, **attributes)
    else:
        result = make("nn.upsampling", data, scale_h=scales[0], scale_w=scales[1], **attributes)
    return result


def _scale(op: str, given: object) -> Expr | float:
    if isinstance(given, Constant):
        return given.data.reshape(()).item()
    if not isinstance(given, (Expr, int, float)):
        raise BadAttribute(op, f"a scale is {given!r}, which is no number", ["scale_h", "scale_w"])
    return given


@register("dyn.nn.upsampling", Kind.OPAQUE)
class DynUpsampling(Operator):
    """nn.upsampling by scales that the program computes."""

    layout: str = "NCHW"
    method: str = "nearest_neighbor"
    align_corners: bool = False

    def infer(self, data: TensorType, scale_h: TensorType, scale_w: TensorType) -> Type:
        letters = [axis for axis in self.layout if axis.isalpha()]
        sizes = zip(letters, data.shape, strict=True)
        return TensorType([AnyDim() if axis in "HW" else size for axis, size in sizes], str(data.dtype))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.nn.upsampling", "a scale")

    def reference(self, data: np.ndarray, scale_h: np.ndarray, scale_w: np.ndarray) -> np.ndarray:
        scales = {"scale_h": scale_h.reshape(()).item(), "scale_w": scale_w.reshape(()).item()}
        return Upsampling(**scales, **dict(self.items())).reference(data)


@register("nn.upsampling3d", Kind.INJECTIVE)
class Upsampling3d(FromTopi):
    """Depth, height and width times their scales."""

    scale_d: float = 1
    scale_h: float = 1
    scale_w: float = 1
    layout: str = "NCDHW"
    method: str = "nearest_neighbor"
    coordinate_transformation_mode: str = "half_pixel"

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)
