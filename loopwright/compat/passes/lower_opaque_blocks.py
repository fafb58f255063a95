"""lower_opaque_blocks: blocks become their statements, their buffers allocations, bound loops launches.

    for i in T.thread_binding(4, thread="threadIdx.x"):   →    i = T.launch_thread("threadIdx.x", 4)
        with T.block(""):                                      B = T.decl_buffer((8,), scope="local")
            T.where(i < 3)                                     if i < 3:
            B = T.alloc_buffer((8,), scope="local")                ...
            ...

Loops of one iteration without annotations go. A pragma of a loop or block becomes an attribute around it. What blocks
ask for with `buffer_dim_align` stays a note at the allocation, for `compact_buffers`.
Needs: no init (`lower_init_blocks`), no matched buffers (`resolve_matches`).  Leaves: no blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopwright.arith import Analyzer
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    StringImm,
    as_expr,
    cast,
    const,
    deep,
    is_one,
)
from loopwright.ir.pass_context import PassContext
from loopwright.transform.errors import BlockStateLeft
from loopwright.transform.parts.folding import FoldingRewriter
from loopwright.transform.parts.statements import flat_seq
from loopwright.transform.passes.write_allocations import ALIGN_KEY


class _LowerOpaqueBlocks(FoldingRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.aligned: dict[Buffer, list[list[int]]] = {}
        self.facts = Analyzer()

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        for what, given, by in (
            ("an init", block.init, "write_inits"),
            ("match_buffers", block.match_buffers, "resolve_matches"),
        ):
            if given:
                raise BlockStateLeft(block, what, by)
        predicate = self.visit(realize.predicate)
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.values[axis.var] = cast(self.visit(value), axis.var.dtype)
        body: Stmt = self.visit(block.body)
        requests: Any = block.annotations.get(ALIGN_KEY, ())
        for which, *request in requests:
            self.aligned.setdefault(block.writes[int(which)].buffer, []).append([int(number) for number in request])
        if not (isinstance(predicate, IntImm) and predicate.value):
            body = IfThenElse(predicate, body)
        for buffer in reversed(block.alloc_buffers):
            body = self._allocate(buffer, body)
        return _with_pragmas(block.annotations, body, block.name_hint)

    def visit_Block(self, block: Block) -> Stmt:
        return self.visit_BlockRealize(BlockRealize((), const(True), block))

    def _allocate(self, buffer: Buffer, body: Stmt) -> Stmt:
        aligned = self.aligned.get(buffer)
        lowered = self.visit(buffer)
        notes = {ALIGN_KEY: aligned} if aligned else {}
        extents = strided_extents(lowered, self.facts)
        return Allocate(lowered.data, lowered.dtype, extents, const(True), DeclBuffer(lowered, body), notes)

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        has_notes = bool(loop.annotations)
        keep_unit = bool(PassContext.current().config.get("tir.debug_keep_trivial_loop", False))
        if loop.kind is ForKind.SERIAL and is_one(extent) and not has_notes and not keep_unit:
            self.values[loop.loop_var] = low
            return self.visit(loop.body)
        body = self.visit(loop.body)
        kept = {key: value for key, value in loop.annotations.items() if not key.startswith("pragma_")}
        if loop.kind is ForKind.THREAD_BINDING and loop.thread_binding is not None:
            return _with_pragmas(loop.annotations, _launch(loop, low, extent, body), loop.loop_var)
        lowered = loop.with_(min=low, extent=extent, body=body)
        if len(kept) < len(loop.annotations):
            lowered = lowered.with_(annotations=kept)
        return _with_pragmas(loop.annotations, lowered, loop.loop_var)


def strided_extents(buffer: Buffer, facts: Analyzer) -> tuple[Expr, ...]:
    """The allocated shape: with strides, each dimension is as long as the stride of the one before says."""
    if not buffer.strides:
        return buffer.shape
    extents = [buffer.shape[0]]
    for outer, inner in zip(buffer.strides, buffer.strides[1:], strict=False):
        extents.append(facts.simplify(outer // inner))
    return tuple(extents)


def _launch(loop: For, low: Expr, extent: Expr, body: Stmt) -> Stmt:
    assert loop.thread_binding is not None
    tag = loop.thread_binding.thread_tag
    key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
    axis = IterVar(Range.from_min_extent(low, extent), loop.loop_var, IterType.ThreadIndex, tag)
    return AttrStmt(axis, key, extent, body)


def _with_pragmas(annotations: Mapping[str, object], body: Stmt, about: object) -> Stmt:
    """The first of them is outermost."""
    for key, value in reversed(list(annotations.items())):
        if key.startswith("pragma_"):
            body = AttrStmt(about, key, _pragma_value(value), body)
    return body


def _pragma_value(value: Any) -> Expr:
    if isinstance(value, str):
        return StringImm(value)
    return const(value, "float32") if isinstance(value, float) else as_expr(value)


@named_pass("LowerOpaqueBlock", skips_te=True)
@deep
def lower_opaque_blocks(func: PrimFunc) -> PrimFunc:
    """Blocks become their statements, their buffers allocations, bound loops launches."""
    return func.with_(body=_LowerOpaqueBlocks().visit(func.body))
