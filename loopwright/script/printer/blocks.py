"""Loops and blocks as text: `T.grid` for plain nests, `T.axis.remap` for plain bindings."""

from __future__ import annotations

from typing import Final

from loopwright.ir import (
    Block,
    BlockRealize,
    Expr,
    For,
    ForKind,
    IntImm,
    IterType,
    IterVar,
    Node,
    Stmt,
    Var,
    is_true,
    structural_equal,
    uses_var,
)
from loopwright.script.printer.literals import quote
from loopwright.script.printer.options import Options
from loopwright.script.printer.scopes import Learned, ScopePrinter

_KINDS: Final = {
    ForKind.SERIAL: "serial",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unroll",
    ForKind.THREAD_BINDING: "thread_binding",
}
_AXES: Final = {
    IterType.DataPar: "spatial",
    IterType.CommReduce: "reduce",
    IterType.Ordered: "scan",
    IterType.Opaque: "opaque",
}
_REMAP: Final = {IterType.DataPar: "S", IterType.CommReduce: "R"}


class BlockPrinter(ScopePrinter):
    """Write loops and blocks."""

    def __init__(self, options: Options, learned: Learned | None = None) -> None:
        super().__init__(options, learned)
        self.loops: dict[Var, For] = {}  # around the statement, up to the nearest block
        self.marked: frozenset[Node] = frozenset()  # the nodes that must keep a line of their own

    def statement(self, stmt: Stmt, last: bool = True) -> None:
        raise NotImplementedError

    # --- loops ---

    def visit_For(self, loop: For, last: bool = True) -> None:
        nest = self._grid(loop)
        extents = [self.text(one.extent) for one in nest]
        header = self._header(loop) if len(nest) == 1 else f"{self.prefix}.grid({', '.join(extents)})"
        with self.scope(indent=False):
            for one in nest:
                self.loops[one.loop_var] = one
            self.line(f"for {', '.join([self.define_var(one.loop_var) for one in nest])} in {header}:")
            with self.scope():
                self.statement(nest[-1].body)
            for one in nest:
                self.loops.pop(one.loop_var, None)

    def _grid(self, loop: For) -> list[For]:
        """`loop` and the plain loops right below it whose extents do not depend on it."""
        nest = [loop]
        if not self.options.syntax_sugar or not _is_plain(loop) or loop in self.marked:
            return nest
        body = loop.body
        while isinstance(body, For) and _is_plain(body) and body not in self.marked:
            outer = {one.loop_var for one in nest}
            if body.loop_var in outer:
                break
            if not isinstance(body.extent, IntImm) and uses_var(body.extent, outer.__contains__):
                break
            nest.append(body)
            body = body.body
        return nest

    def _header(self, loop: For) -> str:
        if self.options.syntax_sugar and _is_plain(loop):
            return f"range({self.text(loop.extent)})"
        if self.options.syntax_sugar and _starts_at_zero(loop.min, loop.extent):
            arguments = self.text(loop.extent)
        else:
            arguments = self.bounds_text(loop.min, loop.extent)
        if loop.thread_binding is not None:
            arguments += f", thread={quote(loop.thread_binding.thread_tag)}"
        if loop.annotations:
            arguments += f", annotations={self.mapping_text(loop.annotations)}"
        return f"{self.prefix}.{_KINDS[loop.kind]}({arguments})"

    # --- blocks ---

    def visit_BlockRealize(self, realize: BlockRealize, last: bool = True) -> None:
        self._block(realize.block, realize)

    def visit_Block(self, block: Block, last: bool = True) -> None:
        self._block(block, None)

    def _block(self, block: Block, realize: BlockRealize | None) -> None:
        flag = "" if realize is not None else ", no_realize=True"
        self.line(f"with {self.prefix}.block({quote(block.name_hint)}{flag}):")
        with self.scope():
            if realize is not None:
                self._axes(block.iter_vars, realize.iter_values)
                if not is_true(realize.predicate):
                    self.line(f"{self.prefix}.where({self.text(realize.predicate)})")
            else:
                for iter_var in block.iter_vars:
                    self._axis(iter_var, None)
            self.block_contents(block)

    def block_contents(self, block: Block) -> None:
        """What follows the axes and the predicate."""
        loops, self.loops = self.loops, {}
        prefix = self.prefix
        self.line(f"{prefix}.reads({self.texts_of(block.reads)})")
        self.line(f"{prefix}.writes({self.texts_of(block.writes)})")
        if block.annotations:
            self.line(f"{prefix}.block_attr({self.mapping_text(block.annotations)})")
        self.allocations(block)
        for match in block.match_buffers:
            source = self.text(match.source)
            differs = match.source.buffer.dtype is not match.buffer.dtype
            self.declare_buffer(match.buffer, "match_buffer", source, show_dtype=differs)
        if block.init is not None:
            self.line(f"with {prefix}.init():")
            with self.scope():
                self.statement(block.init)
        self.statement(block.body)
        self.loops = loops

    def allocations(self, block: Block) -> None:
        for buffer in block.alloc_buffers:
            self.declare_buffer(buffer, "alloc_buffer")

    def _axes(self, iter_vars: tuple[IterVar, ...], values: tuple[Expr, ...]) -> None:
        position = 0
        while position < len(iter_vars):
            end = position
            while self.options.syntax_sugar and end < len(iter_vars) and self._is_remap(iter_vars[end], values[end]):
                end += 1
            if end - position < 2:
                self._axis(iter_vars[position], values[position])
                position += 1
                continue
            run = iter_vars[position:end]
            kinds = "".join([_REMAP[one.iter_type] for one in run])
            bindings = self.texts_of(values[position:end])
            names = ", ".join([self.define_var(one.var) for one in run])
            self.line(f'{names} = {self.prefix}.axis.remap("{kinds}", [{bindings}])')
            position = end

    def _is_remap(self, iter_var: IterVar, value: Expr) -> bool:
        """Whether the axis runs exactly as the loop it is bound to."""
        loop = self.loops.get(value) if isinstance(value, Var) else None
        dom = iter_var.dom
        if loop is None or dom is None or iter_var.iter_type not in _REMAP or iter_var.thread_tag:
            return False
        if iter_var.var.dtype is not loop.extent.dtype:
            return False
        return _same(dom.extent, loop.extent) and _same(dom.min, loop.min)

    def _axis(self, iter_var: IterVar, value: Expr | None) -> None:
        dom = iter_var.dom
        if dom is None:
            domain = "None"
        elif _starts_at_zero(dom.min, dom.extent) and self.options.syntax_sugar:
            domain = self.text(dom.extent)
        else:
            domain = f"({self.bounds_text(dom.min, dom.extent)})"
        binding = "" if value is None else f", {self.text(value)}"
        kind = _AXES.get(iter_var.iter_type, iter_var.iter_type.name)
        self.line(f"{self.define_var(iter_var.var)} = {self.prefix}.axis.{kind}({domain}{binding})")


def _starts_at_zero(low: Expr, extent: Expr) -> bool:
    return isinstance(low, IntImm) and low.value == 0 and low.dtype is extent.dtype


def _is_plain(loop: For) -> bool:
    """Whether `range(extent)` makes this loop."""
    return (
        loop.kind is ForKind.SERIAL
        and not loop.annotations
        and loop.thread_binding is None
        and _starts_at_zero(loop.min, loop.extent)
    )


def _same(a: Expr, b: Expr) -> bool:
    if a is b:
        return True
    if isinstance(a, IntImm) or isinstance(b, IntImm):
        return type(a) is type(b) and a.value == b.value and a.dtype is b.dtype  # type: ignore[attr-defined]
    return structural_equal(a, b)
