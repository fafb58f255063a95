"""PostOrderApply: the sketches of a program, by applying each rule to each block of each schedule so far.

    [sch]  --inline-->  [sch]  --tiling of C-->  [C tiled, C tiled and cached, …]  --tiling of D-->  …

Steps are not proved here: whoever makes a schedule of a sketch proves it, for the sizes it then has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from loopwright.autosched.machine import Machine
from loopwright.ir import IRModule
from loopwright.schedule import BlockRV, Schedule, ScheduleError
from loopwright.tune.sketches.blocks import leaf_blocks
from loopwright.tune.sketches.rules.apply_custom_rule import ApplyCustomRule, custom_rule_of
from loopwright.tune.sketches.rules.rule import ScheduleRule
from loopwright.tune.sketches.sketch import Sketch

MOST_SKETCHES = 48  # after each rule: those of the likeliest alternatives, which rules name first


class PostOrderApply:
    """Consumers are visited before their producers; blocks that a rule makes are visited by the rules after it."""

    def __init__(
        self, rules: Sequence[ScheduleRule], f_block_filter: Callable[[Schedule, BlockRV], bool] | None = None
    ) -> None:
        self.rules, self.f_block_filter = list(rules), f_block_filter

    def generate(self, mod: IRModule, machine: Machine, seed: int = 1) -> list[Sketch]:
        """The sketches of a module with one function."""
        schedules = [Schedule.draft(mod, seed)]
        for rule in self.rules:
            rule = rule.on(machine)
            walked = (done for sch in schedules for done in self._walked(rule, sch))
            schedules = list(islice(walked, MOST_SKETCHES))  # what is beyond them is never made
        return [Sketch.of(sch) for sch in schedules]

    def _walked(self, rule: ScheduleRule, sch: Schedule) -> list[Schedule]:
        """A rule at every block, the last ones first."""
        done = [sch]
        for block in reversed(leaf_blocks(sch)):
            applied = (after for before in done for after in self._applied(rule, before, block))
            done = list(islice(applied, MOST_SKETCHES))
        return done

    def _applied(self, rule: ScheduleRule, sch: Schedule, block: BlockRV) -> list[Schedule]:
        view = sch.view()
        if view.current(block.key) not in view.index.blocks:
            return [sch]  # inlined meanwhile
        own = sch.copy()
        handle = own.get_block(view.realize(block.key).block.name_hint)
        if self.f_block_filter is not None and not self.f_block_filter(own, handle):
            return [sch]
        if custom_rule_of(own, handle) is not None and not isinstance(rule, ApplyCustomRule):
            return [sch]  # it says itself what is done with it
        try:
            result = rule.apply(own, handle)
        except ScheduleError:
            return [sch]
        return [sch if one is own and len(own.trace.insts) == len(sch.trace.insts) + 1 else one for one in result]
