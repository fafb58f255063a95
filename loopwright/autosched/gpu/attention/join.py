"""Join: what several blocks have of the keys of one query becomes its result.

    for row in blockIdx.x:                              a query of a head
        for d in threadIdx.x:                           an element of the value
            top = max over parts of their tops
            out[row, d] = Σ sums[part, d] · w / Σ total[part] · w       where w = exp2((top[part] - top) · scale)
"""

from __future__ import annotations

from loopwright.autosched.gpu.attention.multiply import NEVER, power, scale_of, shift_of
from loopwright.autosched.gpu.attention.plan import AttentionShape
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.ir import Expr, Max, Select, const
from loopwright.ir.ir_builder import BufferVar, IRBuilder


class Parts:
    """What is handed from one kernel to the other, in memory of the GPU."""

    def __init__(self, ib: IRBuilder, shape: AttentionShape, splits: int) -> None:
        self.shape, self.splits = shape, splits
        rows = shape.batch * shape.heads * shape.queries
        self.sums = ib.allocate("float32", (rows, splits, shape.depth), "part_sums")
        self.top = ib.allocate("float32", (rows, splits), "part_top")
        self.total = ib.allocate("float32", (rows, splits), "part_total")

    def row(self, batch: Expr, head: Expr, query: Expr) -> Expr:
        return (batch * self.shape.heads + head) * self.shape.queries + query


def join_parts(ib: IRBuilder, shape: AttentionShape, parts: Parts, out: BufferVar) -> None:
    """Write the second kernel."""
    scale = scale_of(shape)
    row = run_on(ib, "blockIdx.x", shape.batch * shape.heads * shape.queries)
    d = run_on(ib, "threadIdx.x", shape.depth)
    top, total, result = (ib.allocate("float32", (1,), name, scope="local") for name in ("top", "total", "result"))
    top[0] = NEVER
    total[0] = 0.0
    result[0] = 0.0
    with ib.for_range(0, parts.splits, "part") as part:
        top[0] = Max(top[0], parts.top[row, part])
    with ib.for_range(0, parts.splits, "part") as part:
        weight = ib.allocate("float32", (1,), "weight", scope="local")
        weight[0] = power(parts.top[row, part], shift_of(top[0], scale), scale)
        total[0] = total[0] + parts.total[row, part] * weight[0]
        result[0] = result[0] + parts.sums[row, part, d] * weight[0]
    value: Expr = result[0] / total[0]
    if shape.hidden_is_zero:
        zero = const(0.0, "float32")
        value = Select(total[0].equal(zero), zero, value)
    rest, query = row // shape.queries, row % shape.queries
    where = {"B": rest // shape.heads, "H": rest % shape.heads, "S": query, "D": d}
    out[tuple([where[letter] for letter in shape.orders[3]])] = value.astype(out.dtype)
