"""`tir.schedule.analysis`: small questions about schedules."""

from loopwright.schedule.analysis import *  # noqa: F403
from loopwright.schedule.analysis import (
    AutoTensorizeMappingInfo,
    TensorizeInfo,
    get_auto_tensorize_mapping_info,
    get_tensorize_loop_mapping,
    has_block,
    is_output_block,
    suggest_index_map,
)
