"""Schedulers of tasks. Open `task_scheduler.py` first, then `turns.py`."""

from loopwright.meta_schedule.task_scheduler.task_scheduler import PyTaskScheduler as PyTaskScheduler
from loopwright.meta_schedule.task_scheduler.task_scheduler import TaskRecord as TaskRecord
from loopwright.meta_schedule.task_scheduler.task_scheduler import TaskScheduler as TaskScheduler
from loopwright.meta_schedule.task_scheduler.task_scheduler import create as create
from loopwright.meta_schedule.task_scheduler.turns import GradientBased as GradientBased
from loopwright.meta_schedule.task_scheduler.turns import RoundRobin as RoundRobin
