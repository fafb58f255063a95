"""MultiLevelTilingWithIntrin: tiles around a tensor intrinsic, where the block computes what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.meta_schedule.block_questions import is_root, view_of
from loopwright.meta_schedule.schedule_rule.multi_level_tiling import STRUCTURE, MultiLevelTiling, ReuseType
from loopwright.schedule import BlockRV, Schedule, ScheduleError
from loopwright.schedule.analysis import get_tensorize_loop_mapping
from loopwright.schedule.transform import tile_with_tensor_intrin
from loopwright.transform.tensor_intrinsics import TensorIntrin
from loopwright.tune.sketches import rules as sketch

AUTO_TENSORIZE = "meta_schedule.auto_tensorize"


class MultiLevelTilingWithIntrin(MultiLevelTiling):
    """A block that the intrinsic does not fit stays as it is."""

    def __init__(
        self,
        intrin_name: str,
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        filter_fn: Callable[[Schedule, BlockRV], bool] | None = None,
    ) -> None:
        super().__init__(
            structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write, filter_fn
        )
        self.intrin_name = intrin_name

    def sketch_rules(self) -> list[sketch.ScheduleRule]:
        return []  # blocks that an intrinsic fits are left to the rules' own space, which knows them

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if is_root(sch, block) or not view_of(sch, block).loops_of(block.key):
            return [sch]
        trial = sch.copy()
        try:
            if get_tensorize_loop_mapping(trial, block, TensorIntrin.get(self.intrin_name).desc) is None:
                return [sch]
            trial.annotate(block, STRUCTURE, self.structure)
            tiled = tile_with_tensor_intrin(trial, block, self.intrin_name)
            if tiled is None:
                return [sch]
            outer = trial.blockize(tiled)
            trial.annotate(outer, AUTO_TENSORIZE, self.intrin_name)
        except ScheduleError:
            return [sch]
        return self.tiled(trial, outer)
