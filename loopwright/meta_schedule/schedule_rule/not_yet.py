"""Rules for devices that are not built yet: they can be made and put into lists, and leave blocks as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.meta_schedule.schedule_rule.multi_level_tiling import MultiLevelTiling
from loopwright.schedule import BlockRV, Schedule


class MultiLevelTilingTensorCore(MultiLevelTiling):
    """Tiles for the matrix units of GPUs."""

    def __init__(
        self,
        intrin_groups: Sequence[Any],
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: Any = None,
        reuse_write: Any = None,
        use_software_pipeline: bool = False,
    ) -> None:
        super().__init__(structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write)
        self.intrin_groups, self.use_software_pipeline = list(intrin_groups), use_software_pipeline

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        return [sch]


class MultiLevelTilingWideVector(MultiLevelTiling):
    """Tiles for vectors of a thousand bits."""

    def __init__(
        self,
        structure: str,
        vector_length_in_bits: int,
        max_innermost_factor: int | None = None,
        reuse_read: Any = None,
        reuse_write: Any = None,
    ) -> None:
        super().__init__(structure, None, max_innermost_factor, None, reuse_read, reuse_write)
        self.vector_length_in_bits = vector_length_in_bits

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        return [sch]
