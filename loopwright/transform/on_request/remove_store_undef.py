"""remove_store_undef: a store of "no value" is left out.

    B[i] = T.undef()        →
    B[j] = A[j]                  B[j] = A[j]

The cell may then hold anything, and what it held is one such thing. Nothing else can be done with a value that is none:
a program that computes with it, or uses it as an index, is refused.

Needs: nothing.  Leaves: no `T.undef`.
"""

from __future__ import annotations

from loopwright.ir import BufferStore, Call, Expr, PrimFunc, Rewriter, SeqStmt, Stmt, deep, no_op
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import UndefinedValueUsed
from loopwright.transform.parts.known_ops import UNDEF
from loopwright.transform.parts.statements import flat_seq


class _RemoveStoreUndef(Rewriter):
    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        for index in store.indices:
            self.visit(index)
        if isinstance(store.value, Call) and store.value.op is UNDEF:
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
