"""multibox: anchors around every cell of a feature map, and detections made from them."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast, const
from loopwright.ir.intrinsics import exp, maximum, minimum, select
from loopwright.ir.ir_builder import create
from loopwright.te.tags import default_tag
from loopwright.topi.parts.sizes import check_rank, check_same, simplify
from loopwright.topi.registry import operator
from loopwright.topi.testing import regions as meaning
from loopwright.topi.types import DType, Shape
from loopwright.topi.vision.non_max_suppression import non_max_suppression


@operator(reference=meaning.multibox_prior, samples=meaning.multibox_prior_samples, name="vision.multibox_prior")
def multibox_prior(
    data: te.Tensor,
    sizes: Sequence[float] = (1,),
    ratios: Sequence[float] = (1,),
    steps: Sequence[float] = (-1, -1),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> te.Tensor:
    """(1, h · w · anchors, 4): the boxes of each cell of `data` (n, c, h, w), as parts of the picture.

    There is one of each size, then one of the first size for each ratio (width over height) but the first. Cells are
    `steps` (y, x) apart, or spread over the picture where those are negative; `clip` keeps boxes inside it.
    """
    check_rank("multibox_prior", "data", data, "NCHW", 4)
    height, width = data.shape[2], data.shape[3]
    kind = data.dtype
    count = len(sizes) + len(ratios) - 1
    # Half the height, and half the width before it is made as wide as the picture is high.
    halves = [(size / 2, size / 2) for size in sizes]
    halves += [(sizes[0] / sqrt(ratio) / 2, sizes[0] * sqrt(ratio) / 2) for ratio in ratios[1:]]

    def one_of(values: Sequence[float], number: Expr) -> Expr:
        chosen: Expr = const(values[-1], kind)
        for k in range(len(values) - 2, -1, -1):
            chosen = select(number.equal(k), const(values[k], kind), chosen)
        return chosen

    def body(_: Expr, index: Expr, corner: Expr) -> Expr:
        number, cell = index % count, index // count
        y, x = cell // width, cell % width
        middle = []
        for at, size, step, offset in ((y, height, steps[0], offsets[0]), (x, width, steps[1], offsets[1])):
            moved = cast(at, kind) + const(offset, kind)
            middle.append(moved * const(step, kind) if step > 0 else moved / cast(size, kind))
        half_high = one_of([half[0] for half in halves], number)
        half_wide = one_of([half[1] for half in halves], number) * cast(height, kind) / cast(width, kind)
        half = select((corner % 2).equal(0), half_wide, half_high)
        value = select((corner % 2).equal(0), middle[1], middle[0]) + select(corner < 2, -half, half)
        return maximum(minimum(value, const(1.0, kind)), const(0.0, kind)) if clip else value

    shape = (1, simplify(height * width * count), 4)
    result: te.Tensor = te.compute(shape, body, name="multibox_prior", tag=default_tag("multibox_prior"))
    return result


@operator(
    reference=meaning.multibox_transform_loc,
    samples=meaning.multibox_transform_loc_samples,
    name="vision.multibox_transform_loc",
)
def multibox_transform_loc(
    cls_prob: te.Tensor,
    loc_pred: te.Tensor,
    anchor: te.Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> list[te.Tensor]:
    """[detections, counts]: class, score and box of each anchor that is something, rows of -1 behind them.

    `cls_prob` is (batch, classes, anchors), class 0 being the background; `loc_pred` (batch, anchors · 4) shifts the
    boxes of `anchor` (1, anchors, 4). The best class of an anchor needs a score of at least `threshold`. Classes are
    counted from 0, the background being none of them unless `keep_background`.
    """
    op = "multibox_transform_loc"
    check_rank(op, "cls_prob", cls_prob, "(batch, classes, anchors)", 3)
    check_rank(op, "loc_pred", loc_pred, "(batch, anchors · 4)", 2)
    check_rank(op, "anchor", anchor, "(1, anchors, 4)", 3)
    batch, classes, count = cls_prob.shape
    check_same(op, "the batch", ("cls_prob", batch), ("loc_pred", loc_pred.shape[0]))
    check_same(op, "anchors", ("cls_prob · 4", count * 4), ("loc_pred", loc_pred.shape[1]))
    check_same(op, "anchors", ("cls_prob", count), ("anchor", anchor.shape[1]))
    check_same(op, "corners of an anchor", ("anchor", anchor.shape[2]), ("two points", as_expr(4)))
    check_same(op, "sets of anchors", ("anchor", anchor.shape[0]), ("one", as_expr(1)))
    kind = cls_prob.dtype
    first = 0 if keep_background else 1

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        probability, shift, box, out, counts = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            result = ib.allocate("int32", (1,), name="found", scope="local")
            score = ib.allocate(str(kind), (1,), name="score", scope="local")
            best = ib.allocate("int32", (1,), name="best", scope="local")
            result[0] = 0
            with ib.for_range(0, count, "i") as i:
                score[0] = const(-1.0, kind)
                best[0] = -1
                with (
                    ib.for_range(first, classes, "c") as c,
                    ib.if_scope(probability[b, c, i] > score[0]),
                ):
                    score[0] = probability[b, c, i]
                    best[0] = c.astype("int32")
                with ib.if_scope(te.all(best[0] >= 0, score[0] >= const(threshold, kind))):
                    out[b, result[0], 0] = cast(best[0] - first, kind)
                    out[b, result[0], 1] = score[0]
                    shifts = [shift[b, i * 4 + k] for k in range(4)]
                    corners = _decoded([box[0, i, k] for k in range(4)], shifts, variances, kind)
                    for k in range(4):
                        kept = maximum(minimum(corners[k], const(1.0, kind)), const(0.0, kind))
                        out[b, result[0], 2 + k] = kept if clip else corners[k]
                    result[0] = result[0] + 1
            counts[b] = result[0]
            with ib.for_range(result[0], count, "i") as i, ib.for_range(0, 6, "field") as field:
                out[b, i, field] = const(-1.0, kind)
        return ib.get()

    shapes: list[Shape] = [(batch, count, 6), (batch,)]
    inputs = [cls_prob, loc_pred, anchor]
    result: list[te.Tensor] = te.extern(shapes, inputs, body, name=op, dtype=[str(kind), "int32"], tag=default_tag(op))
    return result


def _decoded(box: Sequence[Expr], shifts: Sequence[Expr], variances: Sequence[float], kind: DType) -> list[Expr]:
    """The corners of an anchor, moved by parts of its sides and stretched by powers of e."""
    result: list[Expr] = list(box)
    for axis in (0, 1):
        side = box[axis + 2] - box[axis]
        middle = (box[axis] + box[axis + 2]) * const(0.5, kind)
        moved = shifts[axis] * const(variances[axis], kind) * side + middle
        half = exp(shifts[axis + 2] * const(variances[axis + 2], kind)) * side * const(0.5, kind)
        result[axis], result[axis + 2] = moved - half, moved + half
    return result


@operator(
    reference=meaning.multibox_detection, samples=meaning.multibox_detection_samples, name="vision.multibox_detection"
)
def multibox_detection(
    cls_prob: te.Tensor,
    loc_pred: te.Tensor,
    anchor: te.Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> te.Tensor:
    """(batch, anchors, 6): `multibox_transform_loc`, then `non_max_suppression`, by score."""
    boxes, counts = multibox_transform_loc(cls_prob, loc_pred, anchor, clip, threshold, variances)
    result = non_max_suppression(boxes, counts, None, -1, nms_threshold, force_suppress, nms_topk, return_indices=False)
    assert isinstance(result, te.Tensor)  # the boxes, not the indices and their count
    return result
