"""proposal: the regions of a picture that are most likely things, from the scores and shifts of anchors.

Every cell of the feature map has the same anchors: boxes of `ratios` (height over width) and `scales`, around it. A
network gives each a score and a shift. The best `rpn_pre_nms_top_n` of them go through non-maximum suppression.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, sqrt

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, cast, const
from loopwright.ir.intrinsics import any as any_of
from loopwright.ir.intrinsics import exp, maximum, minimum, select
from loopwright.ir.ir_builder import create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.ordering.sort_row import sort_row
from loopwright.topi.parts.sizes import check_rank, check_same, simplify
from loopwright.topi.registry import operator
from loopwright.topi.testing import regions as meaning
from loopwright.topi.vision.boxes import Box, keep_best

_INDEX = DataType("int32")


@operator(reference=meaning.proposal, samples=meaning.proposal_samples, name="vision.proposal")
def proposal(
    cls_prob: te.Tensor,
    bbox_pred: te.Tensor,
    im_info: te.Tensor,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> te.Tensor:
    """(batch · rpn_post_nms_top_n, 5): the picture and the corners x1, y1, x2, y2 of each region, best first.

    `cls_prob` is (batch, 2 · anchors, h, w), the second half being the scores of things; `bbox_pred` (batch, 4 ·
    anchors, h, w); `im_info` (batch, 3): height, width and scale of the picture. Boxes smaller than `rpn_min_size`
    pixels come last, with half of that around them. With `iou_loss` the shifts are those of the corners. Where fewer
    regions are left, they repeat.
    """
    op = "proposal"
    check_rank(op, "cls_prob", cls_prob, "NCHW", 4)
    check_rank(op, "bbox_pred", bbox_pred, "NCHW", 4)
    check_rank(op, "im_info", im_info, "(batch, 3)", 2)
    anchors = generate_anchors(feature_stride, ratios, scales)
    batch, _, height, width = cls_prob.shape
    check_same(op, "channels of cls_prob", ("it", cls_prob.shape[1]), ("2 · anchors", te.const(2 * len(anchors))))
    check_same(op, "channels of bbox_pred", ("it", bbox_pred.shape[1]), ("4 · anchors", te.const(4 * len(anchors))))
    for other, axes in (("bbox_pred", (0, 2, 3)), ("im_info", (0,))):
        tensor = bbox_pred if other == "bbox_pred" else im_info
        for axis in axes:
            check_same(op, f"axis {axis}", ("cls_prob", cls_prob.shape[axis]), (other, tensor.shape[axis]))
    check_same(op, "what is known of a picture", ("im_info", im_info.shape[1]), ("height, width, scale", te.const(3)))
    count = simplify(height * width * len(anchors))
    real = cls_prob.dtype

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        probability, shift, info, out = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            boxes = ib.allocate(str(real), (count, 4), name="boxes")
            scores = ib.allocate(str(real), (count,), name="scores")
            high, wide, scale = (ib.let(name, info[b, k]) for k, name in enumerate(("high", "wide", "scale")))
            with ib.for_range(0, height, "y") as y, ib.for_range(0, width, "x") as x:
                for number, anchor in enumerate(anchors):
                    location = (y * width + x) * len(anchors) + number
                    shifts = [shift[b, number * 4 + k, y, x] for k in range(4)]
                    corners = _moved(anchor, x, y, shifts, feature_stride, iou_loss, real)
                    limits = [wide, high, wide, high]
                    for k in range(4):
                        boxes[location, k] = maximum(minimum(corners[k], limits[k] - 1.0), const(0.0, real))
                    sides = [boxes[location, k + 2] - boxes[location, k] + 1.0 for k in (0, 1)]
                    least = const(float(rpn_min_size), real) * scale
                    is_small = any_of(sides[0] < least, sides[1] < least)
                    score = probability[b, len(anchors) + number, y, x]
                    scores[location] = select(is_small, const(-1.0, real), score)
                    with ib.if_scope(is_small):
                        # Chosen only where nothing better is left, and then with room around it.
                        for k in range(4):
                            grown = least * const(-0.5 if k < 2 else 0.5, real)
                            boxes[location, k] = boxes[location, k] + grown
            in_order = sort_row(ib, count, count, lambda i: scores[i], real, False)
            order = ib.allocate("int32", (count,), name="order")
            with ib.for_range(0, count, "i") as i:
                order[i] = cast(in_order.place(i), _INDEX)
            kept = ib.allocate("int32", (rpn_post_nms_top_n,), name="kept")

            def box(index: Expr) -> Box:
                # Both corner pixels belong to a box.
                near = [boxes[order[index], k] for k in (0, 1)]
                return [*near, *[boxes[order[index], k] + 1.0 for k in (2, 3)]]

            number_kept = keep_best(
                ib,
                minimum(cast(count, _INDEX), rpn_pre_nms_top_n) if rpn_pre_nms_top_n > 0 else cast(count, _INDEX),
                const(rpn_post_nms_top_n, _INDEX),
                kept,
                box,
                lambda location: const(True),
                lambda better, location, overlap: overlap > const(threshold, real),
            )
            with ib.for_range(0, rpn_post_nms_top_n, "i") as i:
                row = b * rpn_post_nms_top_n + i
                source = ib.let("source", order[kept[i % maximum(number_kept[0], 1)]])
                out[row, 0] = cast(b, real)
                for k in range(4):
                    out[row, k + 1] = boxes[source, k]
        return ib.get()

    shape = (simplify(batch * rpn_post_nms_top_n), 5)
    inputs = [cls_prob, bbox_pred, im_info]
    result: te.Tensor = te.extern([shape], inputs, body, name=op, dtype=[str(real)], tag=default_tag(op))
    return result


def generate_anchors(
    feature_stride: int, ratios: Sequence[float], scales: Sequence[float]
) -> list[tuple[float, float, float, float]]:
    """The boxes around the first cell: of the area of the cell, of each ratio (rounded to pixels), times each scale."""
    result = []
    middle = 0.5 * (feature_stride - 1)
    for ratio in ratios:
        wide = floor(sqrt(floor(feature_stride * feature_stride / ratio)) + 0.5)
        high = floor(wide * ratio + 0.5)
        for scale in scales:
            half_wide, half_high = 0.5 * (wide * scale - 1), 0.5 * (high * scale - 1)
            result.append((middle - half_wide, middle - half_high, middle + half_wide, middle + half_high))
    return result


def _moved(
    anchor: Sequence[float], x: Expr, y: Expr, shifts: Sequence[Expr], stride: int, iou_loss: bool, real: DataType
) -> list[Expr]:
    """The corners of an anchor of cell (x, y) after its shift."""
    at = [cast(location * stride, real) for location in (x, y, x, y)]
    corners: list[Expr] = [const(anchor[k], real) + at[k] for k in range(4)]
    if iou_loss:
        return [corner + shift for corner, shift in zip(corners, shifts, strict=True)]
    result: list[Expr] = list(corners)
    for axis in (0, 1):
        length = anchor[axis + 2] - anchor[axis] + 1
        middle = corners[axis] + const(0.5 * (length - 1), real)
        moved = shifts[axis] * const(length, real) + middle
        half = (exp(shifts[axis + 2]) * const(length, real) - 1.0) * const(0.5, real)
        result[axis], result[axis + 2] = moved - half, moved + half
    return result
