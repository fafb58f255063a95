"""IndexRewriter: the base of passes that change the type of indices and leave the data as it is.

    index(expr)     how an index is rewritten: those of loads and stores, and the sizes of buffers
    visit(expr)     how a value is rewritten: it keeps its type, also where it uses a variable that has another one now

Passes differ in `index` alone, and in which variables they give a successor of another type.
"""

from __future__ import annotations

from loopwright.ir import (
    GE,
    LT,
    And,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Expr,
    IntImm,
    Let,
    LetStmt,
    Rewriter,
    Stmt,
    Var,
    cast,
    const,
    uses_var,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.runtime.dtype import DataType

_UINT64 = DataType("uint64")


def inside(index: Expr, extent: Expr) -> Expr:
    """0 <= index < extent, as one comparison where the extent is a number.

    As an unsigned number, what is negative is larger than any extent; but an extent that is computed may be negative.
    """
    if isinstance(extent, IntImm):
        return LT(cast(index, _UINT64), const(max(extent.value, 0), _UINT64))
    return And(GE(index, const(0, index.dtype)), LT(index, cast(extent, index.dtype)))


class LetRewriter(Rewriter):
    """A rewriter for which both kinds of let are one: `let` gives the variable and its value, rewritten."""

    def let(self, node: Let | LetStmt) -> tuple[Var, Expr]:
        return node.var, self.visit(node.value)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        var, value = self.let(node)
        return node.with_(var=var, value=value, body=self.visit(node.body))

    def visit_Let(self, node: Let) -> Expr:
        var, value = self.let(node)
        return node.with_(var=var, value=value, body=self.visit(node.body))


class IndexRewriter(LetRewriter):
    """Rewrites indices by `index`; `successors` are the variables that have another type from now on."""

    def __init__(self) -> None:
        self.successors: dict[Var, Var] = {}
        self.buffers: dict[Buffer, Buffer] = {}

    def index(self, expr: Expr) -> Expr:
        """`expr` as an index."""
        raise NotImplementedError

    def visit_Var(self, var: Var) -> Expr:
        successor = self.successors.get(var)
        return var if successor is None else Cast(var.dtype, successor)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        """The same memory; its size may use a variable that has a successor, as that of a view in a loop does."""
        result = self.buffers.get(buffer)
        if result is None:
            size = buffer.shape[0] if buffer.shape else None
            result = buffer
            if size is not None and type(size) is not IntImm and uses_var(size, self.successors.__contains__):
                result = buffer.with_(shape=rewrite_tuple(buffer.shape, self.index))
            self.buffers[buffer] = result
        return result

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return load.with_(buffer=self.visit_Buffer(load.buffer), indices=rewrite_tuple(load.indices, self.index))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices = rewrite_tuple(store.indices, self.index)
        return store.with_(buffer=self.visit_Buffer(store.buffer), value=self.visit(store.value), indices=indices)
