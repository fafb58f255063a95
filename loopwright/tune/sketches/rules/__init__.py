"""Rules, one file each, and those for CPUs in the order in which they are applied."""

from __future__ import annotations

from loopwright.tune.sketches.rules.add_rfactor import AddRFactor
from loopwright.tune.sketches.rules.apply_custom_rule import ApplyCustomRule
from loopwright.tune.sketches.rules.auto_inline import AutoInline
from loopwright.tune.sketches.rules.inline_constant_scalars import InlineConstantScalars
from loopwright.tune.sketches.rules.multi_level_tiling import MultiLevelTiling, ReuseType
from loopwright.tune.sketches.rules.packed_tiling import PackedTiling
from loopwright.tune.sketches.rules.pad_odd_sizes import PadOddSizes
from loopwright.tune.sketches.rules.parallelize_vectorize_unroll import ParallelizeVectorizeUnroll
from loopwright.tune.sketches.rules.random_compute_location import RandomComputeLocation
from loopwright.tune.sketches.rules.rule import ScheduleRule

__all__ = [
    "AddRFactor",
    "ApplyCustomRule",
    "AutoInline",
    "InlineConstantScalars",
    "MultiLevelTiling",
    "PackedTiling",
    "PadOddSizes",
    "ParallelizeVectorizeUnroll",
    "RandomComputeLocation",
    "ReuseType",
    "ScheduleRule",
    "llvm_rules",
]


def llvm_rules(packing: bool = True) -> list[ScheduleRule]:
    """The rules for CPUs; without `packing`, operands stay as they lie."""
    packed: list[ScheduleRule] = [PackedTiling()] if packing else []
    return [
        ApplyCustomRule(),
        InlineConstantScalars(),
        AutoInline(),
        AddRFactor(),
        PadOddSizes(),
        *packed,  # before the other tiling, which leaves what is tiled alone
        MultiLevelTiling(),
        ParallelizeVectorizeUnroll(),
        RandomComputeLocation(),  # when loops of consumers are as they will be
    ]
