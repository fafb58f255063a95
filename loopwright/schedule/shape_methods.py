"""The methods of a schedule that change the shape of a block (its axes, its domain, its guards) or how it is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loopwright.ir import Buffer
from loopwright.schedule.conditions import condition_text
from loopwright.schedule.doing import Doing, map_text, named, sided
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV


class ShapeMethods(Doing):
    """Axes in another order or number, padding, guards, types."""

    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """The axes of a block in the order in which `new_order` names their positions."""
        return self._do("ReorderBlockIterVar", {"block": self._block(block)}, new_order=list(new_order))

    def transform_block_layout(self, block: BlockRV | str, index_map: Callable[..., Any] | str) -> None:
        """A block runs over the axes that `index_map` makes of its own."""
        text = map_text("transform_block_layout", index_map)
        return self._do("TransformBlockLayout", {"block": self._block(block)}, index_map=text)

    def unroll_and_jam(self, loop: LoopRV, factor: int) -> list[LoopRV]:
        """`factor` iterations of an outer loop are done together around each block below; the outer and inner loops."""
        return self._do("UnrollAndJam", {"loop": loop}, factor=factor)

    def add_thread_loop(self, loop: LoopRV, thread_axis: str, extent: int) -> LoopRV:
        """A loop over threads around `loop`: those that run parts of it run all of it together."""
        return self._do("AddThreadLoop", {"loop": loop}, thread_axis=thread_axis, extent=extent)

    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """The padding of a block becomes a block of its own, before `loop`; the old handle stays with the copy."""
        return self._do("DecomposePadding", {"block": self._block(block), "loop": loop})

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Whether `decompose_padding` would be accepted."""
        try:
            self.copy().decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True

    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """A sum of products runs over axes that are multiples of `padding`, on padded copies of its operands."""
        return self._do("PadEinsum", {"block": self._block(block)}, padding=list(padding))

    def expand_product(self, block: BlockRV | str, types: Sequence[str] = ("", "")) -> None:
        """A sum of products of integers less their zero points becomes a plain one, of operands of these types."""
        return self._do("ExpandProduct", {"block": self._block(block)}, types=list(types))

    def specialize(self, *loops: LoopRV, condition: Callable[..., Any] | str) -> list[BlockRV]:
        """Nests are written twice: copies run for sizes that fulfil the condition. Gives the blocks of the copies."""
        text = condition_text("specialize", condition)
        made: list[BlockRV] = self._do("Specialize", {"loops": list(loops)}, condition=text)
        return made

    def add_guard(self, block: BlockRV | str, condition: Callable[..., Any] | str) -> None:
        """A block runs only where a condition on its axes holds; proved that nobody misses the rest."""
        text = condition_text("add_guard", condition)
        return self._do("AddGuard", {"block": self._block(block)}, condition=text)

    def remove_guard(self, block: BlockRV | str, index: int | None = None) -> None:
        """A block runs wherever its loops do, or without condition number `index` of its guard."""
        return self._do("RemoveGuard", {"block": self._block(block)}, index=index)

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

    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """A place to compute the block at: a loop, where it stands, or its consumers; for `compute_at`."""
        made: LoopRV = self.run_instruction("SampleComputeLocation", {"block": self._block(block)}, {}, decision)[0]
        return made

    def set_axis_separator(
        self, block: BlockRV | str, buffer: tuple[str, int] | str | Buffer, axis_separators: Sequence[int]
    ) -> None:
        """The dimensions of a buffer are grouped into those of physical memory."""
        return self._do(
            "SetAxisSeparator",
            {"block": self._block(block)},
            buffer=sided(buffer),
            axis_separators=list(axis_separators),
        )

    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int | str | Buffer, dtype: str) -> None:
        """A buffer holds numbers of another type; the schedule is unproved from here on."""
        return self._do(
            "UnsafeSetDType", {"block": self._block(block)}, buffer_index=named(buffer_index), dtype=str(dtype)
        )

    def unsafe_hide_buffer_access(self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]) -> None:
        """A block no longer declares some buffers it touches; the schedule is unproved from here on."""
        return self._do(
            "UnsafeHideBufferAccess",
            {"block": self._block(block)},
            buf_type=buf_type,
            buf_index_array=list(buf_index_array),
        )
