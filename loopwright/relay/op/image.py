"""Operators on pictures: resized, cropped, warped and dilated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from loopwright import te
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.from_topi import FromTopi, numbers_of, only_interpreted
from loopwright.relay.op.nn.convolutions import windows
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.types import AnyDim, TensorType
from loopwright.topi.registry import OPERATORS

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


class _Resize(FromTopi):
    size: tuple[object, ...]
    layout: str
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = ""
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: str | None = None
    roi: tuple[float, ...] | None = None

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.roi, self.size, *_options(self))


def _options(attrs: Any) -> tuple[object, ...]:
    """The arguments of topi's function behind the size."""
    mode, rounding = attrs.coordinate_transformation_mode, attrs.rounding_method
    cubic = attrs.cubic_alpha, attrs.cubic_exclude
    return (attrs.layout, attrs.method, mode, rounding, *cubic, attrs.extrapolation_value, attrs.out_dtype or None)


def _resizing(count: int) -> None:
    """Enter resize1d, resize2d or resize3d."""
    name, default = f"image.resize{count}d", _LAYOUTS[count]
    words = f"A picture of {count} dimension{'s' * (count > 1)} with more or fewer pixels."
    register(name, Kind.INJECTIVE)(type(f"Resize{count}d", (_Resize,), {"__doc__": words, "layout": default}))

    @calls(name)
    def resize(
        data: Expr,
        size: object,
        roi: object = None,
        layout: str = default,
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "",
        cubic_alpha: float = -0.5,
        cubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: str | None = None,
    ) -> Expr:
        """The picture with `size` pixels along its spatial axes: numbers, or an expression that is a vector."""
        attributes: dict[str, object] = {
            "layout": layout,
            "method": method,
            "coordinate_transformation_mode": coordinate_transformation_mode,
            "rounding_method": rounding_method,
            "cubic_alpha": cubic_alpha,
            "cubic_exclude": cubic_exclude,
            "extrapolation_value": extrapolation_value,
            "out_dtype": out_dtype,
            "roi": _region(roi),
        }
        numbers = numbers_of(size)
        if numbers is None:
            result: Expr = make(f"dyn.{name}", data, size, **attributes)
        else:
            each = numbers * count if len(numbers) == 1 else numbers
            result = make(name, data, size=each, **attributes)
        return result

    resize.__name__ = resize.__qualname__ = f"resize{count}d"


def _region(roi: object) -> tuple[float, ...] | None:
    if roi is None:
        return None
    values = roi.data if isinstance(roi, Constant) else roi
    if isinstance(values, Expr):
        raise TypeMismatch("image.resize: the region of interest is an expression", hint="give it as numbers")
    return tuple(float(value) for value in np.asarray(values).reshape(-1)) or None


class _DynResize(Operator):
    layout: str
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = ""
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: str | None = None
    roi: tuple[float, ...] | None = None
    data_dependent = True
    topi_name: ClassVar[str]

    def infer(self, data: TensorType, size: TensorType) -> Type:
        letters = [letter for letter in str(self.layout) if letter.isalpha()]
        shape = [AnyDim() if letter in "DHW" else extent for letter, extent in zip(letters, data.shape, strict=True)]
        return TensorType(shape, str(self.out_dtype or data.dtype))

    def compute(self, data: te.Tensor, size: te.Tensor) -> te.Tensor:
        raise only_interpreted(self.op_name, "the size")

    def reference(self, data: np.ndarray, size: np.ndarray) -> np.ndarray:
        numbers = tuple(int(number) for number in size)
        return OPERATORS[type(self).topi_name].reference(data, self.roi, numbers, *_options(self))


for _count in _LAYOUTS:
    _resizing(_count)
    register(f"dyn.image.resize{_count}d", Kind.OPAQUE)(
        type(
            f"DynResize{_count}d",
            (_DynResize,),
            {
                "__doc__": f"`image.resize{_count}d` to a size that is a tensor.",
                "layout": _LAYOUTS[_count],
                "topi_name": f"image.resize{_count}d",
            },
        )
    )


@register("image.crop_and_resize", Kind.INJECTIVE)
class CropAndResize(FromTopi):
    """Boxes (y1, x1, y2, x2, as parts of the picture) cut out of pictures, each resized to `crop_size`."""

    crop_size: tuple[int, ...]
    layout: str = "NCHW"
    method: str = "bilinear"
    extrapolation_value: float = 0.0
    out_dtype: str | None = None

    def infer(self, data: TensorType, boxes: TensorType, box_indices: TensorType) -> Type:
        return self.type_of_compute(data, boxes, box_indices)

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.crop_size, self.layout, self.method, self.extrapolation_value, self.out_dtype or None)


@register("image.dilation2d", Kind.OUT_FUSABLE)
class Dilation2d(FromTopi):
    """Grey dilation: the greatest of the pixels of a window, each with its weight added."""

    normal = windows(2)

    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilations: tuple[int, ...] = (1, 1)
    data_layout: str = "NCHW"
    kernel_layout: str = "IHW"
    out_dtype: str = ""

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        if (self.data_layout, self.kernel_layout) not in (("NCHW", "IHW"), ("NHWC", "HWI")):
            raise TypeMismatch(
                f"image.dilation2d: layouts {self.data_layout} and {self.kernel_layout} are not known",
                hint="use NCHW with IHW, or NHWC with HWI",
            )
        return self.type_of_compute(data, weight)

    @property
    def _name(self) -> str:
        return f"image.dilation2d_{self.data_layout.lower()}"

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.strides, self.padding, self.dilations, self.out_dtype or None)


@register("image.affine_grid", Kind.INJECTIVE)
class AffineGrid(FromTopi):
    """The places that matrices (n, 2, 3) move those of a picture to."""

    target_shape: tuple[int, ...]

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("image.grid_sample", Kind.INJECTIVE)
class GridSample(FromTopi):
    """A picture read at the places of a grid, from -1 to 1."""

    method: str = "bilinear"
    layout: str = "NCHW"
    padding_mode: str = "zeros"
    align_corners: bool = True

    def infer(self, data: TensorType, grid: TensorType) -> Type:
        return self.type_of_compute(data, grid)
