"""Postprocs that change nothing here: checks, and what lowering does by itself."""

from __future__ import annotations

from loopwright.ir import IntImm
from loopwright.meta_schedule.postproc.postproc import Postproc
from loopwright.runtime.errors import NotBuilt
from loopwright.schedule import Schedule


class DisallowDynamicLoop(Postproc):
    """Rejects loops whose number of iterations is known only when the program runs."""

    def apply(self, sch: Schedule) -> bool:
        loops = [view.loop(var) for view in sch.views().values() for var in view.index.loops]
        return all(isinstance(loop.extent, IntImm) for loop in loops)


class RewriteLayout(Postproc):
    """Nothing to do: a copy of a constant operand in another layout is made ahead of the call when it is lowered."""

    def apply(self, sch: Schedule) -> bool:
        return True


class DisallowAsyncStridedMemCopy(Postproc):
    """Nothing to check: there are no asynchronous copies."""

    def apply(self, sch: Schedule) -> bool:
        return True


class _ForGpu(Postproc):
    """Needs a GPU target."""

    def apply(self, sch: Schedule) -> bool:
        raise NotBuilt(f"meta_schedule.postproc.{type(self).__name__}", hint="GPU targets are not there yet")


class RewriteCooperativeFetch(_ForGpu):
    """Shares copies among threads."""


class RewriteUnboundBlock(_ForGpu):
    """Binds what no thread runs yet."""

    def __init__(self, max_threadblocks: int = 256) -> None:
        self.max_threadblocks = max_threadblocks


class VerifyGPUCode(_ForGpu):
    """Rejects what a GPU cannot run."""


class VerifyVTCMLimit(_ForGpu):
    """Rejects what does not fit a DSP's memory."""

    def __init__(self, vtcm_capacity: int = 0) -> None:
        self.vtcm_capacity = vtcm_capacity
