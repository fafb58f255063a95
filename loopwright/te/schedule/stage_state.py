"""What a te schedule holds of a stage: its operation, its loops in order, what was said about each, and its place.

A stage holds directives; nothing is checked against the program until it is lowered, where each directive is a proved
step of the schedule engine (see `replay.py`).
"""

from __future__ import annotations

from typing import Any, Final, Protocol, Self

from loopwright.ir import Expr, IterVar
from loopwright.runtime.errors import SourceLine
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.operation import ComputeOp
from loopwright.te.scan import ScanOp
from loopwright.te.schedule.axis_algebra import Values, extents
from loopwright.te.schedule.errors import AxisGone, ForeignAxis
from loopwright.te.schedule.relations import Directive, Fuse, IterVarAttr, IterVarRelation, Split, parts_of
from loopwright.te.tensor import Operation

# Where a stage is computed (`attach_type`); the numbers are those that scripts know.
GROUP_ROOT: Final = 1
INLINE: Final = 2
INLINED_ALREADY: Final = 3
SCOPE: Final = 4
SCAN_UPDATE: Final = 5


def root_axes(op: Operation) -> tuple[IterVar, ...]:
    """The axes an operation comes with."""
    if isinstance(op, ComputeOp):
        return (*op.axis, *op.reduce_axis)
    if isinstance(op, ScanOp):
        return (op.scan_axis, *op.spatial_axis_)
    return op.axis if isinstance(op, HybridOp) else ()


class StageOwner(Protocol):
    """The schedule that a stage belongs to; `schedule_state.py` has it."""

    def owner_of(self, axis: IterVar) -> StageState | None: ...

    def depends_on(self, later: StageState, earlier: StageState) -> bool: ...

    def readers_of(self, stage: StageState) -> list[str]: ...

    def record(self, step: str) -> None: ...


class StageState:
    """One operation of a schedule, and all that was said about it."""

    def __init__(self, schedule: StageOwner, op: Operation | None) -> None:
        self.schedule = schedule
        self._op, self._origin_op = op, op
        self.is_output = False
        self.scope = ""
        self.group: Self | None = None
        self.num_child_stages = 0  # of a group
        self.attach_type = GROUP_ROOT
        self.attach_ivar: IterVar | None = None
        self.attach_stage: Self | None = None
        self.attach_line: SourceLine | None = None
        self.inline_line: SourceLine | None = None
        self.env_threads_: tuple[IterVar, ...] = ()
        self.env_line: SourceLine | None = None
        self.is_double_buffered = False
        self.is_rolling = False
        self.store_predicate: Expr | None = None
        self.layout_transforms: list[Any] = []
        self.axis_separators: list[int] = []
        self.reset()

    def reset(self) -> None:
        """The loops as the operation comes with them; all directives about them are forgotten."""
        roots = [] if self._op is None else list(root_axes(self._op))
        self.all_iter_vars: list[IterVar] = list(roots)
        self.leaf_iter_vars: list[IterVar] = list(roots)
        self.relations: list[IterVarRelation] = []
        self.iter_var_attrs: dict[IterVar, IterVarAttr] = {}
        self.directives: list[Directive] = []

    # --- what it is -----------------------------------------------------------------------------------------------

    @property
    def op(self) -> Operation:
        """The operation as it is now; caches and factored reductions change it."""
        assert self._op is not None, "a group of stages has no operation"
        return self._op

    @op.setter
    def op(self, new: Operation) -> None:
        self._op = new

    @property
    def origin_op(self) -> Operation:
        """The operation as the user wrote it."""
        assert self._origin_op is not None, "a group of stages has no operation"
        return self._origin_op

    @property
    def is_group(self) -> bool:
        return self._op is None

    @property
    def name(self) -> str:
        """What messages call the stage."""
        return "the group" if self._op is None else self._op.name

    def leaf_names(self) -> list[str]:
        """The loops as messages name them."""
        return [axis.var.name for axis in self.leaf_iter_vars]

    def sizes(self) -> Values:
        """How often each axis runs when all of the operation is computed."""
        bound = [axis for axis, attr in self.iter_var_attrs.items() if attr.bind_thread is not None]
        return extents(root_axes(self.op), self.relations, bound)

    def is_untouched(self) -> bool:
        """Whether nothing was said about the stage yet."""
        return self.attach_type == GROUP_ROOT and not self.relations and not self.directives and not self.iter_var_attrs

    def __repr__(self) -> str:
        return f"stage({self.name}, {self._op!r})"

    __str__ = __repr__

    # --- its axes -------------------------------------------------------------------------------------------------

    def _leaf(self, step: str, axis: object) -> IterVar:
        """`axis`, when it is a loop of the stage now."""
        if isinstance(axis, IterVar) and axis in self.leaf_iter_vars:
            return axis
        if not isinstance(axis, IterVar) or axis not in self.all_iter_vars:
            owner = self.schedule.owner_of(axis) if isinstance(axis, IterVar) else None
            name = None if owner is None or owner is self else owner.name
            raise ForeignAxis(step, self.name, axis, self.leaf_names(), name)
        text, parts, line = self._fate(axis)
        raise AxisGone(step, self.name, axis.var.name, text, [part.var.name for part in parts], line, self.leaf_names())

    def _fate(self, axis: IterVar) -> tuple[str, list[IterVar], SourceLine | None]:
        """What became of an axis, in words; the loops that stand for it now; where that was asked for."""
        relation, line = next(
            (relation, line)
            for relation, line in zip(self.relations, self._relation_lines, strict=True)
            if axis in parts_of(relation)[0]
        )
        result = parts_of(relation)[1]
        done = "split" if isinstance(relation, Split) else "fused" if isinstance(relation, Fuse) else "laid out"
        message = f"{done} into {' and '.join([part.var.name for part in result])}" + (f" at {line}" if line else "")
        parts: list[IterVar] = []
        for part in result:
            if part in self.leaf_iter_vars:
                parts.append(part)
            else:
                later, below, _ = self._fate(part)
                message += f", and {part.var.name} was {later}"
                parts += below
        return message, list(dict.fromkeys(parts)), line

    @property
    def _relation_lines(self) -> list[SourceLine | None]:
        lines: dict[object, SourceLine | None] = {directive.what: directive.where for directive in self.directives}
        return [lines.get(relation) for relation in self.relations]

    def _attr(self, axis: IterVar) -> IterVarAttr:
        return self.iter_var_attrs.setdefault(axis, IterVarAttr(axis.iter_type))

    def _record(self, step: str) -> None:
        self.schedule.record(step)
