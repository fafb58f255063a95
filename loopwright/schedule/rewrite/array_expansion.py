"""unfolding: memory that each iteration of a loop uses again gets a dimension for the loop.

    for t in range(8):                            →   for t in range(8):
        with T.block("B"): B[vi] = A[vt, vi] + 1          with T.block("B"): B[vt, vi] = A[vt, vi] + 1
        with T.block("C"): C[vt, vi] = B[vi] * 2          with T.block("C"): C[vt, vi] = B[vt, vi] * 2

Who reads B must have an axis of the same value as the writer's. The caller has to prove that every load still sees the
write it saw. A cell then belongs to one iteration, so that a step can ask which one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    IntImm,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    Var,
    deep,
    structural_equal,
    uses_var,
)
from loopwright.ir.operators import cast
from loopwright.schedule.rewrite.buffers import fresh_buffer
from loopwright.schedule.rewrite.regions import Span
from loopwright.schedule.view import View


class Unfolded(NamedTuple):
    """A function after array expansion, and the buffer before and after it."""

    after: PrimFunc
    buffers: tuple[Buffer, Buffer]


def unfolded(view: View, realize: BlockRealize, store: BufferStore, domain: Mapping[Var, Span]) -> Unfolded | None:
    """The function in which the buffer of `store`, all that `realize` does, has a dimension for each axis that its
    indices do not use; None when there is none, or when a reader has no such axis.
    """
    facts = Analyzer()
    again = [
        (axis.var, value)
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if not any([uses_var(index, {axis.var}.__contains__) for index in store.indices])
        and not facts.can_prove_equal(domain[axis.var].low, domain[axis.var].high)
    ]
    if not again:
        return None
    buffer = store.buffer
    index_type = buffer.shape[0].dtype if buffer.shape else again[0][0].dtype
    spans = [domain[axis] for axis, _ in again]
    sizes = [cast(facts.simplify(span.high - span.low + 1), index_type) for span in spans]
    if any([isinstance(size, IntImm) and size.value < 0 for size in sizes]):
        return None  # the block never runs
    wide = fresh_buffer(buffer.name, [*sizes, *buffer.shape], buffer, buffer.scope())
    rewriter = _Unfold(buffer, wide, [value for _, value in again], [span.low for span in spans])
    after = view.function.with_(body=rewriter.run(view.function.body))
    return None if rewriter.is_lost else Unfolded(after, (buffer, wide))


class _Unfold(Rewriter):
    def __init__(self, buffer: Buffer, wide: Buffer, values: Sequence[Expr], lows: Sequence[Expr]) -> None:
        self.buffer, self.wide, self.values, self.lows = buffer, wide, values, lows
        self.axes: list[Expr | None] = [None] * len(values)  # what has each value here, in terms a block may use
        self.is_lost = False  # a use of the buffer where nothing has the value

    @deep
    def run(self, body: Stmt) -> Stmt:
        result: Stmt = self.visit(body)
        return result

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        outside = list(self.axes)
        for axis, bound in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            for index, value in enumerate(self.values):
                if structural_equal(bound, value) or bound is outside[index]:
                    self.axes[index] = axis.var
        result = realize.with_(block=self.visit(realize.block))
        self.axes = outside
        return result

    def visit_Block(self, block: Block) -> Block:
        result = block.rebuild(self.visit)
        buffers = tuple([self.wide if item is self.buffer else item for item in result.alloc_buffers])
        return result.with_(alloc_buffers=buffers) if self.buffer in result.alloc_buffers else result

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        built: BufferLoad = load.rebuild(self.visit)
        return built.with_(buffer=self.wide, indices=self._cell(built.indices)) if load.buffer is self.buffer else built

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        made: BufferStore = store.rebuild(self.visit)
        return made.with_(buffer=self.wide, indices=self._cell(made.indices)) if store.buffer is self.buffer else made

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        if region.buffer is not self.buffer:
            return region
        sizes = self.wide.shape[: len(self.values)]
        whole = [Range.from_min_extent(size * 0, size) for size in sizes]  # enough here: whoever asks tells them anew
        return BufferRegion(self.wide, (*whole, *region.region))

    def _cell(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        added: list[Expr] = []
        for axis, low, size in zip(self.axes, self.lows, self.wide.shape, strict=False):
            self.is_lost = self.is_lost or axis is None
            added.append(cast(low if axis is None else axis, size.dtype) - cast(low, size.dtype))
        return (*added, *indices)
