"""Stage: one operation of a te schedule, and how it shall run.

Its loops are in `stage_loops.py`; here is where it is computed, and the memory of its result. What it holds is listed
in `stage_state.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Self

from loopwright.ir import STORAGE_SCOPES, IterType, IterVar, as_expr
from loopwright.runtime.errors import caller
from loopwright.te.operation import ComputeOp
from loopwright.te.scan import ScanOp
from loopwright.te.schedule import layouts
from loopwright.te.schedule.callable_properties import Flag, Threads
from loopwright.te.schedule.errors import (
    BadScope,
    CannotAttach,
    CannotBind,
    CannotInline,
    CannotMark,
    ForeignAxis,
    NotForThisStage,
)
from loopwright.te.schedule.stage_loops import StageLoops
from loopwright.te.schedule.stage_state import GROUP_ROOT, INLINE, SCAN_UPDATE, SCOPE
from loopwright.te.tensor_compute import TensorComputeOp


class Stage(StageLoops):
    """How one operation is computed: its loops, in order, and the place where it is computed."""

    # --- where it is computed -------------------------------------------------------------------------------------

    def compute_at(self, parent: Self, scope: IterVar) -> None:
        """Compute inside the loop `scope` of stage `parent` what one iteration of it needs."""
        if not isinstance(parent, Stage):
            raise CannotAttach(
                f"compute_at: {parent!r} is no stage", hint="give s[consumer] first, then one of its loops"
            )
        if parent.schedule is not self.schedule:
            raise CannotAttach(
                f"compute_at: the stage of {parent.name} that is given belongs to another schedule than that of "
                f"{self.name}",
                hint=f"take both stages from one schedule: s[{self.name}].compute_at(s[{parent.name}], …)",
            )
        self._check_movable("compute_at")
        if parent is self:
            raise CannotAttach(f"compute_at: {self.name} cannot be computed inside itself", hint="give its consumer")
        axis = parent._leaf(f"compute_at of {self.name}", scope)
        group = self.group
        around = parent.group
        while group is not None and around is not None and around is not group:
            around = around.group
        if group is not None and around is not group:
            raise CannotAttach(
                f"compute_at: {self.name} is in a group, and {parent.name} is not",
                hint="move the group as a whole: group.compute_at(…)",
            )
        if not self.is_group and not self.schedule.depends_on(parent, self):
            raise CannotAttach(
                f"compute_at: {parent.name} is not computed from {self.name}, so no iteration of {axis.var.name} needs "
                "any of it",
                hint=f"{self.name} is read by {', '.join(self.schedule.readers_of(self)) or 'no stage'}",
            )
        self.attach_type, self.attach_stage, self.attach_ivar = SCOPE, parent, axis
        self.attach_line = caller()
        self._record("compute_at")

    def compute_inline(self) -> None:
        """Compute each element where it is read, every time it is read."""
        self._check_movable("compute_inline")
        if self.is_group:
            raise CannotInline(self.name, "is several stages", "inline its stages, one by one")
        if self.is_output:
            raise CannotInline(self.name, "is a result, which has to be stored", "inline what it is computed from")
        if not isinstance(self.op, ComputeOp) or isinstance(self.op, TensorComputeOp):
            raise CannotInline(self.name, "is no te.compute by elements", "inline such computes only")
        if self.op.num_outputs > 1:
            raise CannotInline(
                self.name, f"has {self.op.num_outputs} outputs", "write one te.compute for each, or use compute_at"
            )
        if self.op.reduce_axis:
            raise CannotInline(
                self.name, "is a reduction, whose result takes many steps to make", "use compute_at at its consumer"
            )
        self.attach_type, self.inline_line = INLINE, caller()
        self.attach_stage = self.attach_ivar = None
        self._record("compute_inline")

    def compute_root(self) -> None:
        """Compute all of it before its consumers begin: how a stage starts out."""
        self._check_movable("compute_root")
        self.attach_type = GROUP_ROOT
        self.attach_stage = self.attach_ivar = None
        self._record("compute_root")

    def _check_movable(self, step: str) -> None:
        if self.attach_type == SCAN_UPDATE:
            raise CannotAttach(
                f"{step}: {self.name} is the update of a scan, which runs in each step of it",
                hint="move the scan, or the stages that the update reads",
            )

    # --- memory ---------------------------------------------------------------------------------------------------

    def set_scope(self, scope: str) -> None:
        """The kind of memory that holds the result."""
        if not isinstance(scope, str) or (scope and scope.split(".")[0] not in STORAGE_SCOPES):
            raise BadScope(f"set_scope: there is no scope {scope!r}", hint=f"use one of {', '.join(STORAGE_SCOPES)}")
        self.scope = scope
        self._record("set_scope")

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """The stride of that dimension is `offset` modulo `factor`."""
        if not isinstance(self.op, ComputeOp) or axis not in self.op.axis:
            names = [item.var.name for item in self.op.axis] if isinstance(self.op, ComputeOp) else []
            raise ForeignAxis("storage_align", self.name, axis, names)
        if not isinstance(factor, int) or not isinstance(offset, int) or factor < 1:
            raise CannotMark(
                f"storage_align: factor {factor!r}, offset {offset!r}", hint="give integers, the factor at least 1"
            )
        attr = self._attr(axis)
        attr.dim_align_factor, attr.dim_align_offset = factor, offset
        attr.lines["storage_align"] = caller()
        self._record("storage_align")

    @property
    def double_buffer(self) -> Flag:
        """Call it to have memory for two iterations; its truth says whether that was asked for."""
        return Flag(self.is_double_buffered, lambda: self._set_flag("double_buffer", "is_double_buffered"))

    @property
    def rolling_buffer(self) -> Flag:
        """Call it to note that iterations share what they both need; its truth says whether that was asked for."""
        return Flag(self.is_rolling, lambda: self._set_flag("rolling_buffer", "is_rolling"))

    def _set_flag(self, step: str, flag: str) -> None:
        if self.is_output:
            raise NotForThisStage(
                f"{step}: {self.name} is a result, and its memory is the caller's",
                hint="use it for a stage in between, such as one made by cache_read or cache_write",
            )
        setattr(self, flag, True)
        self._record(step)

    @property
    def env_threads(self) -> Threads:
        """Call it with thread axes to run the whole of a scan on them; as a list, the threads given so far."""
        return Threads(self.env_threads_, self._set_env_threads)

    def _set_env_threads(self, threads: IterVar | Iterable[IterVar]) -> None:
        if not isinstance(self.op, ScanOp):
            raise NotForThisStage(
                f"env_threads: {self.name} is no scan", hint="bind the loops of other stages with bind"
            )
        if self.env_threads_:
            raise NotForThisStage(
                f"env_threads: {self.name} has threads already",
                hint="give all threads in one call: env_threads([x, y])",
            )
        given = [threads] if isinstance(threads, IterVar) else list(threads)
        for thread in given:
            if not isinstance(thread, IterVar) or thread.iter_type is not IterType.ThreadIndex:
                raise CannotBind(f"env_threads: {thread!r} is no thread axis", hint='use te.thread_axis("threadIdx.x")')
        self.env_threads_, self.env_line = tuple(given), caller()
        self._record("env_threads")

    def set_store_predicate(self, predicate: object) -> None:
        """Store only where the condition, in terms of the stage's axes, holds."""
        self.store_predicate = as_expr(predicate)
        self._record("set_store_predicate")

    def transform_layout(self, mapping_function: Callable[..., object]) -> list[IterVar] | None:
        """Store element `i, j, …` at the cell `mapping_function(i, j, …)`; the loops run over the cells.

        Gives the new axes of a compute; for an input, only its memory changes, and nothing is given.
        """
        return layouts.transform_layout(self, mapping_function)
