"""Generators of design spaces. Open `space_generator.py` first, then `post_order_apply.py`."""

from loopwright.meta_schedule.space_generator.post_order_apply import PostOrderApply as PostOrderApply
from loopwright.meta_schedule.space_generator.schedule_fn import ScheduleFn as ScheduleFn
from loopwright.meta_schedule.space_generator.space_generator import PySpaceGenerator as PySpaceGenerator
from loopwright.meta_schedule.space_generator.space_generator import SpaceGenerator as SpaceGenerator
from loopwright.meta_schedule.space_generator.space_generator import create as create
from loopwright.meta_schedule.space_generator.union import SpaceGeneratorUnion as SpaceGeneratorUnion
