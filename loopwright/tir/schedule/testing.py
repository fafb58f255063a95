"""`tir.schedule.testing`: helpers for tests of schedules."""

from loopwright.schedule.testing import *  # noqa: F403
from loopwright.schedule.testing import assert_structural_equal_ignore_global_symbol, verify_trace_roundtrip
