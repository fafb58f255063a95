"""Computation: the methods of a schedule that say where a block computes, and in which pieces."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.schedule.engine.methods.base import Base
from loopwright.schedule.handles import BlockRV, LoopRV


class ComputationMethods(Base):
    """Blocks at other loops, in each other, in parts, or by an instruction."""

    def compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """A producer moves under a consumer's loop and computes there what one iteration needs."""
        inputs = {"block": self._block(block), "loop": loop}
        return self._do("ComputeAt", inputs, preserve_unit_loops=preserve_unit_loops, index=index)

    def reverse_compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """A consumer moves under a producer's loop and uses up there what one iteration made."""
        inputs = {"block": self._block(block), "loop": loop}
        return self._do("ReverseComputeAt", inputs, preserve_unit_loops=preserve_unit_loops, index=index)

    def compute_inline(self, block: BlockRV | str) -> None:
        """A block's value is computed where it is read, and the block is gone."""
        return self._do("ComputeInline", {"block": self._block(block)})

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """A block is folded into the block that makes what it reads."""
        return self._do("ReverseComputeInline", {"block": self._block(block)})

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """A reduction's init becomes a block of its own, before `loop`; the old handle stays with the updates."""
        return self._do("DecomposeReduction", {"block": self._block(block), "loop": loop})

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """A loop of a reduction becomes data: partial results in a new dimension, combined by a second reduction."""
        return self._do("RFactor", {"loop": loop}, factor_axis=factor_axis)

    def winograd(self, block: BlockRV | str, tile: int = 4) -> list[BlockRV]:
        """A convolution is computed from tiles of `tile` results a dimension, with fewer products; the new blocks.

        They are equal over the real numbers, and rounded otherwise: `schedule.winograd.error_bound` says how far.
        """
        return self._do("Winograd", {"block": self._block(block)}, tile=tile)

    def blockize(
        self, target: LoopRV | BlockRV | str | Sequence[BlockRV | str], preserve_unit_iters: bool = True
    ) -> BlockRV:
        """What is below a loop, or blocks in a row, become one block over whole tiles."""
        given = [target] if isinstance(target, (BlockRV, str)) else target
        return self._do("Blockize", {"target": given}, preserve_unit_iters=preserve_unit_iters)

    def tensorize(
        self, block_or_loop: BlockRV | LoopRV | str, tensor_intrin: str, preserve_unit_iters: bool = True
    ) -> None:
        """A block, or what is below a loop, is computed by an instruction that `tensor_intrin` names."""
        attrs = {"tensor_intrin": tensor_intrin, "preserve_unit_iters": preserve_unit_iters}
        return self._do("Tensorize", {"block_or_loop": block_or_loop}, **attrs)
