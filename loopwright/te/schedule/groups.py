"""create_group: the stages between some outputs and some inputs move as one.

A group that is computed at a loop takes its stages with it, those at their own root; a stage of a group may still be
computed inside another stage of it.
"""

from __future__ import annotations

import warnings
from typing import Any

from loopwright.te.operation import PlaceholderOp
from loopwright.te.schedule.errors import BadGroup
from loopwright.te.schedule.graph import in_post_order
from loopwright.te.schedule.schedule_state import ScheduleState
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.stage_state import GROUP_ROOT, SCOPE
from loopwright.te.tensor import Operation


def create_group(sch: ScheduleState, outputs: Any, inputs: Any, include_inputs: bool = False) -> Stage:
    """A group of the operations that `outputs` need and that need `inputs`."""
    ends = [sch[item].op for item in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
    starts = [sch[item].op for item in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    members = _between(ends, starts, include_inputs)
    stages = [stage for stage in sch.stages if stage.op in members]
    if not stages:
        names = ", ".join([op.name for op in ends])
        raise BadGroup(
            f"create_group: nothing is computed between the inputs and {names}",
            hint="give tensors that are computed from the inputs, or include_inputs=True",
        )
    parent, inside = _around(sch, stages)
    group = Stage(sch, None)
    group.group = parent
    for child in inside:
        child.group = group
    group.num_child_stages = len(inside)
    if parent is not None:
        parent.num_child_stages += 1 - len(inside)
    for stage in stages:
        _break_foreign_attach(stage, group)
    sch.groups.append(group)
    sch.record("create_group")
    return group


def _between(ends: list[Operation], starts: list[Operation], include: bool) -> set[Operation]:
    order = in_post_order(ends)
    needing: set[Operation] = set(starts)
    result: set[Operation] = set()
    for op in order:
        if op in starts:
            if include and not isinstance(op, PlaceholderOp):
                result.add(op)
        elif any([tensor.op in needing for tensor in op.input_tensors]):
            needing.add(op)
            result.add(op)
    return result


def _around(sch: ScheduleState, stages: list[Stage]) -> tuple[Stage | None, list[Stage]]:
    """The group that holds all of them, and what of it, stages or whole groups, the new one takes."""
    chains = [_groups_of(stage) for stage in stages]
    common: Stage | None = None
    for candidate in chains[0]:
        if all([candidate in chain for chain in chains]):
            common = candidate
            break
    inside: dict[Stage, None] = {}
    for stage, chain in zip(stages, chains, strict=True):
        below = chain[: chain.index(common)] if common is not None else chain
        inside.setdefault(below[-1] if below else stage)
    for child in inside:
        if not child.is_group:
            continue
        outside = [other for other in sch.stages if child in _groups_of(other) and other not in stages]
        if outside:
            raise BadGroup(
                f"create_group: {outside[0].name} is in one group with {stages[0].name} already, and would be left out "
                "of the new one",
                hint="a group holds all of another group, or none of it",
            )
    return common, list(inside)


def _groups_of(stage: Stage) -> list[Stage]:
    """The groups around a stage, innermost first."""
    result: list[Stage] = []
    around = stage.group
    while around is not None:
        result.append(around)
        around = around.group
    return result


def _break_foreign_attach(stage: Stage, group: Stage) -> None:
    """A stage of a group cannot hang at a stage outside of it."""
    if stage.attach_type == SCOPE and stage.attach_stage is not None and group not in _groups_of(stage.attach_stage):
        warnings.warn(
            f"{stage.name} was computed at {stage.attach_stage.name}, which is not in its new group: it is computed at "
            "the group's root now",
            UserWarning,
            stacklevel=4,
        )
        stage.attach_type, stage.attach_stage, stage.attach_ivar = GROUP_ROOT, None, None
