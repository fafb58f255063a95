"""te.create_schedule: a stage for every operation, and what is to be changed about the graph of operations.

s = te.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 32, 32)        what the loops of a stage shall be: stage.py
CC = s.cache_write(C, "local")                                        changes of the graph: one file each
loopwright.build(s, [A, B, C])                                        replay.py: each wish becomes a proved step
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopwright.ir import Buffer, IRModule, IterVar, Var
from loopwright.ir.pass_context import PassContext
from loopwright.te.operation import Operation
from loopwright.te.scan import ScanOp
from loopwright.te.schedule.errors import NotAnOperation, UnknownStage
from loopwright.te.schedule.graph import in_post_order, replace_inputs
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.stage_state import SCAN_UPDATE
from loopwright.te.tensor import Tensor

if TYPE_CHECKING:
    from loopwright.schedule import Schedule as Engine


class Schedule:
    """How a graph of operations shall run. `s[C]` is the stage of C."""

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs = list(outputs)
        self.stages: list[Stage] = []
        self.groups: list[Stage] = []
        self.stage_map: dict[Operation, Stage] = {}
        self.schedule_record: list[Schedule] = []
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

    def readers_of(self, stage: Stage) -> list[str]:
        """The names of the stages that read what `stage` gives."""
        return [other.name for other in self._readers(stage)]

    def _readers(self, stage: Stage) -> Iterator[Stage]:
        for other in self.stages:
            if any([tensor.op is stage.op for tensor in other.op.input_tensors]):
                yield other

    def depends_on(self, later: Stage, earlier: Stage) -> bool:
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

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """A copy of `tensor` in memory of kind `scope`, which `readers` read instead."""
        from loopwright.te.schedule.caches import cache_read

        return cache_read(self, tensor, scope, readers)

    def cache_write(self, tensor: Any, scope: str) -> Any:
        """Compute into memory of kind `scope`, and copy from there; gives the tensor that is computed."""
        from loopwright.te.schedule.caches import cache_write

        return cache_write(self, tensor, scope)

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Reduce over all but `axis` first, into a tensor that has `axis` as a dimension, then over that."""
        from loopwright.te.schedule.rfactor import rfactor

        return rfactor(self, tensor, axis, factor_axis)

    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> Stage:
        """The stages from `inputs` to `outputs` as one, which moves as a whole."""
        from loopwright.te.schedule.groups import create_group

        return create_group(self, outputs, inputs, include_inputs)

    def normalize(self) -> Schedule:
        """A copy in which inlined stages are part of their readers, and stages hang at loops that are there."""
        from loopwright.te.schedule.normalize import normalize

        return normalize(self)

    def copy(self) -> Schedule:
        """A schedule that goes its own way from here; tensors, operations and axes work on both."""
        from loopwright.te.schedule.normalize import copied

        return copied(self)

    # --- lowering -------------------------------------------------------------------------------------------------

    def as_tir_schedule(
        self, args: Sequence[Tensor | Buffer | Var], binds: Mapping[Tensor, Buffer] | None = None
    ) -> Engine:
        """The program with all wishes done to it, as a `tir.Schedule`: its trace holds every step, each proved."""
        from loopwright.te.schedule.replay import replay

        return replay(self, args, binds).schedule

    def finish(self, module: IRModule) -> IRModule:
        """What lowering goes on with, once all wishes are done: here, nothing is added to them."""
        return module

    # --- records --------------------------------------------------------------------------------------------------

    def record(self, step: str) -> None:
        """Note a step, when the setting `te.keep_schedule_record` asks for it."""
        if PassContext.current().config.get("te.keep_schedule_record"):
            self.primitive_record.append(step)
            self.schedule_record.append(self.copy() if self.stages else self)

    def __repr__(self) -> str:
        return f"schedule({', '.join([stage.name for stage in self.stages])})"

    __str__ = __repr__

    def show(self, style: str | None = None) -> None:
        """Show the stages: their loops, and where each is computed."""
        from loopwright.te.schedule.stages_sheet import stages_sheet

        stages_sheet(self).show(style)

    def _repr_html_(self) -> str:
        from loopwright.te.schedule.stages_sheet import stages_sheet

        return stages_sheet(self).html()


def _in_step(scan: ScanOp, op: Operation) -> bool:
    return any([stage.op is op for stage in scan.body.stages])


def create_schedule(ops: Any) -> Schedule:
    """A schedule of the operations `ops` (one or a list) and of all that they need."""
    given = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    for op in given:
        if isinstance(op, Tensor):
            raise NotAnOperation(op, f"give the tensor's operation: te.create_schedule({op.name}.op)")
        if not isinstance(op, Operation):
            raise NotAnOperation(op, "give C.op of the tensor C to compute, or a list of such")
    if not given:
        raise NotAnOperation(None, "give C.op of the tensor C to compute")
    return Schedule(list(dict.fromkeys(given)))
