"""renew_definitions: a copy of a statement whose own variables and buffers are new.

A pass that writes a statement twice must not define one variable twice: passes, printer and evaluator may rely on each
definition having one place.
"""

from __future__ import annotations

from typing import TypeVar

from loopwright.ir import (
    Allocate,
    AllocateConst,
    Block,
    Buffer,
    BufferRewriter,
    DeclBuffer,
    Expr,
    For,
    IterVar,
    Let,
    LetStmt,
    Stmt,
    Var,
    deep,
)

S = TypeVar("S", bound=Stmt)


class _Renew(BufferRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Var, Var] = {}

    def _fresh(self, var: Var) -> Var:
        new = type(var)(var.name, var.type_annotation)
        self.values[var] = new
        return new

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        return loop.with_(loop_var=self._fresh(loop.loop_var), min=low, extent=extent, body=self.visit(loop.body))

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        return let.with_(var=self._fresh(let.var), value=value, body=self.visit(let.body))

    def visit_Let(self, let: Let) -> Expr:
        value = self.visit(let.value)
        return let.with_(var=self._fresh(let.var), value=value, body=self.visit(let.body))

    def visit_Allocate(self, node: Allocate) -> Stmt:
        node = node.with_(buffer_var=self._fresh(node.buffer_var))
        return self.rebuild(node)

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        node = node.with_(buffer_var=self._fresh(node.buffer_var))
        return self.rebuild(node)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        buffer: Buffer = self.visit(node.buffer)
        if buffer is node.buffer:
            buffer = Buffer(**{name: getattr(buffer, name) for name in Buffer.__slots__}, span=buffer.span)
            self.buffers[node.buffer] = buffer
        return node.with_(buffer=buffer, body=self.visit(node.body))

    def visit_Block(self, block: Block) -> Stmt:
        axes = []
        for axis in block.iter_vars:
            dom = None if axis.dom is None else self.visit(axis.dom)
            axes.append(IterVar(dom, self._fresh(axis.var), axis.iter_type, axis.thread_tag, axis.span))
        for buffer in (*block.alloc_buffers, *[match.buffer for match in block.match_buffers]):
            self._fresh(buffer.data)
            self.buffers.pop(buffer, None)
        for match in block.match_buffers:
            # What a match leaves open is defined by it, so it is new as well.
            parts = (*match.buffer.shape, *match.buffer.strides, match.buffer.elem_offset)
            for part in parts:
                if isinstance(part, Var) and part not in self.values:
                    self._fresh(part)
        return self.rebuild(block.with_(iter_vars=tuple(axes)))


@deep
def renew_definitions(statement: S) -> S:
    """A copy that defines variables and buffers of its own; the same object when it defines none."""
    result: S = _Renew().visit(statement)
    return result
