"""The loops of a stage: how they are split, fused and ordered, and who runs their iterations.

What can be told at once is told at once: an axis that is no loop any more, loops that are not neighbours, and the like.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final

from loopwright.ir import Expr, IntImm, IterType, IterVar, Var, as_expr
from loopwright.runtime.errors import LoopwrightError, NotBuilt, caller
from loopwright.te.schedule.errors import BadReorder, BadSplit, CannotBind, CannotMark, NotAdjacent, NotALoop
from loopwright.te.schedule.relations import Directive, Fuse, Singleton, Split
from loopwright.te.schedule.stage_state import StageState
from loopwright.te.schedule.tensor_intrin import TensorIntrin
from loopwright.te.tensor import Tensor

_UNAVAILABLE_PRAGMAS: Final = ("import_c",)


class StageLoops(StageState):
    """Directives about loops."""

    def split(
        self, parent: IterVar, factor: object = None, nparts: object = None, disable_predication: bool = False
    ) -> tuple[IterVar, IterVar]:
        """The loop as two, outer and inner: `factor` iterations inside, or `nparts` outside."""
        if (factor is None) == (nparts is None):
            both = "both factor and nparts are" if factor is not None else "neither factor nor nparts is"
            raise BadSplit(f"split: {both} given", hint="give factor= (the size of the inner loop) or nparts=")
        name, given = ("factor", factor) if factor is not None else ("nparts", nparts)
        size = _checked_size("split", name, given)
        axis = self._leaf("split", parent)
        if axis.iter_type in (IterType.ThreadIndex, IterType.Opaque):
            raise NotALoop("split", self.name, axis.var.name, axis.iter_type is IterType.ThreadIndex)
        kind, dtype = axis.iter_type, axis.var.dtype
        make = type(axis.var)  # a part of a reduce axis is defined in reductions only
        outer = IterVar(None, make(f"{axis.var.name}.outer", dtype), kind)
        inner = IterVar(None, make(f"{axis.var.name}.inner", dtype), kind)
        relation = Split(axis, outer, inner, size if name == "factor" else None, size if name == "nparts" else None)
        location = self.leaf_iter_vars.index(axis)
        self.leaf_iter_vars[location : location + 1] = [outer, inner]
        self._relate(relation, [outer, inner])
        return outer, inner

    def fuse(self, *args: object) -> IterVar:
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
            if axis.iter_type is IterType.Opaque:
                raise NotALoop("fuse", self.name, axis.var.name)
        name = f"{outer.var.name}.{inner.var.name}.fused"
        kind = max(outer.iter_type, inner.iter_type)
        fused = IterVar(None, Var(name, outer.var.dtype), kind)
        self.leaf_iter_vars[first : second + 1] = [fused]
        self._relate(Fuse(outer, inner, fused), [fused])
        return fused

    def reorder(self, *args: object) -> None:
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
        locations = sorted([self.leaf_iter_vars.index(axis) for axis in wanted])
        for location, axis in zip(locations, wanted, strict=True):
            self.leaf_iter_vars[location] = axis
        if len(wanted) > 1:
            self.directives.append(Directive(tuple(wanted), caller()))
            self._record("reorder")

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: object, y_factor: object
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Two loops as tiles: x and y over the tiles, then x and y inside one."""
        xo, xi = self.split(x_parent, factor=x_factor)
        yo, yi = self.split(y_parent, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def _relate(self, relation: Split | Fuse | Singleton, result: Sequence[IterVar]) -> None:
        self.relations.append(relation)
        self.all_iter_vars += result
        self.directives.append(Directive(relation, caller()))
        self._record(type(relation).__name__.lower())

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
        self._record(step)

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
        self._record("bind")

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: object = None) -> None:
        """A note for later passes at a loop: "auto_unroll_max_step" and others; "unroll" and "vectorize" mark it."""
        if not isinstance(pragma_type, str):
            raise CannotMark(f"pragma: the type is {pragma_type!r}", hint='give a text, such as "auto_unroll_max_step"')
        if pragma_type in ("unroll", "vectorize"):
            getattr(self, pragma_type)(var)
            return
        if pragma_type in _UNAVAILABLE_PRAGMAS:
            raise NotBuilt(f"the pragma {pragma_type}", "make LLVM text of it with contrib.clang, for import_llvm")
        axis = self._leaf("pragma", var)
        attr = self._attr(axis)
        attr.pragma_keys.append(pragma_type)
        attr.pragma_values.append(pragma_value)
        attr.lines["pragma"] = caller()
        self._record("pragma")

    def prefetch(self, tensor: Tensor, var: IterVar, offset: object) -> None:
        """Each iteration asks for what `tensor` gives `offset` iterations later."""
        axis = self._leaf("prefetch", var)
        if not isinstance(tensor, Tensor):
            raise CannotMark(f"prefetch: {tensor!r} is no tensor", hint="give the tensor that the stage reads")
        distance = _checked_size("prefetch", "offset", offset)
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
        self._record("prefetch")

    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """The loop and all inside it run as one call of an instruction."""
        axis = self._leaf("tensorize", var)
        if not isinstance(tensor_intrin, TensorIntrin):
            raise CannotMark(
                f"tensorize: {tensor_intrin!r} is no tensor intrinsic", hint="declare one with te.decl_tensor_intrin"
            )
        attr = self._attr(axis)
        attr.tensor_intrin, attr.iter_type = tensor_intrin, IterType.Tensorized
        attr.lines["tensorize"] = caller()
        self._record("tensorize")


def _checked_size(step: str, name: str, given: object) -> Expr:
    """A number of iterations: a whole number of at least 1, or an expression for one."""
    is_size = not isinstance(given, (bool, float, str, IterVar)) and given is not None
    if is_size:
        try:
            size = as_expr(given)
        except (LoopwrightError, TypeError):
            size = None
        if size is not None and size.dtype.is_int and not (isinstance(size, IntImm) and size.value < 1):
            return size
    hint = "give an integer of at least 1"
    if isinstance(given, float):
        hint = f"{given} is a float: divide integers with //"
    raise BadSplit(f"{step}: {name} is {given!r}", hint=hint)
