"""roi_align: regions of a feature map, each read at evenly spread places and brought to one size.

A region is cut into `pooled_size` bins; a bin is the mean (or greatest) of the values at `sample_ratio`² places in it,
each interpolated from the four pixels around it. With a negative ratio there are as many places as pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import ceil, floor, maximum, minimum
from loopwright.ir.ir_builder import BufferVar, create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import check_rank, check_same, each
from loopwright.topi.registry import operator
from loopwright.topi.testing import regions as meaning
from loopwright.topi.types import Dim, Dims
from loopwright.topi.vision.rcnn.roi_pool import require_pictures

_MODES: Final = {0: "avg", 1: "max", "avg": "avg", "max": "max", b"avg": "avg", b"max": "max"}


@operator(reference=meaning.roi_align_nchw, samples=meaning.roi_align_nchw_samples, name="vision.roi_align_nchw")
def roi_align_nchw(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Dims,
    spatial_scale: float,
    mode: str | int | bytes,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> te.Tensor:
    """(regions, channels, height, width) of `data` (batch, channels, h, w).

    A row of `rois` is (batch, x1, y1, x2, y2), in pixels of a picture of which the data is `spatial_scale` times as
    large. `mode` is "avg" or "max" (0 or 1). Pixels are counted from their corners, and a region has at least one;
    with `aligned` they are counted from their middles, and a region may be smaller.
    """
    options = pooled_size, spatial_scale, mode, sample_ratio, aligned
    return _roi_align("roi_align_nchw", "NCHW", data, rois, *options)


@operator(reference=meaning.roi_align_nhwc, samples=meaning.roi_align_nhwc_samples, name="vision.roi_align_nhwc")
def roi_align_nhwc(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Dims,
    spatial_scale: float,
    mode: str | int | bytes,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> te.Tensor:
    """(regions, height, width, channels) of `data` (batch, h, w, channels); see `roi_align_nchw`."""
    options = pooled_size, spatial_scale, mode, sample_ratio, aligned
    return _roi_align("roi_align_nhwc", "NHWC", data, rois, *options)


def _roi_align(
    op: str,
    layout: str,
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: Dims,
    spatial_scale: float,
    mode: str | int | bytes,
    sample_ratio: int,
    aligned: bool,
) -> te.Tensor:
    check_rank(op, "data", data, layout, 4)
    check_rank(op, "rois", rois, "(regions, 5)", 2)
    kind = _MODES[choose(op, "mode", mode, _MODES)]
    check_same(op, "numbers of a region", ("rois", rois.shape[1]), ("batch, x1, y1, x2, y2", te.const(5)))
    require_pictures(data, rois)
    pooled = each(op, "pooled_size", pooled_size, 2)
    location = {letter: layout.index(letter) for letter in layout}
    sizes = [data.shape[location["H"]], data.shape[location["W"]]]
    shape: list[Dim] = [rois.shape[0], *data.shape[1:]]
    shape[location["H"]], shape[location["W"]] = pooled
    real, whole = DataType(rois.dtype), sizes[0].dtype

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, regions, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])

        def at(n: Expr, c: Expr, y: Expr, x: Expr) -> tuple[Expr, ...]:
            indices = {"N": n, "C": c, "H": y, "W": x}
            return tuple(indices[letter] for letter in layout)

        with ib.for_range(0, rois.shape[0], "roi", kind="parallel") as roi:
            last = data.shape[0] - 1
            batch = ib.let("batch", maximum(minimum(cast(regions[roi, 0], last.dtype), last), 0))
            # Rows first: rois have x before y.
            starts, bins, counts = [], [], []
            for name, column, bin_count in (("y", 2, pooled[0]), ("x", 1, pooled[1])):
                corner = regions[roi, column] * const(spatial_scale, real)
                start = ib.let(f"{name}_start", corner - const(0.5, real) if aligned else corner)
                end = regions[roi, column + 2] * const(spatial_scale, real)
                extent = end - corner
                length = ib.let(f"{name}_length", extent if aligned else maximum(extent, const(1.0, real)))
                starts.append(start)
                bins.append(ib.let(f"{name}_bin", length / const(float(bin_count), real)))
                adaptive = cast(ceil(bins[-1]), whole)
                counts.append(ib.let(f"{name}_count", adaptive if sample_ratio <= 0 else const(sample_ratio, whole)))
            total = ib.allocate(str(data.dtype), (1,), name="total", scope="local")
            with (
                ib.for_range(0, data.shape[location["C"]], "c") as c,
                ib.for_range(0, pooled[0], "ph") as ph,
                ib.for_range(0, pooled[1], "pw") as pw,
            ):
                total[0] = const(0.0, data.dtype) if kind == "avg" else te.min_value(data.dtype)
                with ib.for_range(0, counts[0], "iy") as iy, ib.for_range(0, counts[1], "ix") as ix:
                    locations = []
                    for name, axis, bin_number, sample in (("y", 0, ph, iy), ("x", 1, pw, ix)):
                        step = (cast(sample, real) + 0.5) / cast(counts[axis], real)
                        locations.append(ib.let(name, starts[axis] + (cast(bin_number, real) + step) * bins[axis]))
                    value = ib.let("value", _bilinear(source, at, batch, c, locations, sizes, data.dtype))
                    total[0] = total[0] + value if kind == "avg" else maximum(total[0], value)
                mean = total[0] / cast(maximum(counts[0] * counts[1], 1), data.dtype)
                out[at(roi, c, ph, pw)] = mean if kind == "avg" else total[0]
        return ib.get()

    name = "roi_align"
    result: te.Tensor = te.extern(
        [shape], [data, rois], body, name=name, dtype=[str(data.dtype)], tag=default_tag(name)
    )
    return result


def _bilinear(
    source: BufferVar,
    at: Callable[..., tuple[Expr, ...]],
    batch: Expr,
    c: Expr,
    locations: Sequence[Expr],
    sizes: Sequence[Expr],
    dtype: DataType,
) -> Expr:
    """The value at a place: 0 more than a pixel outside, the pixel at the edge where it is nearer."""
    low, high, rest, inside = [], [], [], []
    for location, size in zip(locations, sizes, strict=True):
        last = cast(size - 1, location.dtype)
        inside += [location >= -1.0, location <= last + 1.0]
        kept = maximum(minimum(location, last), 0.0)
        below = floor(kept)
        low.append(cast(below, size.dtype))
        high.append(minimum(low[-1] + 1, size - 1))
        rest.append(cast(kept - below, dtype))

    def row(y: Expr) -> Expr:
        left, right = source[at(batch, c, y, low[1])], source[at(batch, c, y, high[1])]
        return left * (1 - rest[1]) + right * rest[1]

    return te.if_then_else(all_of(*inside), row(low[0]) * (1 - rest[0]) + row(high[0]) * rest[0], const(0.0, dtype))
