"""Stage: one operation of a te schedule, and how its loops shall run.

A stage holds wishes; nothing is checked against the program until it is lowered, where each wish is a proved step of
the schedule engine (see `replay.py`). What can be told at once is told at once: an axis that is no loop any more, loops
that are not neighbours, and the like.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from loopwright.ir import Expr, IntImm, IterType, IterVar, Var, as_expr
from loopwright.runtime.errors import LoopwrightError, NotBuilt, SourceLine, caller
from loopwright.te.extern import ExternOp
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.operation import ComputeOp, Operation, PlaceholderOp
from loopwright.te.scan import ScanOp
from loopwright.te.schedule.axis_algebra import Values, extents
from loopwright.te.schedule.errors import (
    AxisGone,
    BadReorder,
    BadScope,
    BadSplit,
    CannotAttach,
    CannotBind,
    CannotInline,
    CannotMark,
    ForeignAxis,
    NotAdjacent,
    NotALoop,
    NotForThisStage,
)
from loopwright.te.schedule.relations import Fuse, IterVarAttr, IterVarRelation, Singleton, Split, Wish, parts_of
from loopwright.te.schedule.tensor_intrin import TensorIntrin
from loopwright.te.tensor import Tensor
from loopwright.te.tensor_compute import TensorComputeOp

if TYPE_CHECKING:
    from loopwright.te.schedule.schedule import Schedule

GROUP_ROOT: Final = 1
INLINE: Final = 2
INLINED_ALREADY: Final = 3
SCOPE: Final = 4
SCAN_UPDATE: Final = 5

_SCOPES: Final = ("global", "local", "shared", "warp", "wmma", "m16n8k8", "texture")
_UNAVAILABLE_PRAGMAS: Final = ("import_c", "import_llvm")


def root_axes(op: Operation) -> tuple[IterVar, ...]:
    """The axes an operation comes with."""
    if isinstance(op, ComputeOp):
        return (*op.axis, *op.reduce_axis)
    if isinstance(op, ScanOp):
        return (op.scan_axis, *op.spatial_axis_)
    return op.axis if isinstance(op, HybridOp) else ()


class Stage:
    """How one operation is computed: its loops, in order, and the place where it is computed."""

    def __init__(self, schedule: Schedule, op: Operation | None) -> None:
        self.schedule = schedule
        self._op, self._origin_op = op, op
        self.is_output = False
        self.scope = ""
        self.group: Stage | None = None
        self.num_child_stages = 0  # of a group
        self.attach_type = GROUP_ROOT
        self.attach_ivar: IterVar | None = None
        self.attach_stage: Stage | None = None
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
        """The loops as the operation comes with them; all wishes about them are forgotten."""
        roots = [] if self._op is None else list(root_axes(self._op))
        self.all_iter_vars: list[IterVar] = list(roots)
        self.leaf_iter_vars: list[IterVar] = list(roots)
        self.relations: list[IterVarRelation] = []
        self.iter_var_attrs: dict[IterVar, IterVarAttr] = {}
        self.wishes: list[Wish] = []

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

    def __repr__(self) -> str:
        return f"stage({self.name}, {self._op!r})"

    __str__ = __repr__

    # --- loops ----------------------------------------------------------------------------------------------------

    def split(
        self, parent: IterVar, factor: Any = None, nparts: Any = None, disable_predication: bool = False
    ) -> tuple[IterVar, IterVar]:
        """The loop as two, outer and inner: `factor` iterations inside, or `nparts` outside."""
        if (factor is None) == (nparts is None):
            both = "both factor and nparts are" if factor is not None else "neither factor nor nparts is"
            raise BadSplit(f"split: {both} given", hint="give factor= (the size of the inner loop) or nparts=")
        name, given = ("factor", factor) if factor is not None else ("nparts", nparts)
        size = self._size("split", name, given)
        axis = self._leaf("split", parent)
        if self._type(axis) in (IterType.ThreadIndex, IterType.Opaque):
            raise NotALoop("split", self.name, axis.var.name, self._type(axis) is IterType.ThreadIndex)
        kind, dtype = axis.iter_type, axis.var.dtype
        outer = IterVar(None, Var(f"{axis.var.name}.outer", dtype), kind)
        inner = IterVar(None, Var(f"{axis.var.name}.inner", dtype), kind)
        relation = Split(axis, outer, inner, size if name == "factor" else None, size if name == "nparts" else None)
        place = self.leaf_iter_vars.index(axis)
        self.leaf_iter_vars[place : place + 1] = [outer, inner]
        self._relate(relation, [outer, inner])
        return outer, inner

    def fuse(self, *args: Any) -> IterVar:
        """Neighbouring loops as one, the first of them outermost; without arguments, a new loop that runs once."""
        axes = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        if not axes:
            single = IterVar(None, Var("singleton"), IterType.DataPar)
            self.leaf_iter_vars.insert(0, single)
            self._relate(Singleton(single), [single])
            return single
        fused: IterVar = self._leaf("fuse", axes[0])
        for axis in axes[1:]:
            fused = self._fuse_two(fused, self._leaf("fuse", axis))
        return fused

    def _fuse_two(self, outer: IterVar, inner: IterVar) -> IterVar:
        first, second = self.leaf_iter_vars.index(outer), self.leaf_iter_vars.index(inner)
        if first == second + 1:  # named in reverse: the order of the loops decides
            outer, inner, first, second = inner, outer, second, first
        if second != first + 1:
            raise NotAdjacent(self.name, outer.var.name, inner.var.name, self.leaf_names())
        for axis in (outer, inner):
            if self._type(axis) is IterType.Opaque:
                raise NotALoop("fuse", self.name, axis.var.name)
        name = f"{outer.var.name}.{inner.var.name}.fused"
        kind = max(outer.iter_type, inner.iter_type)
        fused = IterVar(None, Var(name, outer.var.dtype), kind)
        self.leaf_iter_vars[first : second + 1] = [fused]
        self._relate(Fuse(outer, inner, fused), [fused])
        return fused

    def reorder(self, *args: Any) -> None:
        """The named loops in this order, in the places that they hold together; the others stay."""
        axes = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        wanted: list[IterVar] = []
        for axis in axes:
            leaf = self._leaf("reorder", axis)
            if leaf in wanted:
                raise BadReorder(f"reorder: {leaf.var.name} of {self.name} is named twice", hint="name each loop once")
            if leaf.iter_type in (IterType.Ordered, IterType.Opaque) and len(axes) > 1:
                raise BadReorder(
                    f"reorder: the iterations of {leaf.var.name} of {self.name} run one after the other, around all "
                    "that belongs to a step",
                    hint="reorder the loops of the stages inside the scan",
                )
            wanted.append(leaf)
        places = sorted([self.leaf_iter_vars.index(axis) for axis in wanted])
        for place, axis in zip(places, wanted, strict=True):
            self.leaf_iter_vars[place] = axis
        if len(wanted) > 1:
            self.wishes.append(Wish(tuple(wanted), caller()))
            self._record("reorder", wanted)

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: Any, y_factor: Any
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Two loops as tiles: x and y over the tiles, then x and y inside one."""
        xo, xi = self.split(x_parent, factor=x_factor)
        yo, yi = self.split(y_parent, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    # --- kinds of loops -------------------------------------------------------------------------------------------

    def vectorize(self, var: IterVar) -> None:
        """The iterations run as lanes of vectors."""
        axis = self._leaf("vectorize", var)
        if axis.iter_type is IterType.CommReduce:
            raise CannotMark(
                f"vectorize: {axis.var.name} of {self.name} is an axis of the reduction, whose iterations add to one "
                "cell one after the other",
                hint="vectorize a data axis; reorder brings it inside, and rfactor makes a part of a reduce axis one",
            )
        self._mark("vectorize", axis, IterType.Vectorized)

    def unroll(self, var: IterVar) -> None:
        """The iterations are written out."""
        self._mark("unroll", self._leaf("unroll", var), IterType.Unrolled)

    def parallel(self, var: IterVar) -> None:
        """The iterations run on threads of the processor."""
        self._mark("parallel", self._leaf("parallel", var), IterType.Parallelized)

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """The iterations run on the threads of an axis."""
        axis = self._leaf("bind", ivar)
        if not isinstance(thread_ivar, IterVar) or thread_ivar.iter_type is not IterType.ThreadIndex:
            shown = thread_ivar.var.name if isinstance(thread_ivar, IterVar) else repr(thread_ivar)
            raise CannotBind(
                f"bind: {shown} is no thread axis",
                hint='make one: te.thread_axis("threadIdx.x")',
            )
        if axis.iter_type not in (IterType.DataPar, IterType.CommReduce):
            raise CannotBind(
                f"bind: the iterations of {axis.var.name} of {self.name} run one after the other",
                hint="bind a data axis of the stages inside the scan",
            )
        attr = self._attr(axis)
        if attr.bind_thread is not None:
            warnings.warn(
                f"axis {axis.var.name} of {self.name} was bound to {attr.bind_thread.thread_tag} already",
                UserWarning,
                stacklevel=2,
            )
        attr.bind_thread = thread_ivar
        attr.lines["bind"] = caller()
        self._record("bind", [axis, thread_ivar])

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """A note for later passes at a loop: "auto_unroll_max_step" and others; "unroll" and "vectorize" mark it."""
        if not isinstance(pragma_type, str):
            raise CannotMark(f"pragma: the type is {pragma_type!r}", hint='give a text, such as "auto_unroll_max_step"')
        if pragma_type in ("unroll", "vectorize"):
            getattr(self, pragma_type)(var)
            return
        if pragma_type in _UNAVAILABLE_PRAGMAS:
            raise NotBuilt(f"the pragma {pragma_type}", "call the function with tir.call_extern, and link it yourself")
        axis = self._leaf("pragma", var)
        attr = self._attr(axis)
        attr.pragma_keys.append(pragma_type)
        attr.pragma_values.append(pragma_value)
        attr.lines["pragma"] = caller()
        self._record("pragma", [axis, pragma_type, pragma_value])

    def prefetch(self, tensor: Tensor, var: IterVar, offset: Any) -> None:
        """Each iteration asks for what `tensor` gives `offset` iterations later."""
        axis = self._leaf("prefetch", var)
        if not isinstance(tensor, Tensor):
            raise CannotMark(f"prefetch: {tensor!r} is no tensor", hint="give the tensor that the stage reads")
        distance = self._size("prefetch", "offset", offset)
        size = self.sizes().get(axis)
        if isinstance(size, IntImm) and size.value == 1:
            raise CannotMark(
                f"prefetch: {axis.var.name} of {self.name} runs once, so there is no later iteration",
                hint="choose a loop of more iterations",
            )
        attr = self._attr(axis)
        attr.prefetch_data.append(tensor)
        attr.prefetch_offset.append(distance)
        attr.lines["prefetch"] = caller()
        self._record("prefetch", [tensor, axis, offset])

    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """The loop and all inside it run as one call of an instruction."""
        given = tensor_intrin
        axis = self._leaf("tensorize", var)
        if not isinstance(given, TensorIntrin):
            raise CannotMark(
                f"tensorize: {given!r} is no tensor intrinsic", hint="declare one with te.decl_tensor_intrin"
            )
        attr = self._attr(axis)
        attr.tensor_intrin, attr.iter_type = given, IterType.Tensorized
        attr.lines["tensorize"] = caller()
        self._record("tensorize", [axis, given])

    # --- where it is computed -------------------------------------------------------------------------------------

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
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
        self._record("compute_at", [parent, axis])

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
        self._record("compute_inline", [])

    def compute_root(self) -> None:
        """Compute all of it before its consumers begin: how a stage starts out."""
        self._check_movable("compute_root")
        self.attach_type = GROUP_ROOT
        self.attach_stage = self.attach_ivar = None
        self._record("compute_root", [])

    def _check_movable(self, step: str) -> None:
        if self.attach_type == SCAN_UPDATE:
            raise CannotAttach(
                f"{step}: {self.name} is the update of a scan, which runs in each step of it",
                hint="move the scan, or the stages that the update reads",
            )

    # --- memory ---------------------------------------------------------------------------------------------------

    def set_scope(self, scope: str) -> None:
        """The kind of memory that holds the result."""
        if not isinstance(scope, str) or (scope and scope.split(".")[0] not in _SCOPES):
            raise BadScope(f"set_scope: there is no scope {scope!r}", hint=f"use one of {', '.join(_SCOPES)}")
        self.scope = scope
        self._record("set_scope", [scope])

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
        self._record("storage_align", [axis, factor, offset])

    @property
    def double_buffer(self) -> _Flag:
        """Call it to have memory for two iterations; its truth says whether that was asked for."""
        return _Flag(self.is_double_buffered, lambda: self._set_flag("double_buffer", "is_double_buffered"))

    @property
    def rolling_buffer(self) -> _Flag:
        """Call it to note that iterations share what they both need; its truth says whether that was asked for."""
        return _Flag(self.is_rolling, lambda: self._set_flag("rolling_buffer", "is_rolling"))

    def _set_flag(self, step: str, flag: str) -> None:
        if self.is_output:
            raise NotForThisStage(
                f"{step}: {self.name} is a result, and its memory is the caller's",
                hint="use it for a stage in between, such as one made by cache_read or cache_write",
            )
        setattr(self, flag, True)
        self._record(step, [])

    @property
    def env_threads(self) -> _Threads:
        """Call it with thread axes to run the whole of a scan on them; as a list, the threads given so far."""
        return _Threads(self.env_threads_, self._set_env_threads)

    def _set_env_threads(self, threads: Any) -> None:
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
        self._record("env_threads", given)

    def set_store_predicate(self, predicate: Any) -> None:
        """Store only where the condition, in terms of the stage's axes, holds."""
        self.store_predicate = as_expr(predicate)
        self._record("set_store_predicate", [predicate])

    def transform_layout(self, mapping_function: Callable[..., Any]) -> Any:
        """Store element `i, j, …` at the cell `mapping_function(i, j, …)`; the loops run over the cells.

        Gives the new axes of a compute; for an input, only its memory changes, and nothing is given.
        """
        from loopwright.te.schedule.layouts import transform_layout

        return transform_layout(self, mapping_function)

    # --- inside ---------------------------------------------------------------------------------------------------

    def _size(self, step: str, name: str, given: Any) -> Expr:
        is_size = not isinstance(given, (bool, float, str, IterVar)) and given is not None
        if is_size:
            try:
                size = as_expr(given)
            except (LoopwrightError, TypeError):
                size = None
            if size is not None and size.dtype.is_int and not (isinstance(size, IntImm) and size.value < 1):
                return size
        hint = "give a whole number of at least 1"
        if isinstance(given, float):
            hint = f"{given} is a float: divide whole numbers with //"
        raise BadSplit(f"{step}: {name} is {given!r}", hint=hint)

    def _leaf(self, step: str, axis: Any) -> IterVar:
        """`axis`, when it is a loop of the stage now."""
        if isinstance(axis, IterVar) and axis in self.leaf_iter_vars:
            return axis
        if not isinstance(axis, IterVar) or axis not in self.all_iter_vars:
            owner = self.schedule.owner_of(axis) if isinstance(axis, IterVar) else None
            name = None if owner is None or owner is self else owner.name
            raise ForeignAxis(step, self.name, axis, self.leaf_names(), name)
        told, parts, line = self._fate(axis)
        raise AxisGone(step, self.name, axis.var.name, told, [part.var.name for part in parts], line, self.leaf_names())

    def _fate(self, axis: IterVar) -> tuple[str, list[IterVar], SourceLine | None]:
        """What became of an axis, in words; the loops that stand for it now; where that was asked for."""
        relation, line = next(
            (relation, line)
            for relation, line in zip(self.relations, self._relation_lines, strict=True)
            if axis in parts_of(relation)[0]
        )
        made = parts_of(relation)[1]
        done = "split" if isinstance(relation, Split) else "fused" if isinstance(relation, Fuse) else "laid out"
        told = f"{done} into {' and '.join([part.var.name for part in made])}" + (f" at {line}" if line else "")
        parts: list[IterVar] = []
        for part in made:
            if part in self.leaf_iter_vars:
                parts.append(part)
            else:
                later, below, _ = self._fate(part)
                told += f", and {part.var.name} was {later}"
                parts += below
        return told, list(dict.fromkeys(parts)), line

    @property
    def _relation_lines(self) -> list[SourceLine | None]:
        lines = {id(wish.what): wish.where for wish in self.wishes}
        return [lines.get(id(relation)) for relation in self.relations]

    def _relate(self, relation: Split | Fuse | Singleton, made: Sequence[IterVar]) -> None:
        self.relations.append(relation)
        self.all_iter_vars += made
        self.wishes.append(Wish(relation, caller()))
        self._record(type(relation).__name__.lower(), [*parts_of(relation)[0]])

    def _type(self, axis: IterVar) -> IterType:
        return axis.iter_type

    def _attr(self, axis: IterVar) -> IterVarAttr:
        return self.iter_var_attrs.setdefault(axis, IterVarAttr(axis.iter_type))

    def _mark(self, step: str, axis: IterVar, kind: IterType) -> None:
        if axis.iter_type is IterType.Opaque:
            raise NotALoop(step, self.name, axis.var.name)
        if axis.iter_type is IterType.Ordered and kind is not IterType.Unrolled:
            raise CannotMark(
                f"{step}: the iterations of {axis.var.name} of {self.name} run one after the other",
                hint="mark a data axis of the stages inside the scan",
            )
        attr = self._attr(axis)
        attr.iter_type = kind
        attr.lines["kind"] = caller()
        self._record(step, [axis])

    def _record(self, step: str, arguments: Sequence[object]) -> None:
        self.schedule.record(self, step, arguments)

    def is_untouched(self) -> bool:
        """Whether nothing was said about the stage yet."""
        return self.attach_type == GROUP_ROOT and not self.relations and not self.wishes and not self.iter_var_attrs


class _Flag:
    """A property that scripts both read and call: `s[B].double_buffer()` sets it, `if s[B].double_buffer` reads it."""

    __slots__ = ("_set", "_value")

    def __init__(self, value: bool, set_it: Callable[[], None]) -> None:
        self._value, self._set = value, set_it

    def __call__(self) -> None:
        self._set()

    def __bool__(self) -> bool:
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == bool(other)

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return repr(self._value)


class _Threads(tuple[IterVar, ...]):
    """The threads around a scan, which a call sets."""

    _set: Callable[[Any], None]

    def __new__(cls, threads: Sequence[IterVar], set_them: Callable[[Any], None]) -> _Threads:
        made = super().__new__(cls, tuple(threads))
        made._set = set_them
        return made

    def __call__(self, threads: Any) -> None:
        self._set(threads)
