"""scan: running totals along an axis, as `topi.cumsum` writes them. `gpu/idiom_kernels.py` writes their kernels.

The loops stay as they are until all blocks are scheduled.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.decision import ChoiceKind, Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.idiom_kernels import is_scan, scan_of
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.parallel_scan import plan_of
from loopwright.autosched.gpu.scan_idiom import ScanIdiom
from loopwright.autosched.program import Entry, Program
from loopwright.schedule import Schedule


class Scan:
    """Takes one block that is nothing but a scan."""

    name = "scan"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        return int(is_scan(pending[0].realize.block))

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        scan = scan_of(entries[0].realize.block, machine)
        if scan is None:
            raise NotWorthIt("a block has fewer threads than a warp")
        why = "blocks of threads share rows or columns, and pass on totals"
        decision.chose("kernels of its own", why, ChoiceKind.NO_STEPS)
        if isinstance(scan, ScanIdiom) and plan_of(scan, machine).looks_back:
            decision.chose("one pass over memory", "L2 does not keep the rows for a second one: blocks hand on totals")
