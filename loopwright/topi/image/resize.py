"""resize: a picture with more or fewer pixels.

    topi.image.resize2d(data, None, (224, 224), "NCHW", method="linear")

The layout says which axes are spatial; channels may be split (NCHW4c). Interpolation is computed in float32 (float64
for such data), and converted to the type of the output at the end; the nearest pixel is only moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from loopwright import te
from loopwright.arith.layout import layout as parse_layout
from loopwright.ir import Expr, as_expr, cast, const, logical_or
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, maximum, minimum, select
from loopwright.runtime.dtype import DataType
from loopwright.te.assumed_sizes import assume
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.image.coordinates import MODES, Fraction, Real, Tabulated, rounding_of, source_of
from loopwright.topi.image.sampling import Read, cubic_weights, interpolated, linear_weights
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import check_rank, is_zero, known, shape_text
from loopwright.topi.registry import operator
from loopwright.topi.testing import image as meaning
from loopwright.topi.types import Dim, Shape

Size: TypeAlias = te.Tensor | Dim | Sequence[Dim]  # one a spatial axis; a tensor of them
Region: TypeAlias = te.Tensor | Sequence[float] | None  # all starts, then all ends

METHODS: Final = ("nearest_neighbor", "linear", "cubic")


@operator(reference=meaning.resize, samples=meaning.resize1d_samples, name="image.resize1d")
def resize1d(
    data: te.Tensor,
    roi: Region,
    size: Size,
    layout: str,
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Shape | None = None,
) -> te.Tensor:
    """`data` with `size[0]` elements along W; options as for `resize2d`."""
    mode, rounding = coordinate_transformation_mode, rounding_method
    options = (roi, size, layout, method, mode, rounding, bicubic_alpha, bicubic_exclude, extrapolation_value)
    return _resize("resize1d", "W", data, *options, out_dtype, output_shape)


@operator(reference=meaning.resize, samples=meaning.resize2d_samples, name="image.resize2d")
def resize2d(
    data: te.Tensor,
    roi: Region,
    size: Size,
    layout: str,
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Shape | None = None,
) -> te.Tensor:
    """`data` with `size` (height, width).

    `method` is "nearest_neighbor", "linear" or "cubic"; `coordinates.py` has the modes. `rounding_method` says which
    pixel is the nearest one. With `bicubic_exclude`, pixels outside the picture have no weight, otherwise they are
    those at its edge. `roi` (all starts, then all ends, as parts of the picture) is used by "tf_crop_and_resize"
    alone, and `extrapolation_value` is what stands outside it there.
    """
    mode, rounding = coordinate_transformation_mode, rounding_method
    options = (roi, size, layout, method, mode, rounding, bicubic_alpha, bicubic_exclude, extrapolation_value)
    return _resize("resize2d", "HW", data, *options, out_dtype, output_shape)


@operator(reference=meaning.resize, samples=meaning.resize3d_samples, name="image.resize3d")
def resize3d(
    data: te.Tensor,
    roi: Region,
    size: Size,
    layout: str,
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Shape | None = None,
) -> te.Tensor:
    """`data` with `size` (depth, height, width); options as for `resize2d`."""
    mode, rounding = coordinate_transformation_mode, rounding_method
    options = (roi, size, layout, method, mode, rounding, bicubic_alpha, bicubic_exclude, extrapolation_value)
    return _resize("resize3d", "DHW", data, *options, out_dtype, output_shape)


def _resize(
    op: str,
    spatial: str,
    data: te.Tensor,
    roi: Region,
    size: Size,
    layout: str,
    method: str,
    mode: str,
    rounding: str,
    alpha: float,
    exclude: int,
    extrapolation: float,
    out_dtype: str | None,
    output_shape: Shape | None,
) -> te.Tensor:
    axes = spatial_axes(op, layout, spatial, data)
    choose(op, "method", method, METHODS)
    choose(op, "coordinate_transformation_mode", mode, MODES)
    rounding = rounding_of(op, mode, rounding)
    shape = _shape(op, data, axes, size, output_shape)
    for axis in axes:
        _require_pixels(op, data, axis, shape)
    region = _region(op, roi, len(axes)) if mode == "tf_crop_and_resize" else None
    kind = DataType(out_dtype or data.dtype)
    real = DataType("float64" if data.dtype == "float64" else "float32")
    if any(is_zero(extent) for extent in shape):
        return _result(shape, lambda *_: const(0, kind))  # of which there is none

    if method == "linear" and mode != "tf_crop_and_resize" and _is_in_two_steps(data, axes, shape):
        # Along the lines first: each of them is used for several lines of the result, or for one at least.
        lines = [*data.shape[: axes[-1]], shape[axes[-1]], *data.shape[axes[-1] + 1 :]]
        data = _resize(
            op, spatial[-1], data, roi, 0, layout, method, mode, rounding, alpha, exclude, 0.0, str(real), lines
        )
        return _resize(
            op, spatial[:-1], data, roi, 0, layout, method, mode, rounding, alpha, exclude, 0.0, str(kind), shape
        )
    tables = {axis: _table(op, mode, rounding, method, data.shape[axis], shape[axis], real) for axis in axes}
    span = _span(op, mode, data.shape[-1], shape[-1]) if axes[-1] == data.ndim - 1 else None

    def body(*at: Expr) -> Expr:
        sources = [
            tables[axis](at[axis])
            or source_of(op, mode, at[axis], data.shape[axis], shape[axis], region[number] if region else None)
            for number, axis in enumerate(axes)
        ]

        def read(locations: Sequence[Expr], is_inside: bool = False) -> Expr:
            """The pixel there, or the one at the edge; the last of `locations` may be known to be inside."""
            indices: list[Expr] = list(at)
            there: list[Expr] = []
            for number, (axis, location) in enumerate(zip(axes, locations, strict=True)):
                is_index = is_inside and number == len(axes) - 1
                indices[axis] = location if is_index else _clamped(location, data.shape[axis])
                if axis == data.ndim - 1 and isinstance(sources[number], Tabulated):
                    indices[axis] = cast(indices[axis], DataType("int64"))  # lanes apart from what they share
                if known(indices[axis]) is not None and known(data.shape[axis]) is None:
                    there.append(data.shape[axis] > 0)  # a picture without pixels has not even the first one
            return if_then_else(all_of(*there), data(*indices), const(0, data.dtype)) if there else data(*indices)

        if method == "nearest_neighbor":
            value = cast(read([source.rounded(rounding) for source in sources]), kind)
        else:
            wide = lambda locations: cast(read(locations), real)  # noqa: E731
            if method == "linear" and span is not None:
                row = lambda outer, index: cast(read([*outer, index], is_inside=True), real)  # noqa: E731
                value = cast(_between_neighbours(row, sources, span, data.shape[axes[-1]], real), kind)
            else:
                value = cast(_between(wide, sources, method, alpha, bool(exclude), data, axes, real), kind)
        outside = [source.is_inside(data.shape[axis]) for source, axis in zip(sources, axes, strict=True)]
        checks = [check for check in outside if check is not None]
        return if_then_else(all_of(*checks), value, const(extrapolation, kind)) if checks else value

    return _result(shape, body)


def _is_in_two_steps(data: te.Tensor, axes: Sequence[int], shape: Sequence[Expr]) -> bool:
    """Whether lines of pixels along the last axis are better made first, and then what lies between them.

    A line is made of pixels that are looked up one by one, unless they are at whole steps; so it pays where a line is
    used for more than one line of the result, about.
    """
    if len(axes) != 2 or axes[-1] != data.ndim - 1:
        return False
    old, new = known(data.shape[axes[0]]), known(shape[axes[0]])
    wide, target = known(data.shape[axes[1]]), known(shape[axes[1]])
    if old is None or new is None or target is None:
        return False
    is_in_steps = wide is not None and wide % target == 0
    return old <= 2 * new if is_in_steps else 2 * old <= 3 * new


def _table(
    op: str, mode: str, rounding: str, method: str, size: Expr, target: Expr, real: DataType
) -> Callable[[Expr], Tabulated | None]:
    """Where the pixels of a line come from, computed once for all lines; None where that is simple or not known."""
    old, new = known(size), known(target)
    if mode == "tf_crop_and_resize" or old is None or new is None or method == "cubic":
        return lambda _: None
    if method == "nearest_neighbor" and (old % new == 0 or new % old == 0):
        return lambda _: None  # a step, or each pixel some times
    find = lambda i: source_of(op, mode, i, size, target)  # noqa: E731
    if method == "nearest_neighbor":
        places = te.compute((new,), lambda i: cast(find(i).rounded(rounding), DataType("int32")), name="resize_places")
        return lambda i: Tabulated(places(i), None)
    places = te.compute((new,), lambda i: cast(find(i).floor(), DataType("int32")), name="resize_places")
    rests = te.compute((new,), lambda i: find(i).rest(real), name="resize_weights")
    return lambda i: Tabulated(places(i), rests(i))


def _result(shape: Sequence[Expr], body: Callable[..., Expr]) -> te.Tensor:
    result: te.Tensor = te.compute(shape, body, name="resize", tag=default_tag(tag.INJECTIVE))
    return result


def _require_pixels(op: str, data: te.Tensor, axis: int, shape: Sequence[Expr]) -> None:
    """What has no pixels becomes nothing else, unless that has none either."""
    size = data.shape[axis]
    if known(size) or any(is_zero(extent) for extent in shape):
        return
    nothing = [as_expr(extent).equal(0) for extent in shape if known(extent) is None]
    if is_zero(size) and not nothing:
        raise InvalidShapeError(
            op,
            f"{data.name} of shape {shape_text(data.shape)} has no pixels, its result of shape {shape_text(shape)} has",
            "give a picture with pixels, or ask for none",
        )
    assume(logical_or(size >= 1, *nothing), [size], "it at least 1, for there are pixels to be made of it")


def _between(
    read: Read,
    sources: Sequence[Fraction | Real | Tabulated],
    method: str,
    alpha: float,
    exclude: bool,
    data: te.Tensor,
    axes: Sequence[int],
    real: DataType,
) -> Expr:
    """The interpolated value; `read` takes pixels outside for those at the edge."""
    base = [source.floor() for source in sources]
    rests = [source.rest(real) for source in sources]
    if method == "linear":
        return interpolated(read, base, (0, 1), [linear_weights(rest) for rest in rests])
    offsets = (-1, 0, 1, 2)
    weights = [cubic_weights(rest, alpha) for rest in rests]
    if exclude:
        for number, axis in enumerate(axes):
            last = cast(data.shape[axis] - 1, base[number].dtype)
            kept = [
                select(all_of(base[number] + offset >= 0, base[number] + offset <= last), weight, 0.0)
                for offset, weight in zip(offsets, weights[number], strict=True)
            ]
            total = kept[0] + kept[1] + kept[2] + kept[3]
            weights[number] = [weight / total for weight in kept]
    return interpolated(read, base, offsets, weights)


def _span(op: str, mode: str, size: Expr, target: Expr) -> tuple[int, int] | None:
    """The first and the last pixel that a line of known size looks up; None where there are no two neighbours."""
    old, new = known(size), known(target)
    if mode == "tf_crop_and_resize" or old is None or old < 2 or new is None:
        return None
    first, last = (known(source_of(op, mode, const(i, "int32"), size, target).floor()) for i in (0, new - 1))
    return None if first is None or last is None else (first, last)


def _between_neighbours(
    row: Callable[[Sequence[Expr], Expr], Expr],
    sources: Sequence[Fraction | Real | Tabulated],
    span: tuple[int, int],
    size: Expr,
    real: DataType,
) -> Expr:
    """The linear interpolation of pixels that lie next to each other in memory, at the edges, too.

    `row` reads the line at some places of the outer axes. Two neighbours are one load. At an edge, both of the pixels
    that are interpolated are one and the same of them.
    """
    *outer, along = [source.floor() for source in sources]
    *weights, (nearer, further) = [linear_weights(source.rest(real)) for source in sources]
    end = cast(size - 2, along.dtype)
    start = cast(maximum(minimum(along, end), 0), DataType("int64"))  # lanes of addresses, apart from what they share
    first, last = span

    def between(locations: Sequence[Expr]) -> Expr:
        one, other = row(locations, start), row(locations, start + 1)
        before = select(along > end, other, one) if last > (known(size) or 0) - 2 else one
        after = select(along < 0, one, other) if first < 0 else other
        return before * nearer + after * further

    return interpolated(between, outer, (0, 1), weights)


def spatial_axes(op: str, layout: str, spatial: str, data: te.Tensor) -> list[int]:
    """Where the spatial axes are; refuses layouts that lack one, or split one into parts."""
    hint = f"the layout has {' and '.join(spatial)} whole, as in NCHW, NHWC or NCHW4c"
    if not isinstance(layout, str):
        raise UnsupportedLayout(op, layout, hint)
    parsed = parse_layout(layout)
    if any(letter not in parsed or parsed.factor_of(letter) != -1 for letter in spatial):
        raise UnsupportedLayout(op, layout, hint)
    check_rank(op, "data", data, layout, len(parsed))
    return [parsed.index_of(letter) for letter in spatial]


def _shape(op: str, data: te.Tensor, axes: Sequence[int], size: Size, output_shape: Shape | None) -> list[Expr]:
    if output_shape is not None:
        return [as_expr(extent) for extent in output_shape]
    sizes = list(size) if isinstance(size, (Sequence, te.Tensor)) and not isinstance(size, str) else [size] * len(axes)
    if len(sizes) != len(axes):
        raise InvalidShapeError(op, f"size {size!r} has {len(sizes)} entries", f"give {len(axes)}, one a spatial axis")
    shape = list(data.shape)
    for axis, extent in zip(axes, sizes, strict=True):
        shape[axis] = cast(as_expr(extent), data.shape[axis].dtype)
    return shape


def _region(op: str, roi: Region, count: int) -> list[tuple[Expr, Expr]]:
    if isinstance(roi, te.Tensor):
        return [(roi(k), roi(k + count)) for k in range(count)]
    if not isinstance(roi, Sequence) or len(roi) != 2 * count:
        raise InvalidShapeError(op, f"roi {roi!r} does not have {2 * count} entries", "give all starts, then all ends")
    return [(const(float(roi[k]), "float32"), const(float(roi[k + count]), "float32")) for k in range(count)]


def _clamped(index: Expr, size: Expr) -> Expr:
    """A pixel outside the picture is the one at its edge."""
    last = cast(size - 1, index.dtype)
    return cast(maximum(minimum(index, last), 0), size.dtype)
