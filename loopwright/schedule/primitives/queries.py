"""Questions about a program: its blocks, loops, producers and consumers. They change nothing."""

from __future__ import annotations

from loopwright.ir import BlockRealize, Buffer, For, Stmt, Var
from loopwright.schedule.errors import NoSuchBlock
from loopwright.schedule.handles import block_key
from loopwright.schedule.step import BlockResult, LoopResult
from loopwright.schedule.view import View


def get_block(view: View, name: str, func_name: str | None = None) -> list[BlockResult]:
    """The one block called `name`, at any depth."""
    names = view.block_names()
    if names.count(name) != 1:
        raise NoSuchBlock(name, names)
    return [BlockResult(list(view.index.blocks)[names.index(name)])]


def get_loops(view: View, block: BlockRealize) -> list[LoopResult]:
    """The loops between a block and the block around it, outermost first."""
    return [LoopResult(loop.loop_var) for loop in view.loops_of(block_key(block.block))]


def get_child_blocks(view: View, block_or_loop: BlockRealize | For) -> list[BlockResult]:
    """The nearest blocks inside, in program order."""
    inside: Stmt = block_or_loop.block.body if isinstance(block_or_loop, BlockRealize) else block_or_loop.body
    return [BlockResult(block_key(realize.block)) for realize in view.blocks_below(inside)]


def get_producers(view: View, block: BlockRealize) -> list[BlockResult]:
    """The blocks of the same scope, before this one, that write what it reads or writes."""
    touched = _memory(block, reads=True) | _memory(block, reads=False)
    earlier, _ = _siblings(view, block)
    return [BlockResult(block_key(other.block)) for other in earlier if _memory(other, reads=False) & touched]


def get_consumers(view: View, block: BlockRealize) -> list[BlockResult]:
    """The blocks of the same scope, after this one, that read or write what it writes."""
    written = _memory(block, reads=False)
    _, later = _siblings(view, block)
    return [
        BlockResult(block_key(other.block))
        for other in later
        if (_memory(other, reads=True) | _memory(other, reads=False)) & written
    ]


def get_output_blocks(view: View, scope_block: BlockRealize) -> list[BlockResult]:
    """The blocks inside, at any depth, that write a buffer not allocated within the scope."""
    result: list[BlockResult] = []

    def look(scope: BlockRealize, outer: set[Var]) -> None:
        own = outer | {buffer.data for buffer in scope.block.alloc_buffers}
        for realize in view.blocks_below(scope.block.body):
            if _memory(realize, reads=False) - own:
                result.append(BlockResult(block_key(realize.block)))
            look(realize, own)

    look(scope_block, set())
    return result


def enter_postproc(view: View) -> list[BlockResult]:
    """Nothing: the step is a mark in the trace."""
    return []


def _siblings(view: View, block: BlockRealize) -> tuple[list[BlockRealize], list[BlockRealize]]:
    scope = view.scope_of(view.block_path(block_key(block.block)))
    blocks = view.blocks_below(scope.block.body)
    position = next(k for k, other in enumerate(blocks) if other is block)
    return blocks[:position], blocks[position + 1 :]


def _memory(realize: BlockRealize, reads: bool) -> set[Var]:
    regions = realize.block.reads if reads else realize.block.writes
    buffers: list[Buffer] = [region.buffer for region in regions]
    return {buffer.data for buffer in buffers}
