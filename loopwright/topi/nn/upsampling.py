"""upsampling: pictures and volumes with more pixels, by a factor along each axis; `image.resize2d` does the work."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

import numpy as np

from loopwright import te
from loopwright.ir import Expr, FloatImm, as_expr
from loopwright.topi.image.resize import resize2d, resize3d, spatial_axes
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import known
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.testing.image import resize
from loopwright.topi.types import Arguments, Scalar, Shape


def _scaled(size: int, scale: float) -> int:
    return floor(size * scale + 0.5)


def _upsampling(
    data: np.ndarray,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> np.ndarray:
    mode = "align_corners" if align_corners else "asymmetric"
    letters = [letter for letter in layout if letter.isalpha()]
    sizes = [_scaled(data.shape[letters.index(axis)], scale) for axis, scale in (("H", scale_h), ("W", scale_w))]
    return resize(data, (), sizes, layout, method.removeprefix("bi"), mode)


def _weighed(args: Arguments, exact: np.ndarray) -> np.ndarray:
    """Up to 16 pixels times their weights, which are a few operations themselves; none is larger than the greatest."""
    return 40 * float(np.finfo("float32").eps) * np.abs(args[0]).max()


def _samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((2, 3, 4, 5)), 2, 3))
    yield Sample((whole_numbers((1, 4, 3, 2), "int8"), 1.5, 2.0, "NHWC"))
    yield Sample((whole_numbers((1, 2, 3, 3, 4), "float16"), 2, 2, "NCHW4c"))
    yield Sample((real_numbers((2, 2, 4, 5)), 2, 1.5, "NCHW", "bilinear"), bound=_weighed)
    yield Sample((real_numbers((2, 2, 4, 5)), 2, 2, "NCHW", "bilinear", True), bound=_weighed)
    yield Sample((real_numbers((1, 4, 5, 2)), 2, 2, "NHWC", "bicubic"), bound=_weighed)
    yield Sample((np.zeros((0, 2, 3, 3), "float32"), 2, 2))


@operator(reference=_upsampling, samples=_samples, name="nn.upsampling")
def upsampling(
    data: te.Tensor,
    scale_h: Scalar,
    scale_w: Scalar,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Shape | None = None,
) -> te.Tensor:
    """Height and width times `scale_h` and `scale_w`, rounded; methods nearest_neighbor, bilinear, bicubic."""
    op = "upsampling"
    choose(op, "method", method, ("nearest_neighbor", "bilinear", "bicubic"))
    axes = spatial_axes(op, layout, "HW", data)
    size = [scaled_size(data.shape[axis], scale) for axis, scale in zip(axes, (scale_h, scale_w), strict=True)]
    mode = "align_corners" if align_corners else "asymmetric"
    return resize2d(data, (0.0,) * 4, size, layout, method.removeprefix("bi"), mode, output_shape=output_shape)


def _upsampling3d(
    data: np.ndarray,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> np.ndarray:
    scales = (("D", scale_d), ("H", scale_h), ("W", scale_w))
    sizes = [_scaled(data.shape[layout.index(axis)], scale) for axis, scale in scales]
    return resize(data, (), sizes, layout, method.removeprefix("tri"), coordinate_transformation_mode)


def _samples3d() -> Iterator[Sample]:
    yield Sample((whole_numbers((2, 2, 3, 2, 3)), 2, 2, 2))
    yield Sample((whole_numbers((1, 3, 2, 2, 2), "int32"), 1.5, 2, 1, "NDHWC", "nearest_neighbor", "asymmetric"))
    yield Sample((real_numbers((1, 2, 2, 3, 3)), 2, 2, 2, "NCDHW", "trilinear", "align_corners"), bound=_weighed)


@operator(reference=_upsampling3d, samples=_samples3d, name="nn.upsampling3d")
def upsampling3d(
    data: te.Tensor,
    scale_d: Scalar,
    scale_h: Scalar,
    scale_w: Scalar,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: Shape | None = None,
) -> te.Tensor:
    """Depth, height and width times their scales, rounded; methods nearest_neighbor, trilinear."""
    op = "upsampling3d"
    choose(op, "method", method, ("nearest_neighbor", "trilinear"))
    axes = spatial_axes(op, layout, "DHW", data)
    scales = (scale_d, scale_h, scale_w)
    size = [scaled_size(data.shape[axis], scale) for axis, scale in zip(axes, scales, strict=True)]
    plain = method.removeprefix("tri")
    return resize3d(data, (0.0,) * 6, size, layout, plain, coordinate_transformation_mode, output_shape=output_shape)


def scaled_size(size: Expr, scale: Scalar) -> Expr:
    """`size` times `scale`, rounded to the nearest; sizes that are known at the call are scaled when it is made."""
    factor = scale.value if isinstance(scale, FloatImm) else scale
    number = known(size)
    if number is not None and isinstance(factor, (int, float)):
        return as_expr(_scaled(number, factor))
    if isinstance(factor, int):
        return size * factor
    return te.round(size.astype("float64") * as_expr(factor).astype("float64")).astype(size.dtype)
