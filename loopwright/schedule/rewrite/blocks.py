"""Blocks of a program: those below a statement, those without blocks inside, axes of one value."""

from __future__ import annotations

from loopwright.ir import Block, BlockRealize, IterVar, Stmt, any_statement, collect_statements, is_one
from loopwright.schedule.view import View


def blocks_in(root: Stmt) -> list[Block]:
    """Every block of a statement, blocks inside blocks included, in program order."""
    return collect_statements(root, Block)


def is_leaf(block: Block) -> bool:
    """Whether no block stands inside."""
    return not any_statement(block.body, lambda node: isinstance(node, BlockRealize))


def leaves_of(view: View, realize: BlockRealize) -> list[BlockRealize]:
    """The blocks without blocks inside, in or below a block."""
    inside = [path for path in view.index.blocks.values() if any(statement is realize for statement in path)]
    outer = {statement for path in inside for statement in path[:-1]}
    return [path[-1] for path in inside if path[-1] not in outer and isinstance(path[-1], BlockRealize)]


def is_unit_axis(axis: IterVar) -> bool:
    """Whether an axis takes one value only."""
    return axis.dom is not None and is_one(axis.dom.extent)
