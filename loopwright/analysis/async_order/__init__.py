"""Checked asynchrony: kernels with mbarriers, asynchronous copies and wgmma do all in the order that they need.

check.py        check_async_order: start here; which sizes and blocks are tried
kernels.py      the kernels that are looked at, and their memory
walk.py         what each thread does, as events (`events.py`; those of calls in `calls.py`)
sites.py, footprints.py, values.py      … and which elements it touches
classes.py      threads that do the same
order.py        the happens-before relation of one block: clocks of classes, mbarriers (`barriers.py`)
accesses.py     whether accesses of one element are ordered; elements that are alike are atoms (`atoms.py`)
errors.py       what is refused
"""

from loopwright.analysis.async_order.check import AsyncOrder, check_async_order
from loopwright.analysis.async_order.errors import (
    AccumulatorsInUse,
    AsyncOrderError,
    NoProxyFence,
    NotByWholeWarps,
    NotOrdered,
    PhaseMismatch,
    WaitsForever,
)

__all__ = [
    "AccumulatorsInUse",
    "AsyncOrder",
    "AsyncOrderError",
    "NoProxyFence",
    "NotByWholeWarps",
    "NotOrdered",
    "PhaseMismatch",
    "WaitsForever",
    "check_async_order",
]
