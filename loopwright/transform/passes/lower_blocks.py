"""lower_blocks: a block becomes the statements it stands for.

    for i in range(10):                            →    for i in range(10):
        with T.block("B"):                                  if i < 7:
            vi = T.axis.spatial(7, i)                           B[i] = A[i + 1]
            T.where(i < 7)
            a = T.match_buffer(A[vi + 1], ())
            B[vi] = a[()]

Block iterators are replaced by their bindings, the predicate becomes an `if`, and a matched buffer by the region it
names. Annotations that say how to run a block (`pragma_…`, `double_buffer_scope`) stay as attributes; the rest has done
its work.
Needs: no init (`write_inits`) and no alloc_buffers (`write_allocations`) left.  Leaves: no blocks.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import (
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    IfThenElse,
    IntImm,
    MatchBufferRegion,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    as_expr,
    cast,
    const,
    deep,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import BadAnnotation, BlockStateLeft, RegionDoesNotMatch
from loopwright.transform.parts.flat_index import add_index, flat_index
from loopwright.transform.parts.folding import FoldingRewriter
from loopwright.transform.parts.pipeline_marks import DOUBLE_BUFFER
from loopwright.transform.parts.promised_layout import broken_promise
from loopwright.transform.parts.statements import flat_seq


class LowerBlocks(FoldingRewriter):
    """Replaces blocks by their statements, and matched buffers by their regions."""

    def __init__(self, func: PrimFunc) -> None:
        super().__init__()
        self.arguments = {buffer.data for buffer in func.argument_buffers()}
        # A matched buffer → the buffer it is part of, and the first index of the region in each dimension.
        self.regions: dict[Buffer, tuple[Buffer, tuple[Expr, ...]]] = {}

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        if block.init is not None:
            raise BlockStateLeft(block, "an init", "write_inits")
        if block.alloc_buffers:
            raise BlockStateLeft(block, "alloc_buffers", "write_allocations")
        bindings = [self.visit(value) for value in realize.iter_values]
        predicate = self.visit(realize.predicate)
        for iter_var, value in zip(block.iter_vars, bindings, strict=True):
            self.values[iter_var.var] = cast(value, iter_var.var.dtype)
        for match in block.match_buffers:
            self._match(block, match)
        body: Stmt = self.visit(block.body)
        for key, value in block.annotations.items():
            if key.startswith("pragma_"):
                body = AttrStmt(block.name_hint, key, as_expr(value), body)
            elif key == DOUBLE_BUFFER:
                body = AttrStmt(self._written(block, value).data, key, const(1), body)
        return body if isinstance(predicate, IntImm) and predicate.value else IfThenElse(predicate, body)

    def _written(self, block: Block, which: object) -> Buffer:
        """The buffer that a block writes at position `which`."""
        position = which.value if isinstance(which, IntImm) else which
        if not isinstance(position, int) or not 0 <= position < len(block.writes):
            wanted = f"the position of a buffer among the {len(block.writes)} that block {block.name_hint} writes"
            raise BadAnnotation(DOUBLE_BUFFER, which, wanted, block)
        buffer: Buffer = self.visit(block.writes[position].buffer)
        return buffer

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def visit_Block(self, block: Block) -> Stmt:
        # A block without bindings around it: the root of a hand-written body.
        return self.visit_BlockRealize(BlockRealize((), const(True), block))

    def _match(self, block: Block, match: MatchBufferRegion) -> None:
        """Learn what the matched buffer and the variables of its declaration stand for."""
        mins = tuple([self.visit(part.min) for part in match.source.region])
        extents = tuple([self.visit(part.extent) for part in match.source.region])
        source = match.source.buffer
        if source in self.regions:
            source, mins = self._in_source(source, mins)
            extents = (*[as_expr(1)] * (len(mins) - len(extents)), *extents)
        else:
            source = self.visit(source)
        buffer = match.buffer
        if buffer.dtype != source.dtype:
            raise RegionDoesNotMatch(match, "dtype", buffer.dtype, source.dtype)
        self.values[buffer.data] = source.data
        offset = flat_index(source, mins)
        broken = broken_promise(buffer, block.body, source, offset, source.data in self.arguments)
        if broken is not None:
            raise RegionDoesNotMatch(match, broken.what, broken.declared, broken.found)
        self._declare(match, "elem_offset", buffer.elem_offset, offset)
        dropped = source.ndim - buffer.ndim
        for declared, result in zip(buffer.shape, extents[dropped:], strict=True):
            self._declare(match, "extent", declared, result)
        if buffer.strides:
            for declared, result in zip(buffer.strides, source.effective_strides()[dropped:], strict=True):
                self._declare(match, "stride", declared, result)
        self.regions[buffer] = (source, mins)

    def _declare(self, match: MatchBufferRegion, what: str, declared: Expr, result: Expr) -> None:
        declared = self.visit(declared)
        if isinstance(declared, Var):
            self.values[declared] = cast(result, declared.dtype)
        # Offset 0 is what a declaration without an offset says: no promise.
        elif what == "elem_offset" and isinstance(declared, IntImm) and declared.value == 0:
            return
        elif not Analyzer().can_prove_equal(declared, cast(result, declared.dtype)):
            raise RegionDoesNotMatch(match, what, declared, result)

    def _in_source(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        """The element of the source buffer that `buffer[indices]` names; leading dimensions may have been dropped."""
        source, mins = self.regions[buffer]
        dropped = len(mins) - len(indices)
        shifted = [add_index(low, index) for index, low in zip(indices, mins[dropped:], strict=True)]
        return source, (*mins[:dropped], *shifted)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer not in self.regions:
            return self.rebuild(load)
        return BufferLoad._make(*self._in_source(load.buffer, rewrite_tuple(load.indices, self.visit)), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        if store.buffer not in self.regions:
            return self.rebuild(store)
        source, indices = self._in_source(store.buffer, rewrite_tuple(store.indices, self.visit))
        return BufferStore(source, self.visit(store.value), indices, span=store.span)


@function_pass
@deep
def lower_blocks(func: PrimFunc) -> PrimFunc:
    """A block becomes the statements it stands for."""
    return func.with_(body=LowerBlocks(func).visit(func.body))
