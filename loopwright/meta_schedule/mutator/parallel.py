"""MutateParallel: another limit for the number of tasks.

i_0 (4), j_0 (8), i_1 (32), …       limits that make a difference: 4, 4 · 8, 4 · 8 · 32, …
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loopwright.ir import IterType, SeqStmt
from loopwright.meta_schedule.block_questions import extent_of, is_below_root, loop_kinds, loops_above
from loopwright.meta_schedule.mutator.mutator import Mutator
from loopwright.schedule import Schedule, Trace
from loopwright.target import Target, describe


class MutateParallel(Mutator):
    """Up to `max_jobs_per_core` for each core; -1 changes nothing."""

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        self.max_jobs_per_core = max_jobs_per_core

    def apply(self, trace: Trace) -> Trace | None:
        target = getattr(self._context, "target", None) or Target("llvm")
        most = self.max_jobs_per_core * describe(target).num_cores
        for position, inst in enumerate(trace.insts):
            if str(inst.kind) == "Annotate" and inst.attrs["ann_key"] == "meta_schedule.parallel":
                held: Any = inst.attrs["ann_val"]
                others = [limit for limit in self._limits(trace, int(held)) if limit <= most]
                if not others:
                    return None
                result = trace.copy()
                attrs = {**inst.attrs, "ann_val": self.random.choice(others)}
                result.insts[position] = replace(inst, attrs=attrs)
                return result
        return None

    def _limits(self, trace: Trace, limit: int) -> list[int]:
        """The numbers of tasks that outer data loops can make together, without those that are made now."""
        if self._context is None or self._context.mod is None:
            return []
        sch = Schedule(self._context.mod, enable_check=False, error_render_level="none")
        trace.apply_to_schedule(sch, remove_postproc=True)
        found: set[int] = set()
        for name in sch.views():
            for block in sch.get_child_blocks(sch.get_block("root", name)):
                products = _products(sch, block) if is_below_root(sch, block) else []
                made = next((count for count in products if count > limit), products[-1] if products else 0)
                found.update(count for count in products if count != made)
        return sorted(found)


def _products(sch: Schedule, block: Any) -> list[int]:
    total, result = 1, []
    for loop, kind in zip(loops_above(sch, block), loop_kinds(sch, block), strict=True):
        extent = extent_of(loop.extent)
        if kind != IterType.DataPar or extent is None:
            break
        total *= extent
        result.append(total)
        if isinstance(loop.body, SeqStmt):
            break
    return result
