"""Questions: the methods of a schedule that find blocks and loops. They change nothing."""

from __future__ import annotations

from loopwright.schedule.engine.methods.base import Base
from loopwright.schedule.handles import BlockRV, LoopRV


class QuestionMethods(Base):
    """Blocks by name, the loops around one, its neighbours."""

    _function: str | None  # that names are looked up in

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block called `name`."""
        return self._do("GetBlock", {}, name=name, func_name=self._function if func_name is None else func_name)

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops between a block and the block around it, outermost first."""
        return self._do("GetLoops", {"block": self._block(block)})

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """The nearest blocks inside, in program order."""
        return self._do("GetChildBlocks", {"block_or_loop": block_or_loop})

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that write what this one reads."""
        return self._do("GetProducers", {"block": self._block(block)})

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that read what this one writes."""
        return self._do("GetConsumers", {"block": self._block(block)})

    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """The blocks inside that write a buffer from outside."""
        return self._do("GetOutputBlocks", {"scope_block": self._block(scope_block)})
