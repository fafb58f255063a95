"""compact_allocations: a buffer shrinks to the part of it that is used where it lives, also where blocks list it.

    for i in range(8):                             →    for i in range(8):
        with T.block(""):                                   with T.block(""):
            B = T.alloc_buffer((8, 16))                         B = T.alloc_buffer((1, 16))
            for j in range(16):                                 for j in range(16):
                with T.block("B"):                                  with T.block("B"):
                    B[i, j] = A[i, j]                                   B[0, j] = A[i, j]

As `compact_buffers`, and beside it: what blocks list shrinks, with their regions and matched parts; conditions around
an access bound it; an extent may be an expression. Memory that threads share covers what all of them use.
"""

from __future__ import annotations

from typing import Any

from loopwright.analysis.thread_axes import tag_of
from loopwright.arith import interval_of
from loopwright.arith.linear import LinearForm, TooWide
from loopwright.compat.passes.known_inequalities import KnownInequalities, conditions_of
from loopwright.compat.passes.lower_opaque_blocks import strided_extents
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Call,
    Expr,
    IfThenElse,
    IntImm,
    IterVar,
    MatchBufferRegion,
    Node,
    PrimFunc,
    Range,
    Stmt,
    Var,
    const,
    deep,
    logical_not,
    substitute,
    uses_var,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import Pass
from loopwright.transform.parts.flat_index import is_literal
from loopwright.transform.parts.known_ops import IF_THEN_ELSE
from loopwright.transform.parts.purity import has_data
from loopwright.transform.passes.compact_buffers import CollectUses, ShrinkBuffers, Span, Use
from loopwright.transform.passes.write_allocations import ALIGN_KEY


class _Collect(CollectUses):
    def __init__(self, is_strict: bool) -> None:
        super().__init__()
        self.is_strict = is_strict
        self.axes: list[tuple[Var, Expr]] = []  # of the blocks around, with what they are bound to
        self.known = KnownInequalities(self.facts, False)
        self.aligned: dict[Buffer, list[list[int]]] = {}
        self.outer_axes: dict[Use, int] = {}

    # -- what is around

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        tag = tag_of(node)
        if not tag or not isinstance(node.node, IterVar):
            self.visit_children(node)
            return
        self.tags[node.node.var] = tag
        domain = Range.from_min_extent(const(0, node.value.dtype), node.value)
        self.loops.append((node.node.var, domain))
        with self.facts.bound(node.node.var, domain):
            self.visit(node.body)
        self.loops.pop()

    def _under(self, condition: Expr, body: Node) -> None:
        with self.known.scope(condition):
            self.visit(body)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        condition = self._bound(node.condition)
        self._under(condition, node.then_case)
        if node.else_case is not None:
            self._under(logical_not(condition), node.else_case)

    def visit_Call(self, call: Call) -> None:
        if call.op is not IF_THEN_ELSE:
            super().visit_Call(call)
            return
        self.visit(call.args[0])
        condition = self._bound(call.args[0])
        self._under(condition, call.args[1])
        self._under(logical_not(condition), call.args[2])

    def _bound(self, expr: Expr, since: int = 0) -> Expr:
        """In terms of the loops around, for the axes of all blocks but the first `since`."""
        values: dict[Var, Expr] = {}
        for var, value in self.axes[since:]:
            values[var] = substitute(value, values)
        return conditions_of(substitute(expr, values)) if since == 0 else substitute(expr, values)

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        block = realize.block
        for value in realize.iter_values:
            self.visit(value)
        count = len(self.axes)
        condition = self._bound(realize.predicate)
        self.axes += zip([axis.var for axis in block.iter_vars], realize.iter_values, strict=True)
        with self.known.scope(condition):
            self.visit(block)
        del self.axes[count:]

    def visit_Block(self, block: Block) -> None:
        requests: Any = block.annotations.get(ALIGN_KEY, ())
        for which, *request in requests:
            numbers = [int(number) for number in request]
            self.aligned.setdefault(block.writes[int(which)].buffer, []).append(numbers)
        own = []
        for buffer in block.alloc_buffers:
            use = Use(len(self.loops))
            use.hidden = list(self.lets)
            use.buffer = buffer
            use.is_plain = is_literal(buffer.elem_offset, 0)
            self.outer_axes[use] = len(self.axes)
            self.uses[buffer.data] = use
            own.append(use)
        for match in block.match_buffers:
            self._match(match)
        for part in (block.init, block.body):
            if part is not None:
                self.visit(part)
        for use in own:
            assert use.buffer is not None
            aligned = self.aligned.get(use.buffer)
            if use.is_plain and (aligned or any(span is not None for span in use.spans)):
                compact = self.compacted(use, aligned)
                if compact is not None:
                    self.found[use.buffer.data] = compact

    def _match(self, match: MatchBufferRegion) -> None:
        region = match.source.region
        self._access(match.source.buffer, [part.min for part in region])
        self._access(match.source.buffer, [part.min + part.extent - 1 for part in region])

    # -- what is used

    def _span(self, index: Expr, size: Expr, use: Use) -> Span | None:
        index = self._bound(index, self.outer_axes[use]) if use in self.outer_axes else index
        inner = {var: domain for var, domain in self.loops[: use.depth] if self._is_shared(var, use)}
        inner.update(self.loops[use.depth :])
        if index.dtype.lanes > 1 or has_data(index):
            return super()._span(index, size, use)
        ends = interval_of(index, inner, self.facts)
        if ends is None or has_data(ends.min_value) or has_data(ends.max_value):
            return None
        low, high = self._guarded(index, ends.min_value, ends.max_value, inner)
        hidden = {*inner, *self.lets[len(use.hidden) :]}
        if uses_var(low, hidden.__contains__) or uses_var(high, hidden.__contains__):
            return None
        zero = const(0, low.dtype)
        if self.facts.can_prove(low <= zero):
            low = zero
        if self.is_strict and self.facts.can_prove(high >= size - 1):
            high = self.facts.simplify(size - 1)
        is_all = is_literal(low, 0) and self.facts.can_prove_equal(high, size - 1)
        return None if is_all else Span(low, high)

    def _is_shared(self, var: Var, use: Use) -> bool:
        """Whether the memory is one for all the threads that run that loop."""
        tag = self.tags.get(var)
        if tag is None or use.buffer is None:
            return False
        scope = use.buffer.scope().split(".")[0]
        if scope == "global":
            return True
        if scope == "shared":
            return not tag.startswith("blockIdx")
        return scope == "warp" and tag == "threadIdx.x"

    def _guarded(self, index: Expr, low: Expr, high: Expr, inner: dict[Var, Range]) -> tuple[Expr, Expr]:
        """The ends, moved in where a condition around the access says so."""
        engine = self.facts.engine
        form = engine.form(index)
        for known in self.known.known:
            for scale in (1, -1):
                # known <= 0, so scale * form <= scale * form - known.
                rest = form.times(scale).plus(known, -1)
                if any([uses_var(atom, inner.__contains__) for atom in rest.terms]):
                    continue
                try:
                    end = engine.write(LinearForm(rest.terms, rest.const).times(scale), index.dtype)
                except TooWide:
                    continue
                if scale == 1 and self.facts.can_prove(end < high):
                    high = end
                elif scale == -1 and self.facts.can_prove(end > low):
                    low = end
        return low, high

    def extent(self, span: Span, size: Expr) -> Expr | None:
        """How many cells hold the span, if they are fewer than there are."""
        count = super().extent(span, size)
        if count is not None or (isinstance(size, IntImm) and self.is_strict):
            return count
        symbolic = self.facts.simplify(span.high - span.low + 1)
        if not self.is_strict or self.facts.can_prove(symbolic <= size):
            return symbolic
        return None


class _Shrink(ShrinkBuffers):
    def visit_Allocate(self, node: Allocate) -> Stmt:
        shrunk = super().visit_Allocate(node)
        compact = self.compact.get(node.buffer_var)
        if compact is not None and compact.buffer.strides:
            shrunk = shrunk.with_(extents=strided_extents(compact.buffer, self.facts))
        return shrunk.with_(annotations=node.annotations)

    def visit_Block(self, block: Block) -> Block:
        rebuilt = self.rebuild(block)
        return rebuilt.with_(alloc_buffers=rewrite_tuple(block.alloc_buffers, self.visit_Buffer))

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        parts = rewrite_tuple(region.region, self.visit)
        compact = self.found.get(region.buffer)
        if compact is None:
            return region.with_(region=parts)
        shifted = [
            Range.from_min_extent(self._shifted(part.min, first), part.extent)
            for part, first in zip(parts, compact.first, strict=True)
        ]
        return BufferRegion(compact.buffer, tuple(shifted))


def compact_allocations(is_strict: bool = True) -> Pass:
    """The pass; without `is_strict` a buffer may also grow where accesses leave its shape."""

    @named_pass("CompactBufferAllocation", skips_te=True)
    @deep
    def run(func: PrimFunc) -> PrimFunc:
        collect = _Collect(is_strict)
        collect.visit(func.body)
        if not collect.found and not collect.has_notes:
            return func
        body: Stmt = _Shrink(collect.found).visit(func.body)
        return func.with_(body=body)

    return run
