"""`tir.schedule.transform`: steps made of steps."""

from loopwright.schedule.transform import *  # noqa: F403
from loopwright.schedule.transform import tile_with_tensor_intrin
