"""`tir.schedule.analysis`: small questions about schedules."""

from loopwright.schedule.analysis import *  # noqa: F403
from loopwright.schedule.analysis import has_block, is_output_block, suggest_index_map
