"""reorg: the cells of a feature map spread over channels, as YOLO's passthrough layer orders them."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.row_major import ravel, unravel
from loopwright.topi.parts.sizes import check_rank, known, multiple_of, simplify
from loopwright.topi.registry import operator
from loopwright.topi.testing import regions as meaning


@operator(reference=meaning.reorg, samples=meaning.reorg_samples, name="vision.reorg")
def reorg(data: te.Tensor, stride: int) -> te.Tensor:
    """(n, c · stride², h / stride, w / stride) of `data` (n, c, h, w).

    The data is taken for (n, c / stride², h · stride, w · stride) in memory, from which every stride-th cell makes a
    channel; the channels are then taken for the shape of the result.
    """
    check_rank("reorg", "data", data, "NCHW", 4)
    batch, channels, height, width = data.shape
    for what, size, divisor in (
        ("channels", channels, stride**2),
        ("height", height, stride),
        ("width", width, stride),
    ):
        if not multiple_of(size, divisor):
            raise InvalidShapeError("reorg", f"{what} {known(size)} is no multiple of {divisor}", "take another stride")
    fewer = simplify(channels // (stride * stride))
    shape = [batch, channels * stride * stride, height // stride, width // stride]

    def body(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        group, row, column = unravel(ravel((c, y, x), shape[1:]), (channels, height, width))
        offset = group // fewer
        spread = (group % fewer, row * stride + offset // stride, column * stride + offset % stride)
        location = ravel(spread, (fewer, height * stride, width * stride))
        element: Expr = data(n, *unravel(location, (channels, height, width)))
        return element

    result: te.Tensor = te.compute(shape, body, name="reorg", tag=default_tag(tag.INJECTIVE))
    return result
