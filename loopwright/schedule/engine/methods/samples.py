"""Samples: the methods of a schedule that draw numbers for a search, or leave notes for who comes later."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.schedule.engine.methods.base import Base
from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV


class SampleMethods(Base):
    """Sampled tiles, choices and places; annotations; the mark before the finishing steps."""

    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: object) -> None:
        """A note on a block or loop; an existing one with that key stays."""
        return self._do("Annotate", {"block_or_loop": block_or_loop}, ann_key=ann_key, ann_val=ann_val)

    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Take a note away."""
        return self._do("Unannotate", {"block_or_loop": block_or_loop}, ann_key=ann_key)

    def sample_perfect_tile(
        self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> list[ExprRV]:
        """`n` factors whose product is the extent of the loop, the last at most `max_innermost_factor` (-1: any)."""
        attrs = {"n": n, "max_innermost_factor": max_innermost_factor}
        return self.run_instruction("SamplePerfectTile", {"loop": loop}, attrs, decision)

    def sample_partitioned_tile(
        self,
        loop: LoopRV,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` factors of a loop, of which those from `partition_pos` on make a multiple of `innerpart_factor`."""
        attrs = {"n": n, "partition_pos": partition_pos, "innerpart_factor": innerpart_factor}
        return self.run_instruction("SamplePartitionedTile", {"loop": loop}, attrs, decision)

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of the candidates by its probability; `decision` is its position."""
        step = "sample_categorical"
        attrs = {
            "candidates": self._list(step, "candidates", candidates),
            "probs": self._list(step, "probs", probs),
        }
        result: ExprRV = self.run_instruction("SampleCategorical", {}, attrs, decision)[0]
        return result

    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """A place to compute the block at: a loop, where it stands, or its consumers; for `compute_at`."""
        result: LoopRV = self.run_instruction("SampleComputeLocation", {"block": self._block(block)}, {}, decision)[0]
        return result

    def enter_postproc(self) -> None:
        """A mark in the trace: what comes now finishes the schedule, and is left out by `remove_postproc`."""
        return self._do("EnterPostproc", {})
