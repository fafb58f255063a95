"""drop_declarations: memory that has a name is used through its buffers, without saying so first.

    A_1 = T.decl_buffer((32,), data=A.data)    →    A_1 = T.Buffer((32,), data=A.data)    # printed, but no statement
    A_1[i] = T.float32(0)                           A_1[i] = T.float32(0)

What `lower` shows then begins with its loops, as programs expect that look into them. What instructions of a warp touch
(`use_warp_intrinsics`) is no part of what is shown either.
Needs: nothing.  Leaves: no DeclBuffer, and no such attribute.
"""

from __future__ import annotations

from loopwright.ir import AttrStmt, DeclBuffer, PrimFunc, Stmt, deep
from loopwright.ir.annotations import TOUCHED
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.statements import StmtRewriter


class _DropDeclarations(StmtRewriter):
    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        result: Stmt = self.visit(node.body)
        return result

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        return self.visit(node.body) if node.attr_key == TOUCHED else self.rebuild(node)


@function_pass
@deep
def drop_declarations(func: PrimFunc) -> PrimFunc:
    """No buffer is declared where its memory is there anyway."""
    return func.with_(body=_DropDeclarations().visit(func.body))
