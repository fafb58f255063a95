"""all_class_non_max_suppression: the best boxes of every class, as ONNX and TensorFlow have it."""

from __future__ import annotations

from collections.abc import Callable

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast, const
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.ordering.sort_row import sort_row
from loopwright.topi.parts.choices import UnsuitableType, choose
from loopwright.topi.parts.scalars import Reader, scalar_reader
from loopwright.topi.parts.sizes import check_rank, check_same, simplify
from loopwright.topi.registry import operator
from loopwright.topi.testing import boxes as meaning
from loopwright.topi.types import Scalar, Shape
from loopwright.topi.vision.boxes import Box, keep_best
from loopwright.topi.vision.next_best import NextBest, has_pairs

_LONG = DataType("int64")


@operator(
    reference=meaning.all_class_non_max_suppression,
    samples=meaning.all_class_non_max_suppression_samples,
    name="vision.all_class_non_max_suppression",
)
def all_class_non_max_suppression(
    boxes: te.Tensor,
    scores: te.Tensor,
    max_output_boxes_per_class: Scalar,
    iou_threshold: Scalar,
    score_threshold: Scalar,
    output_format: str = "onnx",
) -> list[te.Tensor]:
    """Of `boxes` (batch, n, 4) with `scores` (batch, classes, n), those kept in each class.

    A box needs a score above `score_threshold`, and falls to a better one that it overlaps by more than
    `iou_threshold`; a negative `max_output_boxes_per_class` sets no limit. "onnx": [rows, total], a row (batch, class,
    box) for each kept, by class and best first. "tensorflow": [rows, scores, totals], rows (class, box) and scores for
    each batch, best first. Integers are int64; behind the last one rows are -1 and scores 0.
    """
    op = "all_class_non_max_suppression"
    choose(op, "output_format", output_format, ("onnx", "tensorflow"))
    check_rank(op, "boxes", boxes, "(batch, boxes, 4)", 3)
    check_rank(op, "scores", scores, "(batch, classes, boxes)", 3)
    check_same(op, "corners of a box", ("boxes", boxes.shape[2]), ("two points", as_expr(4)))
    check_same(op, "the number of boxes", ("boxes", boxes.shape[1]), ("scores", scores.shape[2]))
    if scores.dtype is not boxes.dtype:
        raise UnsuitableType(op, f"boxes are made of {boxes.dtype}, scores of {scores.dtype}", "cast one of them")
    check_same(op, "the batch", ("boxes", boxes.shape[0]), ("scores", scores.shape[0]))
    batch, classes, count = scores.shape
    inputs = [boxes, scores]
    most = scalar_reader(max_output_boxes_per_class, "int32", inputs)
    shared = scalar_reader(iou_threshold, str(boxes.dtype), inputs)
    least = scalar_reader(score_threshold, str(scores.dtype), inputs)
    room = simplify(classes * count)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        kept = ib.allocate("int32", (simplify(batch * classes), count), name="kept")
        numbers = ib.allocate("int32", (simplify(batch * classes),), name="numbers")
        score = ib.buffer_ptr(ins[1])
        with ib.for_range(0, batch * classes, "line", kind="parallel") as line:
            b, c = line // classes, line % classes
            keep_in_class(ib, ins, boxes, b, lambda i: score[b, c, i], most, shared, least, line, kept, numbers)
        if output_format == "onnx":
            _rows_by_class(ib, outs, kept, numbers, batch, classes, count)
        else:
            _rows_by_score(ib, outs, score, kept, numbers, batch, classes, count)
        return ib.get()

    if output_format == "onnx":
        shapes: list[Shape] = [(simplify(batch * room), 3), (1,)]
        types = ["int64", "int64"]
    else:
        shapes = [(batch, room, 2), (batch, room), (batch,)]
        types = ["int64", str(scores.dtype), "int64"]
    result: list[te.Tensor] = te.extern(shapes, inputs, body, name=op, dtype=types, tag=default_tag(op))
    return result


def keep_in_class(
    ib: IRBuilder,
    ins: list[Buffer],
    boxes: te.Tensor,
    b: Expr,
    score: Callable[..., Expr],
    most: Reader,
    shared: Reader,
    least: Reader,
    line: Expr,
    kept: BufferVar,
    numbers: BufferVar,
    at_least: bool = False,
) -> None:
    """Write the boxes that are kept by `score` to row `line` of `kept`, and how many to `numbers`.

    The score of a box is above `least`, or may be just that with `at_least`.
    """
    count = boxes.shape[1]
    corner = ib.buffer_ptr(ins[0])
    index = DataType("int32")

    def passes(value: Expr) -> Expr:
        return value >= least(ib, ins) if at_least else value > least(ib, ins)

    order = ib.allocate(index, (count,), name="order")
    chosen = ib.allocate(index, (count,), name="chosen")
    candidates, find = _by_score(ib, count, boxes.dtype, score, passes, order)

    def box(index: Expr) -> Box:
        return [corner[b, order[index], k] for k in range(4)]

    number = keep_best(
        ib,
        candidates,
        select(most(ib, ins) < 0, cast(count, index), most(ib, ins)),
        chosen,
        box,
        lambda offset: const(True),
        lambda better, location, overlap: overlap > shared(ib, ins),
        find,
    )
    with ib.for_range(0, number[0], "i") as i:
        kept[line, i] = order[chosen[i]]
    numbers[line] = number[0]


def _by_score(
    ib: IRBuilder,
    count: Expr,
    dtype: DataType,
    score: Callable[..., Expr],
    passes: Callable[[Expr], Expr],
    order: BufferVar,
) -> tuple[Expr, Callable[[Expr], None] | None]:
    """How many boxes have a score that counts, and how `order` learns which comes next; None where it knows already."""
    index = DataType("int32")
    if has_pairs(dtype):  # often few are looked at
        row = NextBest(ib, count, score, passes)

        def find(at: Expr) -> None:
            order[at] = cast(row.take(), index)

        return ib.let("candidates", minimum(maximum(row.number[0], 0), cast(count, index))), find
    passing = ib.allocate(index, (count,), name="passing")
    passed = ib.allocate(index, (1,), name="passed", scope="local")
    passed[0] = 0
    with ib.for_range(0, count, "i") as i:
        value = ib.let("value", score(i))
        passing[minimum(maximum(passed[0], 0), count - 1)] = cast(i, index)
        passed[0] = passed[0] + select(passes(value), const(1, index), const(0, index))
    candidates = ib.let("candidates", minimum(maximum(passed[0], 0), cast(count, index)))
    in_order = sort_row(ib, candidates, count, lambda i: score(passing[i]), dtype, False)
    with ib.for_range(0, candidates, "i") as i:
        order[i] = passing[minimum(maximum(in_order.place(i), 0), count - 1)]
    return candidates, None


def _rows_by_class(
    ib: IRBuilder,
    outs: list[Buffer],
    kept: BufferVar,
    numbers: BufferVar,
    batch: Expr,
    classes: Expr,
    count: Expr,
) -> None:
    rows, total = ib.buffer_ptr(outs[0]), ib.buffer_ptr(outs[1])
    filled = ib.allocate("int32", (1,), name="filled", scope="local")
    filled[0] = 0
    with ib.for_range(0, batch * classes, "line") as line, ib.for_range(0, numbers[line], "i") as i:
        for column, value in enumerate((line // classes, line % classes, kept[line, i])):
            rows[filled[0], column] = cast(value, _LONG)
        filled[0] = filled[0] + 1
    total[0] = cast(filled[0], _LONG)
    with ib.for_range(filled[0], batch * classes * count, "row") as row:
        for column in range(3):
            rows[row, column] = -1


def _rows_by_score(
    ib: IRBuilder,
    outs: list[Buffer],
    score: BufferVar,
    kept: BufferVar,
    numbers: BufferVar,
    batch: Expr,
    classes: Expr,
    count: Expr,
) -> None:
    """All classes of a picture in one list: gathered, then sorted by score."""
    rows, best, totals = [ib.buffer_ptr(out) for out in outs]
    room = simplify(classes * count)
    with ib.for_range(0, batch, "b", kind="parallel") as b:
        filled = ib.allocate("int32", (1,), name="filled", scope="local")
        result = ib.allocate("int32", (room, 2), name="found")
        filled[0] = 0
        with ib.for_range(0, classes, "c") as c, ib.for_range(0, numbers[b * classes + c], "i") as i:
            result[filled[0], 0] = cast(c, DataType("int32"))
            result[filled[0], 1] = kept[b * classes + c, i]
            filled[0] = filled[0] + 1
        total = ib.let("total", filled[0])

        def value(i: Expr) -> Expr:
            return score[b, result[i, 0], result[i, 1]]

        in_order = sort_row(ib, total, room, value, score.dtype, False)
        with ib.for_range(0, room, "i") as i:
            for column in (0, 1):
                rows[b, i, column] = -1
            best[b, i] = const(0, score.dtype)
        with ib.for_range(0, total, "i") as i:
            for column in (0, 1):
                rows[b, i, column] = cast(result[in_order.place(i), column], _LONG)
            best[b, i] = in_order.key(i)
        totals[b] = cast(total, _LONG)
