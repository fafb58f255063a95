"""roi_pool: regions of a feature map, each brought to one size by taking the greatest value of each part."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, cast, const, logical_or
from loopwright.ir.intrinsics import any as any_of
from loopwright.ir.intrinsics import maximum, min_value, minimum, round, select
from loopwright.ir.ir_builder import create
from loopwright.te.assumed_sizes import assume
from loopwright.te.tags import default_tag
from loopwright.topi.parts.sizes import check_rank, check_same, each
from loopwright.topi.registry import operator
from loopwright.topi.testing import regions as meaning
from loopwright.topi.types import Dims


def require_pictures(data: te.Tensor, rois: te.Tensor) -> None:
    """Regions are cut out of a picture: without one there are none."""
    assume(
        logical_or(data.shape[0] >= 1, rois.shape[0].equal(0)),
        [data.shape[0]],
        "it at least 1, for there are regions to be cut out",
    )


@operator(reference=meaning.roi_pool_nchw, samples=meaning.roi_pool_nchw_samples, name="vision.roi_pool_nchw")
def roi_pool_nchw(data: te.Tensor, rois: te.Tensor, pooled_size: Dims, spatial_scale: float) -> te.Tensor:
    """(regions, channels, height, width) of `data` (batch, channels, h, w); rows of `rois` are (batch, x1, y1, x2, y2).

    Corners are rounded to pixels, both of which belong to the region. A part without pixels is 0.
    """
    op = "roi_pool_nchw"
    check_rank(op, "data", data, "NCHW", 4)
    check_rank(op, "rois", rois, "(regions, 5)", 2)
    check_same(op, "numbers of a region", ("rois", rois.shape[1]), ("batch, x1, y1, x2, y2", te.const(5)))
    require_pictures(data, rois)
    pooled = each(op, "pooled_size", pooled_size, 2)
    batches, channels, height, width = data.shape
    whole = height.dtype

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, regions, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, rois.shape[0], "roi", kind="parallel") as roi:
            batch = ib.let("batch", maximum(minimum(cast(regions[roi, 0], whole), batches - 1), 0))

            def corner(column: int) -> Expr:
                return cast(round(regions[roi, column] * const(spatial_scale, rois.dtype)), whole)

            starts, lengths = [], []
            for name, column in (("y", 2), ("x", 1)):
                starts.append(ib.let(f"{name}_start", corner(column)))
                lengths.append(ib.let(f"{name}_length", maximum(corner(column + 2) - starts[-1] + 1, 1)))
            greatest = ib.allocate(str(data.dtype), (1,), name="greatest", scope="local")
            with (
                ib.for_range(0, channels, "c") as c,
                ib.for_range(0, pooled[0], "ph") as ph,
                ib.for_range(0, pooled[1], "pw") as pw,
            ):
                low, high = [], []
                for axis, (part, size) in enumerate(((ph, height), (pw, width))):
                    first = starts[axis] + part * lengths[axis] // pooled[axis]
                    end = starts[axis] + ((part + 1) * lengths[axis] + pooled[axis] - 1) // pooled[axis]
                    low.append(ib.let("low", maximum(minimum(first, size), 0)))
                    high.append(ib.let("high", maximum(minimum(end, size), 0)))
                greatest[0] = min_value(data.dtype)
                with ib.for_range(low[0], high[0], "y") as y, ib.for_range(low[1], high[1], "x") as x:
                    greatest[0] = maximum(greatest[0], source[batch, c, y, x])
                is_empty = any_of(high[0] <= low[0], high[1] <= low[1])
                out[roi, c, ph, pw] = select(is_empty, const(0, data.dtype), greatest[0])
        return ib.get()

    shape = (rois.shape[0], channels, *pooled)
    name = "roi_pool"
    result: te.Tensor = te.extern(
        [shape], [data, rois], body, name=name, dtype=[str(data.dtype)], tag=default_tag(name)
    )
    return result
