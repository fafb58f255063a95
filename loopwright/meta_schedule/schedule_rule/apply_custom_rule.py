"""ApplyCustomRule: what a block asks for by its annotation `schedule_rule` is done, and nothing else."""

from __future__ import annotations

from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from loopwright.runtime import get_global_func
from loopwright.schedule import BlockRV, Schedule
from loopwright.tune.sketches import UnknownScheduleRule
from loopwright.tune.sketches import rules as sketch


class ApplyCustomRule(ScheduleRule):
    """A block may ask for nothing (`"None"`), or for a function that is registered, also under a key of the target."""

    is_for_custom_rules = True

    def sketch_rules(self) -> list[sketch.ScheduleRule]:
        return [sketch.ApplyCustomRule()]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        asked = sch.get(block).annotations.get("schedule_rule")
        if asked is None:
            return [sch]
        name = str(getattr(asked, "value", asked))
        if name == "None":
            return [sch]
        target = getattr(self._context, "target", None)
        keys = [f"{name}.{key}" for key in (target.keys if target is not None else ())]
        for key in [*keys, name]:
            function = get_global_func(key, allow_missing=True)
            if function is not None:
                made = function(sch, block)
                return [made] if isinstance(made, Schedule) else list(made)
        raise UnknownScheduleRule(name, [])
