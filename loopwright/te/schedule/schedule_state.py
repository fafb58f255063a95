"""What a te schedule holds: a stage for every operation, and how they are found, added and changed.

`schedule.py` has what users do with it; caches, factored reductions and groups are changes that it makes here.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self

from loopwright.ir import IterVar
from loopwright.ir.pass_context import PassContext
from loopwright.te.scan import ScanOp
from loopwright.te.schedule.errors import UnknownStage
from loopwright.te.schedule.graph import in_post_order, replace_inputs
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.stage_state import SCAN_UPDATE, StageState
from loopwright.te.tensor import Operation, Tensor

# Of a stage: a copy has its own.
_LISTS: Final = ("all_iter_vars", "leaf_iter_vars", "relations", "directives", "layout_transforms", "axis_separators")


class ScheduleState:
    """The stages of a graph of operations. `s[C]` is the stage of C."""

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs = list(outputs)
        self.stages: list[Stage] = []
        self.groups: list[Stage] = []
        self.stage_map: dict[Operation, Stage] = {}
        self.schedule_record: list[ScheduleState] = []
        self.primitive_record: list[str] = []
        for op in in_post_order(self.outputs):
            self.stages.append(Stage(self, op))
            self.stage_map[op] = self.stages[-1]
        for op in self.outputs:
            self.stage_map[op].is_output = True
        for stage in self.stages:
            if isinstance(stage.op, ScanOp):
                for update in stage.op.update:
                    self.stage_map[update.op].attach_type = SCAN_UPDATE
        self.record("vanilla")

    # --- finding --------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        op = key.op if isinstance(key, Tensor) else key
        result = self.stage_map.get(op) if isinstance(op, Operation) else None
        if result is None:
            names = [stage.name for stage in self.stages]
            if isinstance(op, Operation):
                raise UnknownStage(f"{op.name} is not among what this schedule computes", names)
            raise UnknownStage(f"{type(key).__name__} {key!r} is neither a tensor nor an operation", names)
        return result

    def tensor(self, tensor: Tensor) -> Tensor:
        """The tensor that stands for `tensor` now: caches and factored reductions make operations anew."""
        return self[tensor].op.output(tensor.value_index)

    def readers_of(self, stage: StageState) -> list[str]:
        """The names of the stages that read what `stage` gives."""
        return [other.name for other in self._readers(stage)]

    def _readers(self, stage: StageState) -> Iterator[Stage]:
        for other in self.stages:
            if any([tensor.op is stage.op for tensor in other.op.input_tensors]):
                yield other

    def depends_on(self, later: StageState, earlier: StageState) -> bool:
        """Whether `later` is computed from `earlier`, directly or through other stages."""
        if later.is_group or earlier.is_group:
            return True
        if earlier.op in in_post_order([later.op]):
            return later is not earlier
        return any(
            [
                isinstance(scan.op, ScanOp) and _in_step(scan.op, later.op) and _in_step(scan.op, earlier.op)
                for scan in self.stages
            ]
        )

    def owner_of(self, axis: IterVar) -> Stage | None:
        """The stage that has an axis."""
        return next((stage for stage in self.stages if axis in stage.all_iter_vars), None)

    # --- changing the graph ---------------------------------------------------------------------------------------

    def insert_before(self, stage: Stage, op: Operation, group: Stage | None) -> Stage:
        """A new stage for `op`, before `stage`, in a group or in none."""
        result = Stage(self, op)
        result.group = group
        if result.group is not None:
            result.group.num_child_stages += 1
        self.stages.insert(self.stages.index(stage), result)
        self.stage_map[op] = result
        return result

    def set_op(self, stage: Stage, op: Operation) -> None:
        """Another operation for a stage; the old one still finds it."""
        old = stage.op
        stage.op = op
        self.stage_map[op] = stage
        self.outputs = [op if output is old else output for output in self.outputs]

    def retarget(self, change: Mapping[Tensor, Tensor], only: Sequence[Stage] | None = None) -> None:
        """Have stages (`only` these, if given) read other tensors; all that is computed from them is made anew."""
        changed: dict[Tensor, Tensor] = {}
        for stage in self.stages:
            here = {**change, **changed} if only is None or stage in only else changed
            new = replace_inputs(stage.op, here)
            if new is not stage.op:
                for k in range(new.num_outputs):
                    changed[stage.op.output(k)] = new.output(k)
                self.set_op(stage, new)

    def copy(self) -> Self:
        """A schedule that goes its own way from here; tensors, operations and axes work on both."""
        new = copy.copy(self)
        twins: dict[Stage, Stage] = {}
        for stage in [*self.stages, *self.groups]:
            twin = twins[stage] = copy.copy(stage)
            twin.schedule = new
            for name in _LISTS:
                setattr(twin, name, list(getattr(stage, name)))
            twin.iter_var_attrs = {axis: attr.copy() for axis, attr in stage.iter_var_attrs.items()}
        for twin in twins.values():
            twin.group = twins[twin.group] if twin.group is not None else None
            twin.attach_stage = twins[twin.attach_stage] if twin.attach_stage is not None else None
        new.outputs = list(self.outputs)
        new.stages = [twins[stage] for stage in self.stages]
        new.groups = [twins[group] for group in self.groups]
        new.stage_map = {op: twins[stage] for op, stage in self.stage_map.items()}
        new.schedule_record, new.primitive_record = list(self.schedule_record), list(self.primitive_record)
        return new

    # --- records --------------------------------------------------------------------------------------------------

    def record(self, step: str) -> None:
        """Note a step, when the setting `te.keep_schedule_record` asks for it."""
        if PassContext.current().config.get("te.keep_schedule_record"):
            self.primitive_record.append(step)
            self.schedule_record.append(self.copy() if self.stages else self)

    def __repr__(self) -> str:
        return f"schedule({', '.join([stage.name for stage in self.stages])})"

    __str__ = __repr__


def _in_step(scan: ScanOp, op: Operation) -> bool:
    return any([stage.op is op for stage in scan.body.stages])
