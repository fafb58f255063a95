"""Rules, one file each, and those for CPUs in the order in which they are applied."""

from __future__ import annotations

from loopwright.tune.sketches.rules.multi_level_tiling import MultiLevelTiling, ReuseType
from loopwright.tune.sketches.rules.packed_tiling import PackedTiling
from loopwright.tune.sketches.rules.parallelize_vectorize_unroll import ParallelizeVectorizeUnroll
from loopwright.tune.sketches.rules.rule import ScheduleRule

__all__ = [
    "MultiLevelTiling",
    "PackedTiling",
    "ParallelizeVectorizeUnroll",
    "ReuseType",
    "ScheduleRule",
    "llvm_rules",
]


def llvm_rules(packing: bool = True) -> list[ScheduleRule]:
    """The rules for CPUs; without `packing`, operands stay as they lie."""
    packed: list[ScheduleRule] = [PackedTiling()] if packing else []
    return [*packed, MultiLevelTiling(), ParallelizeVectorizeUnroll()]
