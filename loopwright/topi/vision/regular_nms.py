"""regular_non_max_suppression: the detections of a picture, kept class by class and then the best of all of them."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast, const
from loopwright.ir.intrinsics import minimum
from loopwright.ir.ir_builder import create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.ordering.sort_row import sort_row
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.scalars import scalar_reader
from loopwright.topi.parts.sizes import at_least, check_rank, check_same, known, simplify
from loopwright.topi.registry import operator
from loopwright.topi.testing import boxes as meaning
from loopwright.topi.types import Scalar
from loopwright.topi.vision.all_class_nms import keep_in_class


@operator(
    reference=meaning.regular_non_max_suppression,
    samples=meaning.regular_non_max_suppression_samples,
    name="vision.regular_non_max_suppression",
)
def regular_non_max_suppression(
    boxes: te.Tensor,
    scores: te.Tensor,
    max_detections_per_class: Scalar,
    max_detections: int,
    num_classes: int,
    iou_threshold: Scalar,
    score_threshold: Scalar,
) -> list[te.Tensor]:
    """[boxes, classes, scores, numbers]: the `max_detections` best of each picture, best first, zeros behind the last.

    `boxes` are (batch, n, 4), `scores` (batch, n, background and classes); the last `num_classes` columns are the
    classes, counted from 0. In each, a box needs a score of at least `score_threshold`, and falls to a better one that
    it overlaps by more than `iou_threshold`.
    """
    op = "regular_non_max_suppression"
    check_rank(op, "boxes", boxes, "(batch, boxes, 4)", 3)
    check_rank(op, "scores", scores, "(batch, boxes, classes)", 3)
    check_same(op, "corners of a box", ("boxes", boxes.shape[2]), ("two points", as_expr(4)))
    check_same(op, "the number of boxes", ("boxes", boxes.shape[1]), ("scores", scores.shape[1]))
    check_same(op, "the batch", ("boxes", boxes.shape[0]), ("scores", scores.shape[0]))
    if scores.dtype is not boxes.dtype:
        raise UnsuitableType(op, f"boxes are made of {boxes.dtype}, scores of {scores.dtype}", "cast one of them")
    batch, count, columns = scores.shape
    if not at_least(columns, num_classes):
        problem = f"scores has {known(columns)} classes, and {num_classes} are asked for"
        raise InvalidShapeError(op, problem, "ask for no more than there are")
    inputs = [boxes, scores]
    most = scalar_reader(max_detections_per_class, "int32", inputs)
    shared = scalar_reader(iou_threshold, str(boxes.dtype), inputs)
    least = scalar_reader(score_threshold, str(scores.dtype), inputs)
    room = simplify(num_classes * count)
    index = DataType("int32")

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        kept = ib.allocate("int32", (simplify(batch * num_classes), count), name="kept")
        numbers = ib.allocate("int32", (simplify(batch * num_classes),), name="numbers")
        corner, score = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1])
        with ib.for_range(0, batch * num_classes, "line", kind="parallel") as line:
            b, c = line // num_classes, line % num_classes + (columns - num_classes)
            keep_in_class(
                ib, ins, boxes, b, lambda i: score[b, i, c], most, shared, least, line, kept, numbers, at_least=True
            )
        found_boxes, found_classes, found_scores, totals = [ib.buffer_ptr(out) for out in outs]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            filled = ib.allocate("int32", (1,), name="filled", scope="local")
            result = ib.allocate("int32", (room, 2), name="found")
            filled[0] = 0
            with (
                ib.for_range(0, num_classes, "c") as c,
                ib.for_range(0, numbers[b * num_classes + c], "i") as i,
            ):
                result[filled[0], 0] = cast(c, index)
                result[filled[0], 1] = kept[b * num_classes + c, i]
                filled[0] = filled[0] + 1
            total = ib.let("total", filled[0])

            def value(i: Expr) -> Expr:
                return score[b, result[i, 1], result[i, 0] + cast(columns - num_classes, index)]

            in_order = sort_row(ib, total, room, value, scores.dtype, False)
            given = ib.let("given", minimum(total, max_detections))
            with ib.for_range(0, max_detections, "i") as i:
                for k in range(4):
                    found_boxes[b, i, k] = const(0, boxes.dtype)
                found_classes[b, i] = const(0, boxes.dtype)
                found_scores[b, i] = const(0, boxes.dtype)
            with ib.for_range(0, given, "i") as i:
                location = ib.let("place", in_order.place(i))
                for k in range(4):
                    found_boxes[b, i, k] = corner[b, result[location, 1], k]
                found_classes[b, i] = cast(result[location, 0], boxes.dtype)
                found_scores[b, i] = in_order.key(i)
            totals[b] = cast(given, boxes.dtype)
        return ib.get()

    shapes = [(batch, max_detections, 4), (batch, max_detections), (batch, max_detections), (batch,)]
    result: list[te.Tensor] = te.extern(
        shapes, inputs, body, name=op, dtype=[str(boxes.dtype)] * 4, tag=default_tag(op)
    )
    return result
