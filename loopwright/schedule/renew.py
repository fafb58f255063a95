"""renew: a second copy of a nest, with loops, blocks and buffers of its own.

A step that writes a nest twice must not define a variable twice, and the copy's blocks are new blocks: handles of the
old ones stay where they were.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir import (
    Allocate,
    AllocateConst,
    Block,
    BlockRealize,
    Buffer,
    BufferRewriter,
    DeclBuffer,
    Expr,
    For,
    IterVar,
    Let,
    LetStmt,
    MatchBufferRegion,
    Stmt,
    Var,
    deep,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.schedule.handles import BlockKey, block_key


@deep
def renew(root: Stmt, name: Callable[[str], str]) -> tuple[Stmt, dict[BlockKey, BlockKey]]:
    """A copy of `root` whose blocks are called `name(old name)`, and which old block each new one is a copy of."""
    rewriter = _Renew(name)
    result: Stmt = rewriter.visit(root)
    return result, rewriter.renamed


class _Renew(BufferRewriter):
    def __init__(self, name: Callable[[str], str]) -> None:
        super().__init__()
        self.name = name
        self.values: dict[Var, Var] = {}
        self.renamed: dict[BlockKey, BlockKey] = {}

    def _fresh(self, var: Var) -> Var:
        new = type(var)(var.name, var.type_annotation)
        self.values[var] = new
        return new

    def _own(self, buffer: Buffer) -> Buffer:
        self._fresh(buffer.data)
        new: Buffer = self.visit(buffer)
        return new

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        return loop.with_(loop_var=self._fresh(loop.loop_var), min=low, extent=extent, body=self.visit(loop.body))

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        return let.with_(var=self._fresh(let.var), value=value, body=self.visit(let.body))

    def visit_Let(self, let: Let) -> Expr:
        value = self.visit(let.value)
        return let.with_(var=self._fresh(let.var), value=value, body=self.visit(let.body))

    def visit_Allocate(self, allocation: Allocate) -> Stmt:
        extents, condition = rewrite_tuple(allocation.extents, self.visit), self.visit(allocation.condition)
        memory = self._fresh(allocation.buffer_var)
        body = self.visit(allocation.body)
        return allocation.with_(buffer_var=memory, extents=extents, condition=condition, body=body)

    def visit_AllocateConst(self, allocation: AllocateConst) -> Stmt:
        return allocation.with_(buffer_var=self._fresh(allocation.buffer_var), body=self.visit(allocation.body))

    def visit_DeclBuffer(self, declaration: DeclBuffer) -> Stmt:
        # Its memory is either renewed by now, or from outside and shared.
        return declaration.with_(buffer=self.visit(declaration.buffer), body=self.visit(declaration.body))

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        values = rewrite_tuple(realize.iter_values, self.visit)
        predicate = self.visit(realize.predicate)
        return realize.with_(iter_values=values, predicate=predicate, block=self.visit(realize.block))

    def visit_Block(self, block: Block) -> Block:
        axes = tuple([self._axis(axis) for axis in block.iter_vars])
        allocated = tuple([self._own(buffer) for buffer in block.alloc_buffers])
        matches = tuple([self._match(match) for match in block.match_buffers])
        new = block.with_(
            iter_vars=axes,
            reads=rewrite_tuple(block.reads, self.visit),
            writes=rewrite_tuple(block.writes, self.visit),
            name_hint=self.name(block.name_hint),
            init=None if block.init is None else self.visit(block.init),
            body=self.visit(block.body),
            alloc_buffers=allocated,
            match_buffers=matches,
        )
        self.renamed[block_key(new)] = block_key(block)
        return new

    def _axis(self, axis: IterVar) -> IterVar:
        dom = None if axis.dom is None else self.visit(axis.dom)
        return axis.with_(dom=dom, var=self._fresh(axis.var))

    def _match(self, match: MatchBufferRegion) -> MatchBufferRegion:
        source = self.visit(match.source)
        return match.with_(buffer=self._own(match.buffer), source=source)
