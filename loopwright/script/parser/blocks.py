"""Directives about blocks and their facts, scopes and threads; `memory.py` has those that name memory.

A directive names something (`A = T.alloc_buffer(...)`), performs something (`T.reads(...)`) or opens a scope over the
rest of the body (`T.attr(...)`); three tables say which.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import ClassVar

from loopwright.ir import (
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRegion,
    Expr,
    IntImm,
    IterType,
    IterVar,
    LetStmt,
    Range,
    Stmt,
    Var,
    as_expr,
    const,
    uses_var,
)
from loopwright.ir.operators import cast
from loopwright.ir.tensor_copy_intrinsics import type_of_value
from loopwright.runtime.dtype import BOOL, DataType
from loopwright.script.parser import directives as d
from loopwright.script.parser.differences import extent_between
from loopwright.script.parser.errors import (
    BadAttributes,
    BadAxis,
    BadThread,
    BadValueType,
    DuplicateInBlock,
    Misplaced,
    describe,
)
from loopwright.script.parser.frames import BlockFrame, Frame, FunctionFrame
from loopwright.script.parser.memory import Memory, Namer, Opener, Performer, Wrap
from loopwright.script.parser.regions import infer_regions

_KINDS = {"S": IterType.DataPar, "R": IterType.CommReduce}


class BlockStatements(Memory):
    """Directives about blocks, scopes and threads."""

    # --- blocks ---

    def open_block(self, spec: d.BlockSpec, node: ast.With) -> tuple[Frame, Wrap]:
        frame = BlockFrame(f"inside block {spec.name!r}", spec.name)
        outermost = len(self.frames) == 1 and isinstance(self.frames[0], FunctionFrame)
        if self.frames and isinstance(self.frames[0], FunctionFrame):
            self.frames[0].has_blocks = True
        span = self.place(node)

        def close(body: Stmt) -> Stmt:
            def finish(reads: Sequence[BufferRegion] | None, writes: Sequence[BufferRegion] | None) -> Block:
                return Block._make(
                    tuple(frame.iter_vars),
                    tuple(reads or ()),
                    tuple(writes or ()),
                    spec.name,
                    body,
                    frame.init,
                    tuple(frame.allocations),
                    tuple(frame.matches),
                    dict(frame.annotations or {}),
                    span=span,
                )

            block = finish(frame.reads, frame.writes)
            if frame.reads is None or frame.writes is None:

                def complete() -> Block:
                    reads, writes = infer_regions(block, span)
                    return finish(
                        reads if frame.reads is None else frame.reads, writes if frame.writes is None else frame.writes
                    )

                if outermost and not frame.iter_vars:
                    self.deferred[block] = complete
                else:
                    block = complete()
            if spec.no_realize:
                if frame.iter_values or frame.predicate is not None:
                    raise BadAxis("a block without realization has no bindings and no T.where", span)
                return block
            predicate = const(True) if frame.predicate is None else frame.predicate
            return BlockRealize._make(tuple(frame.iter_values), predicate, block, span=span)

        return frame, close

    def open_init(self, node: ast.With) -> tuple[Frame, Wrap]:
        block = self.block_frame("T.init", node)
        if block.init is not None:
            raise DuplicateInBlock("T.init", f"block {block.name!r}", self.place(node))

        def close(body: Stmt) -> None:
            block.init = body

        return Frame("inside T.init"), close

    def _axis(self, spec: d.AxisSpec, name: str, node: ast.expr) -> Var:
        frame = self.block_frame(f"T.axis.{spec.function}", node)
        try:
            dom = _domain(spec.dom, DataType(spec.dtype))
            binding = as_expr(spec.binding)
        except Exception as error:
            raise self.failed(error, node) from error
        if not binding.dtype.is_int:
            raise BadAxis(f"axis {name} is bound to a {binding.dtype} value", self.place(node), "bind it to an integer")
        self._check_outside(frame, binding, f"the binding of axis {name}", node)
        if spec.dtype != "int32":  # asked for: what is bound follows
            binding = cast(binding, dom.extent.dtype)
        return self._add_axis(frame, dom, name, spec.kind, binding)

    def _check_outside(self, frame: BlockFrame, value: Expr, what: str, node: ast.expr) -> None:
        """What decides whether and where a block runs is known before its axes have values."""
        axes = {axis.var for axis in frame.iter_vars}
        if axes and not isinstance(value, IntImm) and uses_var(value, axes.__contains__):
            raise BadAxis(
                f"{what} uses an axis of block {frame.name!r} itself",
                self.place(node),
                "say it with the loops around the block",
            )

    def _add_axis(self, frame: BlockFrame, dom: Range, name: str, kind: IterType, binding: Expr) -> Var:
        var = Var(name, dom.extent.dtype)
        frame.iter_vars.append(IterVar(dom, var, kind))
        frame.iter_values.append(binding)
        return var

    def remap(self, spec: d.RemapSpec, names: Sequence[str] | None, node: ast.expr) -> list[Var]:
        """One axis for each loop that T.axis.remap names."""
        frame = self.block_frame("T.axis.remap", node)
        if not isinstance(spec.kinds, str) or any(kind not in _KINDS for kind in spec.kinds):
            raise BadAxis(
                f"T.axis.remap: {spec.kinds!r} does not only hold S and R", self.place(node), 'write e.g. "SSR"'
            )
        if len(spec.kinds) != len(spec.bindings):
            raise BadAxis(
                f"T.axis.remap: {len(spec.kinds)} kinds for {len(spec.bindings)} loops",
                self.place(node),
                "give one letter, S or R, for each loop in the list",
            )
        if names is not None and len(names) != len(spec.bindings):
            raise BadAxis(
                f"T.axis.remap: {len(spec.bindings)} axes for {len(names)} names",
                self.place(node),
                "give one name for each loop in the list",
            )
        result = []
        for k, (kind, binding) in enumerate(zip(spec.kinds, spec.bindings, strict=True)):
            loop = self.loops.get(binding) if isinstance(binding, Var) else None
            if loop is None:
                raise BadAxis(
                    f"T.axis.remap: binding {k} is {describe(binding)}, not the variable of an enclosing loop",
                    self.place(node),
                    "bind it with T.axis.spatial(extent, value) or T.axis.reduce(extent, value)",
                )
            name = names[k] if names is not None else f"v{k}"
            assert isinstance(binding, Var)
            result.append(self._add_axis(frame, Range.from_min_extent(*loop), name, _KINDS[kind], binding))
        return result

    def _named_remap(self, spec: d.RemapSpec, name: str, node: ast.expr) -> Var | list[Var]:
        one = len(spec.bindings) == 1
        axes = self.remap(spec, [name] if one else [f"{name}_{k}" for k in range(len(spec.bindings))], node)
        return axes[0] if one else axes

    def _regions(self, spec: d.RegionsSpec, node: ast.expr) -> None:
        frame = self.block_frame(f"T.{spec.function}", node)
        if getattr(frame, spec.function) is not None:
            raise DuplicateInBlock(f"T.{spec.function}", f"block {frame.name!r}", self.place(node))
        regions = []
        for value in spec.regions:
            region = d.region_of(value)
            if region is None:
                raise BadValueType(
                    f"T.{spec.function} takes regions of buffers, got {describe(value)}",
                    self.place(node),
                    "write A[i, j] or A[0:16, j]",
                )
            regions.append(region)
        setattr(frame, spec.function, tuple(regions))

    def _where(self, spec: d.WhereSpec, node: ast.expr) -> None:
        frame = self.block_frame("T.where", node)
        if frame.predicate is not None:
            raise DuplicateInBlock("T.where", f"block {frame.name!r}", self.place(node))
        try:
            predicate = as_expr(spec.predicate)
            frame.predicate = predicate if predicate.dtype.is_bool else cast(predicate, BOOL)
        except Exception as error:
            raise self.failed(error, node) from error
        self._check_outside(frame, frame.predicate, "T.where", node)

    def _attributes(self, spec: d.AttributesSpec, node: ast.expr) -> None:
        if not isinstance(spec.attributes, Mapping) or not all(isinstance(key, str) for key in spec.attributes):
            raise BadAttributes(
                f"T.{spec.function} takes a dictionary with text keys, got {describe(spec.attributes)}",
                self.place(node),
            )
        if spec.function == "block_attr":
            frame = self.block_frame("T.block_attr", node)
            if frame.annotations is not None:
                raise DuplicateInBlock("T.block_attr", f"block {frame.name!r}", self.place(node))
            frame.annotations = dict(spec.attributes)
            return
        function = self.function_frame(f"T.{spec.function}", node)
        if len(self.frames) != 1:
            raise Misplaced(f"T.{spec.function}", "directly inside the function", self.standing(), self.place(node))
        if function.attrs is not None:
            raise DuplicateInBlock("T.func_attr", f"function {function.name!r}", self.place(node))
        function.attrs = dict(spec.attributes)

    # --- lets, facts, threads ---

    def _let_scope(self, spec: d.LetSpec, name: str, node: ast.expr) -> tuple[Var, Wrap]:
        var, span = spec.var, self.place(node)
        if var is None:
            var = Var(name or "v", spec.type if spec.type is not None else type_of_value(spec.value))
        if var.dtype is not spec.value.dtype:
            raise BadValueType(f"{var.name} is {var.dtype}, but its value is {spec.value.dtype}", span)
        bound = var
        return bound, lambda body: LetStmt._make(bound, spec.value, body, span=span)

    def _attr(self, spec: d.AttrSpec, name: str, node: ast.expr) -> tuple[None, Wrap]:
        span = self.place(node)
        return None, lambda body: AttrStmt._make(spec.node, spec.key, spec.value, body, span=span)

    def _assertion(self, spec: d.AssertSpec, name: str, node: ast.expr) -> tuple[None, Wrap]:
        span = self.place(node)
        return None, lambda body: AssertStmt._make(spec.condition, spec.message, body, span=span)

    def _env_thread(self, spec: d.EnvThread, name: str, node: ast.expr) -> Var:
        var = Var(name, "int32")
        self.threads[var] = spec.tag
        return var

    def _launch_thread(self, spec: d.LaunchThread, name: str, node: ast.expr) -> tuple[Var, Wrap]:
        span = self.place(node)
        if isinstance(spec.thread, str):
            var = Var(name or spec.thread.replace(".", "_"), spec.extent.dtype)
            axis = IterVar(Range(spec.extent), var, IterType.ThreadIndex, spec.thread)
        else:
            var = spec.thread
            known = self.threads.get(var)
            if known is None:
                raise BadThread(
                    f"{var.name} is not a thread axis",
                    span,
                    f'declare it first: {var.name} = T.env_thread("threadIdx.x")',
                )
            if isinstance(known, str):
                known = IterVar(Range(cast(spec.extent, var.dtype)), var, IterType.ThreadIndex, known)
                self.threads[var] = known
            assert known.dom is not None
            before, now = known.dom.extent, spec.extent
            if before is not now and getattr(before, "value", before) != getattr(now, "value", now):
                raise BadThread(f"thread axis {var.name} is launched with {now!r} threads after {before!r}", span)
            axis = known
        key = "virtual_thread" if axis.thread_tag.startswith("vthread") else "thread_extent"
        return var, lambda body: AttrStmt._make(axis, key, spec.extent, body, span=span)

    def _meta_var(self, spec: d.MetaVar, name: str, node: ast.expr) -> object:
        return spec.value

    openers: ClassVar[dict[type, Opener]] = {
        **Memory.openers,
        d.LetSpec: _let_scope,
        d.AttrSpec: _attr,
        d.AssertSpec: _assertion,
        d.LaunchThread: _launch_thread,
    }
    namers: ClassVar[dict[type, Namer]] = {
        **Memory.namers,
        d.AxisSpec: _axis,
        d.RemapSpec: _named_remap,
        d.EnvThread: _env_thread,
        d.MetaVar: _meta_var,
    }

    def _unnamed_axis(self, spec: d.AxisSpec, node: ast.expr) -> None:
        self._axis(spec, "v", node)

    def _unnamed_axes(self, spec: d.RemapSpec, node: ast.expr) -> None:
        self.remap(spec, None, node)

    performers: ClassVar[dict[type, Performer]] = {
        d.AxisSpec: _unnamed_axis,
        d.RemapSpec: _unnamed_axes,
        d.RegionsSpec: _regions,
        d.WhereSpec: _where,
        d.AttributesSpec: _attributes,
    }


def _domain(dom: object, dtype: DataType) -> Range:
    """The domain of an axis: an extent, (begin, end) or a Range; at least as wide as `dtype`."""
    if isinstance(dom, Range):
        low, extent = dom.min, dom.extent
    elif isinstance(dom, (tuple, list)):
        if len(dom) != 2:
            raise ValueError(f"the domain of an axis is an extent or (begin, end), got {len(dom)} values")
        low, extent = extent_between(dom[0], dom[1])
    else:
        extent = as_expr(dom)
        low = const(0, extent.dtype) if extent.dtype.is_int else const(0)
    if not extent.dtype.is_int:
        raise TypeError(f"the domain of an axis must be of integers, got {extent.dtype}")
    wide = max(dtype, low.dtype, extent.dtype, key=lambda one: one.bits)
    if wide is dtype and extent.dtype.bits == dtype.bits:
        wide = extent.dtype
    return Range.from_min_extent(cast(low, wide), cast(extent, wide))
