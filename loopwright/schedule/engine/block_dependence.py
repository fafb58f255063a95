"""BlockDependenceInfo: the blocks of a program, each in the block around it, and what depends on what."""

from __future__ import annotations

from loopwright.ir import Block, BlockRealize, For, IRModule, PrimFunc
from loopwright.schedule.engine.state import BlockScope, ScheduleState, StmtSRef


class _BlockSRef(StmtSRef):
    @property
    def parent(self) -> StmtSRef | None:
        """The block around it; loops do not count."""
        around = super().parent
        while around is not None and not isinstance(around._path[-1], BlockRealize):
            around = around.parent
        return around if around is None else _BlockSRef(around._view, around._path, owner=around._owner)


class BlockDependenceInfo:
    """The dependencies between the blocks of a program, to be asked for block by block."""

    def __init__(self, mod: PrimFunc | IRModule) -> None:
        self.mod = mod
        self._state = ScheduleState(mod)

    def get_sref(self, block: Block | For) -> StmtSRef:
        """A block in its place; its parent is the block around it."""
        found = self._state.get_sref(block)
        return _BlockSRef(found._view, found._path, owner=found._owner)

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The dependencies between the blocks right inside a block."""
        return self._state.get_block_scope(block_sref)
