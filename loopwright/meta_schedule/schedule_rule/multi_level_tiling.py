"""MultiLevelTiling: the loops of a reduction become levels of tiles, with or without a copy of results and operands.

SSRSRS        i0 j0  i1 j1  k0  i2 j2  k1  i3 j3
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from loopwright.ir import IterType
from loopwright.meta_schedule.block_questions import (
    is_copied_result,
    is_root,
    loop_kinds,
    needs_multi_level_tiling,
    realize_of,
)
from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from loopwright.runtime.dtype import DataType
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.tune.sketches import rules as sketch

STRUCTURE = "meta_schedule.tiling_structure"
FETCH = "meta_schedule.cooperative_fetch"
_VECTOR_BITS = 128  # of one load of a thread


class ReuseType(NamedTuple):
    """Whether tiles are copied ("no", "may", "must"), after which levels, and where to."""

    req: str
    levels: Sequence[int]
    scope: str

    def as_dict(self) -> dict[str, Any]:
        return {"req": self.req, "levels": list(self.levels), "scope": self.scope}


class MultiLevelTiling(ScheduleRule):
    """`structure` names the levels; the first ones are bound to `tile_binds`."""

    def __init__(
        self,
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        filter_fn: Callable[[Schedule, BlockRV], bool] | None = None,
    ) -> None:
        self.structure, self.tile_binds = structure, list(tile_binds or ())
        self.max_innermost_factor, self.vector_load_lens = max_innermost_factor, list(vector_load_lens or ())
        self.reuse_read, self.reuse_write, self.filter_fn = _reuse(reuse_read), _reuse(reuse_write), filter_fn

    def sketch_rules(self) -> list[sketch.ScheduleRule] | None:
        if self.tile_binds or self.filter_fn is not None:
            return None
        write = None if self.reuse_write is None else sketch.ReuseType(*self.reuse_write)
        given: dict[str, Any] = {"structure": self.structure, "reuse_write": write}
        if self.max_innermost_factor is not None:
            given["max_innermost_factor"] = self.max_innermost_factor
        given = {key: value for key, value in given.items() if value is not None}
        return [sketch.PackedTiling(**given), sketch.MultiLevelTiling(**given)]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if is_root(sch, block) or not self._is_wanted(sch, block):
            return [sch]
        sch.annotate(block, STRUCTURE, self.structure)
        return self.tiled(sch, block)

    def _is_wanted(self, sch: Schedule, block: BlockRV) -> bool:
        if self.filter_fn is not None:
            return bool(self.filter_fn(sch, block)) or needs_multi_level_tiling(sch, block)
        return needs_multi_level_tiling(sch, block)

    def tiled(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The alternatives: with and without copies."""
        tiles = self._tile_loops(sch, block)
        results = self._with_result_copies(sch, block, tiles)
        return [one for result in results for one in self._with_operand_copies(result, block, tiles)]

    # --- parts ---

    def _tile_loops(self, sch: Schedule, block: BlockRV) -> list[list[LoopRV]]:
        loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
        axes = sch.get(block).iter_vars
        if len(axes) == len(loops):  # a loop of one iteration may not be read by its axis any more
            kinds = [int(axis.iter_type) for axis in axes]
        levels: list[list[LoopRV]] = [[] for _ in self.structure]
        most = -1 if self.max_innermost_factor is None else self.max_innermost_factor
        for loop, kind in zip(loops, kinds, strict=True):
            letter = {IterType.DataPar: "S", IterType.CommReduce: "R"}.get(kind)  # type: ignore[call-overload]
            own = [level for level, other in enumerate(self.structure) if other == letter]
            if len(own) == 1:
                levels[own[0]].append(loop)
            elif own:
                factors = sch.sample_perfect_tile(loop, len(own), most)
                for level, part in zip(own, sch.split(loop, factors), strict=True):
                    levels[level].append(part)
        sch.reorder(*[loop for level in levels for loop in level])
        for level, thread in enumerate(self.tile_binds[: len(levels)]):
            fused = sch.fuse(*levels[level])
            sch.bind(fused, thread)
            levels[level] = [fused]
        return levels

    def _with_result_copies(self, sch: Schedule, block: BlockRV, tiles: Sequence[Sequence[LoopRV]]) -> list[Schedule]:
        reuse = self.reuse_write
        if reuse is None or reuse.req == "no":
            return [sch]
        levels, must = list(reuse.levels), reuse.req == "must"
        asked: Any = sch.get(block).annotations.get("meta_schedule.write_cache_level")
        if asked is not None:
            levels, must = [int(level) for level in asked], True
        results = []
        if not must:
            consumers = sch.get_consumers(block)
            if len(consumers) == 1 and is_copied_result(sch, consumers[0]):
                for level in levels:
                    trial = sch.copy()
                    trial.reverse_compute_at(consumers[0], tiles[level - 1][-1], preserve_unit_loops=True)
                    results.append(trial)
                return [*results, sch]
            results.append(sch.copy())
        copied = sch.cache_write(block, 0, reuse.scope)
        for level in levels:
            trial = sch.copy()
            trial.reverse_compute_at(copied, tiles[level - 1][-1], preserve_unit_loops=True)
            results.append(trial)
        return results

    def _with_operand_copies(self, sch: Schedule, block: BlockRV, tiles: Sequence[Sequence[LoopRV]]) -> list[Schedule]:
        reuse = self.reuse_read
        if reuse is None or reuse.req == "no":
            return [sch]
        results = []
        for level in reuse.levels:
            trial = sch.copy()
            for index, rank in enumerate(_ranks_of_operands(trial, block)):
                if rank is None:
                    continue
                copied = trial.cache_read(block, index, reuse.scope, [block])
                trial.compute_at(copied, tiles[level - 1][-1], preserve_unit_loops=True)
                fused = trial.fuse(*trial.get_loops(copied)[-rank:])
                del fused
                self._fetch_together(trial, copied)
            results.append(trial)
        return results

    def _fetch_together(self, sch: Schedule, copied: BlockRV) -> None:
        """All threads copy, each some neighbours at once; how many is sampled."""
        bits = DataType(str(sch.get(copied).writes[0].buffer.dtype)).bits
        widths = [width for width in self.vector_load_lens if width * bits <= _VECTOR_BITS]
        if widths:
            chosen = sch.sample_categorical(widths, [1 / len(widths)] * len(widths))
            sch.annotate(copied, FETCH, chosen)


def _ranks_of_operands(sch: Schedule, block: BlockRV) -> list[int | None]:
    """The number of dimensions of each buffer that is read; None for those that are written as well."""
    body = realize_of(sch, block).block
    written = [region.buffer for region in body.writes]
    return [None if any(region.buffer is one for one in written) else len(region.buffer.shape) for region in body.reads]


def _reuse(given: ReuseType | Mapping[str, Any] | None) -> ReuseType | None:
    if isinstance(given, Mapping):
        return ReuseType(str(given["req"]), [int(level) for level in given["levels"]], str(given["scope"]))
    return given
