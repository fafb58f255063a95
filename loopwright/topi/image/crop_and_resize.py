"""crop_and_resize: boxes cut out of pictures, each resized to one size."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright import te
from loopwright.ir import Expr, as_expr, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, maximum, minimum
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.te.tensor import shape_text
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.image.coordinates import cropped
from loopwright.topi.image.sampling import interpolated, linear_weights
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import at_least, check_rank, check_same
from loopwright.topi.registry import operator
from loopwright.topi.testing import image as meaning
from loopwright.topi.types import Dim


@operator(reference=meaning.crop_and_resize, samples=meaning.crop_and_resize_samples, name="image.crop_and_resize")
def crop_and_resize(
    data: te.Tensor,
    boxes: te.Tensor,
    box_indices: te.Tensor,
    crop_size: Sequence[int],
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float | None = None,
    out_dtype: str | None = None,
) -> te.Tensor:
    """One picture of `crop_size` (height, width) for each of `boxes`: (y1, x1, y2, x2) as parts of the picture.

    `box_indices` says of which picture a box is. The corners of a box are the middles of the corner pixels; what lies
    outside the picture is `extrapolation_value`, or 0. `method` is "bilinear" or "nearest_neighbor".
    """
    op = "crop_and_resize"
    if layout not in ("NCHW", "NHWC"):
        raise UnsupportedLayout(op, layout, "use NCHW or NHWC")
    choose(op, "method", method, ("bilinear", "nearest_neighbor"))
    check_rank(op, "data", data, layout, 4)
    check_rank(op, "boxes", boxes, "(boxes, 4)", 2)
    check_rank(op, "box_indices", box_indices, "(boxes)", 1)
    if not isinstance(crop_size, Sequence) or len(crop_size) != 2:
        raise InvalidShapeError(op, f"crop_size is {crop_size!r}", "give (height, width)")
    check_same(op, "corners of a box", ("boxes", boxes.shape[1]), ("(y1, x1, y2, x2)", as_expr(4)))
    check_same(op, "the number of boxes", ("boxes", boxes.shape[0]), ("box_indices", box_indices.shape[0]))
    axes = [layout.index("H"), layout.index("W")]
    for axis in (0, *axes):
        if not at_least(data.shape[axis], 1):
            raise InvalidShapeError(op, f"{data.name}, of shape {shape_text(data.shape)}, has no pixels", None)
    shape: list[Dim] = [boxes.shape[0], *data.shape[1:]]
    for axis, extent in zip(axes, crop_size, strict=True):
        shape[axis] = extent
    kind = DataType(out_dtype or data.dtype)
    real = DataType("float64" if data.dtype == "float64" else "float32")
    outside = const(extrapolation_value or 0.0, kind)

    def body(*at: Expr) -> Expr:
        box = at[0]
        sources = [
            cropped(at[axis], data.shape[axis], te.const(int(crop_size[k])), boxes(box, k), boxes(box, k + 2))
            for k, axis in enumerate(axes)
        ]

        def read(locations: Sequence[Expr]) -> Expr:
            last = data.shape[0] - 1
            picture = maximum(minimum(cast(box_indices(box), last.dtype), last), 0)
            indices: list[Expr] = [picture, *at[1:]]
            for axis, offset in zip(axes, locations, strict=True):
                indices[axis] = cast(maximum(minimum(offset, cast(data.shape[axis] - 1, offset.dtype)), 0), last.dtype)
            return data(*indices)

        if method == "nearest_neighbor":
            value = cast(read([source.rounded("round") for source in sources]), kind)
        else:
            weights = [linear_weights(source.rest(real)) for source in sources]
            base = [source.floor() for source in sources]
            value = cast(interpolated(lambda locations: cast(read(locations), real), base, (0, 1), weights), kind)
        inside = [source.is_inside(data.shape[axis]) for source, axis in zip(sources, axes, strict=True)]
        return if_then_else(all_of(*inside), value, outside)

    result: te.Tensor = te.compute(shape, body, name=op, tag=default_tag(tag.INJECTIVE))
    return result
