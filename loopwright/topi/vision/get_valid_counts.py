"""get_valid_counts: the boxes whose score is high enough, moved to the front."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Stmt, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.ir_builder import create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.scalars import scalar_reader
from loopwright.topi.parts.sizes import at_least, check_rank, known
from loopwright.topi.registry import operator
from loopwright.topi.testing import boxes as meaning
from loopwright.topi.types import Scalar


@operator(reference=meaning.get_valid_counts, samples=meaning.get_valid_counts_samples, name="vision.get_valid_counts")
def get_valid_counts(
    data: te.Tensor, score_threshold: Scalar = 0, id_index: int = 0, score_index: int = 1
) -> list[te.Tensor]:
    """[counts, boxes, indices] of `data` (batch, boxes, fields): how many, the rows moved, where each was (int32).

    A box counts when its score is above the threshold and its class is not negative (`id_index` -1: it has no class).
    Rows and indices behind the last one are -1.
    """
    op = "get_valid_counts"
    check_rank(op, "data", data, "(batch, boxes, fields)", 3)
    batch, boxes, fields = data.shape
    needed = max(score_index, id_index) + 1
    if not at_least(fields, needed):
        problem = f"a box of {data.name} has {known(fields)} fields, and its score or class is number {needed}"
        raise InvalidShapeError(op, problem, "count the fields from 0")
    inputs = [data]
    threshold = scalar_reader(score_threshold, str(data.dtype), inputs)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source = ib.buffer_ptr(ins[0])
        counts, moved, indices = [ib.buffer_ptr(out) for out in outs]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            result = ib.allocate("int32", (1,), name="found", scope="local")
            result[0] = 0
            with ib.for_range(0, boxes, "i") as i:
                is_valid = [source[b, i, score_index] > threshold(ib, ins)]
                if id_index >= 0:
                    is_valid.append(source[b, i, id_index] >= const(0, data.dtype))
                with ib.if_scope(all_of(*is_valid)):
                    with ib.for_range(0, fields, "k") as k:
                        moved[b, result[0], k] = source[b, i, k]
                    indices[b, result[0]] = cast(i, DataType("int32"))
                    result[0] = result[0] + 1
            counts[b] = result[0]
            with ib.for_range(result[0], boxes, "i") as i:
                with ib.for_range(0, fields, "k") as k:
                    moved[b, i, k] = const(-1, data.dtype)
                indices[b, i] = -1
        return ib.get()

    shapes = [(batch,), (batch, boxes, fields), (batch, boxes)]
    types = ["int32", str(data.dtype), "int32"]
    result: list[te.Tensor] = te.extern(shapes, inputs, body, name=op, dtype=types, tag=default_tag(op))
    return result
