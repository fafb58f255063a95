"""disallow_recomputation: rejects schedules that compute the same values many times over.

A producer may be computed at any loop of its consumer, also where each iteration needs all of it: legal, and slow
enough to hold up a search.
"""

from __future__ import annotations

from math import prod

from loopwright.autosched.facts import const
from loopwright.schedule import Schedule
from loopwright.tune.sketches.blocks import leaf_blocks
from loopwright.tune.sketches.notes import PLACES
from loopwright.tune.sketches.postprocs.postproc import Postproc


class DisallowRecomputation(Postproc):
    """Compares how often a block of sampled location runs with how many values its axes take."""

    name = "disallow_recomputation"

    def __init__(self, most: float = 4.0) -> None:
        self.most = most

    def apply(self, sch: Schedule) -> bool:
        view = sch.view()
        for block in leaf_blocks(sch):
            realize = view.realize(block.key)
            if PLACES not in realize.block.annotations:
                continue
            loops = view.all_loops_above(view.block_path(block.key))
            done = prod([const(loop.extent) or 1 for loop in loops])
            domains = [axis.dom for axis in realize.block.iter_vars if axis.dom is not None]
            if done > self.most * prod([const(domain.extent) or 1 for domain in domains]):
                return False
        return True
