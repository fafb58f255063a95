"""Schedule rules, one file each. Open `schedule_rule.py` first, then `multi_level_tiling.py` and `sets.py`."""

from loopwright.meta_schedule.schedule_rule.add_rfactor import AddRFactor as AddRFactor
from loopwright.meta_schedule.schedule_rule.apply_custom_rule import ApplyCustomRule as ApplyCustomRule
from loopwright.meta_schedule.schedule_rule.for_gpus import AutoBind as AutoBind
from loopwright.meta_schedule.schedule_rule.for_gpus import CrossThreadReduction as CrossThreadReduction
from loopwright.meta_schedule.schedule_rule.inline import AutoInline as AutoInline
from loopwright.meta_schedule.schedule_rule.inline import InlineConstantScalars as InlineConstantScalars
from loopwright.meta_schedule.schedule_rule.multi_level_tiling import MultiLevelTiling as MultiLevelTiling
from loopwright.meta_schedule.schedule_rule.multi_level_tiling import ReuseType as ReuseType
from loopwright.meta_schedule.schedule_rule.not_yet import MultiLevelTilingTensorCore as MultiLevelTilingTensorCore
from loopwright.meta_schedule.schedule_rule.not_yet import MultiLevelTilingWideVector as MultiLevelTilingWideVector
from loopwright.meta_schedule.schedule_rule.parallelize_vectorize_unroll import (
    ParallelizeVectorizeUnroll as ParallelizeVectorizeUnroll,
)
from loopwright.meta_schedule.schedule_rule.random_compute_location import (
    RandomComputeLocation as RandomComputeLocation,
)
from loopwright.meta_schedule.schedule_rule.schedule_rule import PyScheduleRule as PyScheduleRule
from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule as ScheduleRule
from loopwright.meta_schedule.schedule_rule.schedule_rule import create as create
from loopwright.meta_schedule.schedule_rule.sets import SETS
from loopwright.meta_schedule.schedule_rule.with_intrin import MultiLevelTilingWithIntrin as MultiLevelTilingWithIntrin

ScheduleRule.sets = SETS
