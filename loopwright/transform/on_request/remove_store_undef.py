"""remove_store_undef: a store of "no value" is left out.

    B[i] = T.undef()        →
    B[j] = A[j]                  B[j] = A[j]

The cell may then hold anything, and what it held is one such thing. What is computed from no value, by arithmetic or
under a name, is none either. Nothing else can be done with one: a program that chooses by it, uses it as an index or
hands it on is refused.

Needs: nothing.  Leaves: no `T.undef`.
"""

from __future__ import annotations

from loopwright.ir import (
    BinaryExpr,
    BufferStore,
    Call,
    Cast,
    Expr,
    LetStmt,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    deep,
    no_op,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import UndefinedValueUsed
from loopwright.transform.parts.known_ops import UNDEF
from loopwright.transform.parts.statements import flat_seq


class _RemoveStoreUndef(Rewriter):
    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def __init__(self) -> None:
        self.names: set[Var] = set()  # of values that are none

    def _is_none(self, value: Expr) -> bool:
        if isinstance(value, (BinaryExpr, Cast)):
            parts = (value.value,) if isinstance(value, Cast) else (value.a, value.b)
            return any([self._is_none(part) for part in parts])
        return value in self.names or (isinstance(value, Call) and value.op is UNDEF)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        if not self._is_none(node.value):
            return self.rebuild(node)
        self.names.add(node.var)
        body: Stmt = self.visit(node.body)
        return body

    def visit_Var(self, var: Var) -> Expr:
        if var in self.names:
            raise UndefinedValueUsed(var)
        return var

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        for index in store.indices:
            self.visit(index)
        if self._is_none(store.value):
            return no_op()
        self.visit(store.value)
        return store

    def visit_Call(self, call: Call) -> Expr:
        if call.op is UNDEF:
            raise UndefinedValueUsed(call)
        return self.rebuild(call)


@function_pass
@deep
def remove_store_undef(func: PrimFunc) -> PrimFunc:
    """A store of "no value" is left out."""
    return func.with_(body=_RemoveStoreUndef().visit(func.body))
