"""`tir.schedule`: schedules of programs with blocks."""

from loopwright.schedule import *  # noqa: F403
from loopwright.schedule import Schedule, ScheduleError, analysis, testing, transform
from loopwright.schedule.engine.state import (
    BlockScope,
    CachedFlags,
    Dependency,
    DepKind,
    ScheduleDebugMask,
    ScheduleState,
    StmtSRef,
)
