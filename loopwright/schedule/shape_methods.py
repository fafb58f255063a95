"""The methods of a schedule that change the shape of a block: its axes, its domain, its guards."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.schedule.doing import Doing
from loopwright.schedule.handles import BlockRV


class ShapeMethods(Doing):
    """Axes in another order or number, padding, guards."""

    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """The axes of a block in the order in which `new_order` names their positions."""
        return self._do("ReorderBlockIterVar", {"block": self._block(block)}, new_order=list(new_order))
