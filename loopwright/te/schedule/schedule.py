"""te.create_schedule: a stage for every operation, and what is to be changed about the graph of operations.

s = te.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 32, 32)        what the loops of a stage shall be: stage.py
CC = s.cache_write(C, "local")                                        changes of the graph: one file each
loopwright.build(s, [A, B, C])                                        replay.py: each directive becomes a proved step
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, overload

from loopwright.ir import Buffer, IRModule, IterVar, Var
from loopwright.ir.node import dump_node, load_node
from loopwright.runtime.shown import view
from loopwright.te.schedule import caches, groups, normalize, rfactor
from loopwright.te.schedule.errors import NotAnOperation
from loopwright.te.schedule.schedule_state import ScheduleState
from loopwright.te.schedule.stage import Stage
from loopwright.te.tensor import Operation, Tensor

if TYPE_CHECKING:
    from loopwright.schedule import Schedule as Engine


class Schedule(ScheduleState):
    """How a graph of operations shall run. `s[C]` is the stage of C."""

    # --- changing the graph ---------------------------------------------------------------------------------------

    def cache_read(self, tensor: Tensor, scope: str, readers: object) -> Tensor:
        """A copy of `tensor` in memory of kind `scope`, which `readers` read instead."""
        return caches.cache_read(self, tensor, scope, readers)

    @overload
    def cache_write(self, tensor: Tensor, scope: str) -> Tensor: ...
    @overload
    def cache_write(self, tensor: Sequence[Tensor], scope: str) -> list[Tensor]: ...
    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Tensor | list[Tensor]:
        """Compute into memory of kind `scope`, and copy from there; gives the tensor that is computed."""
        return caches.cache_write(self, tensor, scope)

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Reduce over all but `axis` first, into a tensor that has `axis` as a dimension, then over that."""
        return rfactor.rfactor(self, tensor, axis, factor_axis)

    def create_group(self, outputs: object, inputs: object, include_inputs: bool = False) -> Stage:
        """The stages from `inputs` to `outputs` as one, which moves as a whole."""
        return groups.create_group(self, outputs, inputs, include_inputs)

    def normalize(self) -> Self:
        """A copy in which inlined stages are part of their readers, and stages hang at loops that are there."""
        return normalize.normalize(self)

    # --- lowering -------------------------------------------------------------------------------------------------

    def as_tir_schedule(
        self, args: Sequence[Tensor | Buffer | Var], binds: Mapping[Tensor, Buffer] | None = None
    ) -> Engine:
        """The program with all directives done to it, as a `tir.Schedule`: its trace holds every step, each proved."""
        from loopwright.te.schedule.replay import replay  # and with it the schedule engine, when it is needed

        return replay(self, args, binds).schedule

    def finish(self, module: IRModule) -> IRModule:
        """What lowering goes on with, once all directives are done: here, nothing is added to them."""
        return module

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return load_node[0], (dump_node[0](self),)  # in one piece: stages share axes with operations

    def show(self, style: str | None = None) -> None:
        """Show the stages: their loops, and where each is computed."""
        view("te_schedule", self).show(style)

    def _repr_html_(self) -> str:
        html: str = view("te_schedule", self).html()
        return html


def create_schedule(ops: Any) -> Schedule:
    """A schedule of the operations `ops` (one or a list) and of all that they need."""
    given = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    for op in given:
        if isinstance(op, Tensor):
            raise NotAnOperation(op, f"give the tensor's operation: te.create_schedule({op.name}.op)")
        if not isinstance(op, Operation):
            raise NotAnOperation(op, "give C.op of the tensor C to compute, or a list of such")
    return Schedule(list(dict.fromkeys(given)))
