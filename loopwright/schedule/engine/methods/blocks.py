"""Blocks: the methods of a schedule that change what a block runs over: its axes, its domain, its guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.schedule.engine.arguments import map_text
from loopwright.schedule.engine.methods.base import Base
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import BlockRV, LoopRV
from loopwright.schedule.rewrite.conditions import condition_text


class BlockMethods(Base):
    """Axes in another order or number, padding, guards."""

    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """The axes of a block in the order in which `new_order` names their positions."""
        order = self._list("reorder_block_iter_var", "new_order", new_order)
        return self._do("ReorderBlockIterVar", {"block": self._block(block)}, new_order=order)

    def transform_block_layout(self, block: BlockRV | str, index_map: Callable[..., object] | str) -> None:
        """A block runs over the axes that `index_map` makes of its own."""
        text = map_text("transform_block_layout", index_map, lambda: len(self._realize(block).iter_values))
        return self._do("TransformBlockLayout", {"block": self._block(block)}, index_map=text)

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
        given = self._list("pad_einsum", "padding", padding)
        return self._do("PadEinsum", {"block": self._block(block)}, padding=given)

    def expand_product(self, block: BlockRV | str, types: Sequence[str] = ("", "")) -> None:
        """A sum of products of integers less their zero points becomes a plain one, of operands of these types."""
        given = self._list("expand_product", "types", types)
        return self._do("ExpandProduct", {"block": self._block(block)}, types=given)

    def add_guard(self, block: BlockRV | str, condition: Callable[..., object] | str) -> None:
        """A block runs only where a condition on its axes holds; proved that nobody misses the rest."""
        text = condition_text("add_guard", condition)
        return self._do("AddGuard", {"block": self._block(block)}, condition=text)

    def remove_guard(self, block: BlockRV | str, index: int | None = None) -> None:
        """A block runs wherever its loops do, or without condition number `index` of its guard."""
        return self._do("RemoveGuard", {"block": self._block(block)}, index=index)

    def unsafe_hide_buffer_access(self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]) -> None:
        """A block no longer declares some buffers it touches; the schedule is unproved from here on."""
        return self._do(
            "UnsafeHideBufferAccess",
            {"block": self._block(block)},
            buf_type=buf_type,
            buf_index_array=self._list("unsafe_hide_buffer_access", "buf_index_array", buf_index_array),
        )
