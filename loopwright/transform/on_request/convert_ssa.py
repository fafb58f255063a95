"""convert_ssa: every variable and buffer is defined in one place.

    for i in range(4): A[i] = 0      # both loops      →    for i in range(4): A[i] = 0
    for i in range(4): B[i] = 1      # count one `i`        for i_1 in range(4): B[i_1] = 1

Programs built by hand may use one variable for two loops; passes and printer want one definition a variable. A
definition that comes a second time is copied, with all it defines inside.
"""

from __future__ import annotations

from loopwright.ir import Allocate, AllocateConst, Block, Expr, For, Let, LetStmt, PrimFunc, Rewriter, Stmt, Var, deep
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.clone_definitions import clone_definitions


class _ConvertSSA(Rewriter):
    def __init__(self, params: tuple[Var, ...]) -> None:
        self.defined = set(params)

    def _define(self, node: Stmt, var: Var) -> Stmt:
        if var in self.defined:
            node = clone_definitions(node)  # all of it is new, and defined nowhere else
        else:
            self.defined.add(var)
        return self.rebuild(node)

    def visit_For(self, loop: For) -> Stmt:
        return self._define(loop, loop.loop_var)

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        return self._define(let, let.var)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        return self._define(node, node.buffer_var)

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        return self._define(node, node.buffer_var)

    def visit_Block(self, block: Block) -> Stmt:
        own = [axis.var for axis in block.iter_vars]
        own += [buffer.data for buffer in (*block.alloc_buffers, *[match.buffer for match in block.match_buffers])]
        if not self.defined.isdisjoint(own):
            block = clone_definitions(block)
        else:
            self.defined.update(own)
        return self.rebuild(block)

    def visit_Let(self, let: Let) -> Expr:
        if let.var in self.defined:
            let = clone_definitions(let)  # type: ignore[type-var]
        else:
            self.defined.add(let.var)
        return self.rebuild(let)


@function_pass
@deep
def convert_ssa(func: PrimFunc) -> PrimFunc:
    """Every variable and buffer is defined in one place."""
    return func.with_(body=_ConvertSSA(func.params).visit(func.body))
