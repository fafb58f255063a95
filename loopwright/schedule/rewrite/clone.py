"""clone_nest: a second copy of a nest, with loops, blocks and buffers of its own.

A step that writes a nest twice must not define a variable twice, and the copy's blocks are new blocks: handles of the
old ones stay where they were.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir import Block, DeclBuffer, Stmt, deep
from loopwright.ir.clone import Cloner
from loopwright.schedule.handles import BlockKey, block_key


@deep
def clone_nest(root: Stmt, name: Callable[[str], str]) -> tuple[Stmt, dict[BlockKey, BlockKey]]:
    """A copy of `root` whose blocks are called `name(old name)`, and which old block each new one is a copy of."""
    rewriter = _CloneNest(name)
    result: Stmt = rewriter.visit(root)
    return result, rewriter.renamed


class _CloneNest(Cloner):
    def __init__(self, name: Callable[[str], str]) -> None:
        super().__init__()
        self.name = name
        self.renamed: dict[BlockKey, BlockKey] = {}

    def visit_DeclBuffer(self, declaration: DeclBuffer) -> Stmt:
        # Its memory is either renewed by now, or from outside and shared: then the buffer is, too.
        return declaration.with_(buffer=self.visit(declaration.buffer), body=self.visit(declaration.body))

    def visit_Block(self, block: Block) -> Block:
        new = super().visit_Block(block).with_(name_hint=self.name(block.name_hint))
        self.renamed[block_key(new)] = block_key(block)
        return new
