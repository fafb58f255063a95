"""flush: what caches hold when a sample begins.

    warm     what the calls before left there: a kernel that runs over and over
    model    as between the kernels of a model: nothing of this one is in the L2 of any thread, L3 is as it was
    cold     nothing is in any cache

A kernel whose weights stay in L2 from call to call finds other schedules fastest than one that streams them from L3 in
every run of the model: without prefetch, with larger panels. What threads flush they do in parallel, each its own L2;
they are awake when the sample begins, as they are between two kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from loopwright.ir import IRModule
from loopwright.schedule import Schedule
from loopwright.target import Target, describe
from loopwright.te import compute, create_prim_func, placeholder

if TYPE_CHECKING:
    from loopwright.tune.measure.builder import Built

STATES: Final = ("warm", "model", "cold")
_TWICE: Final = 2  # what a cache holds: more than least recently used lines must go
_NO_L2: Final = 1 << 20
_NO_L3: Final = 32 << 20

Flush = Callable[[], None]


def l2_walk(target: Target, threads: int) -> Built:
    """A program in which each thread reads and writes more memory than its L2 holds; compiled once, before any race."""
    from loopwright.tune.measure.builder import BuildJob, build_here

    return build_here(BuildJob(lambda: _walk(target, threads)), target, ())


def _elements(target: Target) -> int:
    """Of float32, that one thread reads, and as many that it writes."""
    return _TWICE * (describe(target).cache_sizes.l2 or _NO_L2) // 2 // 4


def _walk(target: Target, threads: int) -> IRModule:
    X = placeholder((threads, _elements(target)), name="X")
    Y = compute(X.shape, lambda thread, i: X[thread, i] + 1.0, name="Y")
    sch = Schedule(create_prim_func([X, Y]))
    thread, i = sch.get_loops("Y")
    sch.vectorize(sch.split(i, [None, describe(target).native_vector_lanes("float32")])[1])
    if threads > 1:
        sch.parallel(thread)
    return sch.mod


def flush_l2(walk: Built, target: Target, threads: int) -> Flush:
    """Run that program, on memory of this process."""
    function = walk.load(target).entry_func
    arrays = [np.zeros((threads, _elements(target)), np.float32) for _ in range(2)]

    def flush() -> None:
        function(*arrays)

    return flush


def flush_all(target: Target) -> Flush:
    """Walk more memory than the last cache holds."""
    other = np.zeros(_TWICE * (describe(target).cache_sizes.l3 or _NO_L3), np.uint8)

    def flush() -> None:
        other.__iadd__(1)

    return flush
