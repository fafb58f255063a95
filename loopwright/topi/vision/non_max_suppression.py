"""non_max_suppression: of boxes that overlap, the one with the best score.

counts, boxes, indices = topi.vision.get_valid_counts(data, 0.01)
kept, number = topi.vision.non_max_suppression(boxes, counts, indices, iou_threshold=0.5)
"""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.ir_builder import create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.ordering.sort_row import sort_row
from loopwright.topi.parts.scalars import scalar_reader
from loopwright.topi.parts.sizes import at_least, check_rank, check_same, known
from loopwright.topi.registry import operator
from loopwright.topi.testing import boxes as meaning
from loopwright.topi.types import Scalar
from loopwright.topi.vision.boxes import Box, keep_best

_INDEX = DataType("int32")


@operator(
    reference=meaning.non_max_suppression,
    samples=meaning.non_max_suppression_samples,
    name="vision.non_max_suppression",
)
def non_max_suppression(
    data: te.Tensor,
    valid_count: te.Tensor,
    indices: te.Tensor | None,
    max_output_size: Scalar = -1,
    iou_threshold: Scalar = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> te.Tensor | list[te.Tensor]:
    """Of the first `valid_count` boxes of each row of `data` (batch, boxes, fields), those that no better one covers.

    A box falls to a better one of its class (of any, with `force_suppress`) when they overlap by `iou_threshold` or
    more. Only the `top_k` best are looked at, and `max_output_size` kept, where those are not negative. Boxes of a
    negative class are left out; `id_index` -1 says that there are no classes.

    With `return_indices`: [indices, count], best first, -1 behind the last; an index is looked up in `indices`, which
    says where the box was before `get_valid_counts`. Otherwise the boxes by score, those that fell made of -1: at their
    places, or behind the others with `invalid_to_bottom`.
    """
    op = "non_max_suppression"
    check_rank(op, "data", data, "(batch, boxes, fields)", 3)
    check_rank(op, "valid_count", valid_count, "(batch)", 1)
    if return_indices and indices is None:
        raise InvalidShapeError(op, "indices are asked for, but not given", "give those of get_valid_counts")
    batch, boxes, fields = data.shape
    check_same(op, "the batch", ("data", batch), ("valid_count", valid_count.shape[0]))
    if indices is not None:
        check_rank(op, "indices", indices, "(batch, boxes)", 2)
        check_same(op, "the batch", ("data", batch), ("indices", indices.shape[0]))
        check_same(op, "the number of boxes", ("data", boxes), ("indices", indices.shape[1]))
    needed = max(score_index + 1, id_index + 1, coord_start + 4)
    if not at_least(fields, needed):
        problem = f"a box of {data.name} has {known(fields)} fields, and its corners, score and class need {needed}"
        raise InvalidShapeError(op, problem, "count the fields from 0")
    inputs = [data, valid_count, *([indices] if indices is not None else [])]
    most = scalar_reader(max_output_size, "int32", inputs)
    threshold = scalar_reader(iou_threshold, str(data.dtype), inputs)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, valid = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1])
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            size = cast(boxes, _INDEX)
            count = ib.let("count", maximum(minimum(cast(valid[b], _INDEX), size), 0))
            in_order = sort_row(ib, count, boxes, lambda i: source[b, i, score_index], data.dtype, False)
            # Where in `data` the boxes are by score: looked up again and again, so it leaves the workspace of the sort.
            order = ib.allocate("int32", (boxes,), name="order")
            with ib.for_range(0, count, "i") as i:
                order[i] = cast(in_order.place(i), _INDEX)
            kept = ib.allocate("int32", (boxes,), name="kept")
            looked_at = ib.let("looked_at", minimum(count, top_k) if top_k >= 0 else count)
            limit = ib.let("limit", select(most(ib, ins) < 0, size, most(ib, ins)))

            def box(index: Expr) -> Box:
                return [source[b, order[index], coord_start + k] for k in range(4)]

            def is_candidate(index: Expr) -> Expr:
                return source[b, order[index], id_index] >= const(0, data.dtype) if id_index >= 0 else const(True)

            def suppresses(better: Expr, index: Expr, shared: Expr) -> Expr:
                enough = shared >= threshold(ib, ins)
                if force_suppress or id_index < 0:
                    return enough
                return all_of(enough, source[b, order[better], id_index].equal(source[b, order[index], id_index]))

            number = keep_best(ib, looked_at, limit, kept, box, is_candidate, suppresses)
            if return_indices:
                result, counted = ib.buffer_ptr(outs[0]), ib.buffer_ptr(outs[1])
                before = ib.buffer_ptr(ins[2])
                with ib.for_range(0, size, "i") as i:
                    result[b, i] = -1
                with ib.for_range(0, number[0], "i") as i:
                    result[b, i] = cast(before[b, order[kept[i]]], _INDEX)
                counted[b, 0] = number[0]
            else:
                out = ib.buffer_ptr(outs[0])
                with ib.for_range(0, size, "i") as i, ib.for_range(0, fields, "k") as k:
                    out[b, i, k] = const(-1, data.dtype)
                with ib.for_range(0, number[0], "i") as i, ib.for_range(0, fields, "k") as k:
                    out[b, i if invalid_to_bottom else kept[i], k] = source[b, order[kept[i]], k]
        return ib.get()

    if return_indices:
        return te.extern([(batch, boxes), (batch, 1)], inputs, body, name=op, dtype=["int32"] * 2, tag=default_tag(op))
    return te.extern([data.shape], inputs, body, name=op, dtype=[str(data.dtype)], tag=default_tag(op))
