"""check_run_once: what is marked to run in the first call of a module alone can be, or is refused.

    with T.attr(0, "coproc_uop_scope", "TVMBackendRunOnce"):    as it is: code generation asks a flag of the module
        A[0] = A[0] + 1

Passes copy the bodies of loops, and each copy would have its own flag. So the mark stands outside of all loops.

Needs: nothing.  Leaves: such marks outside of loops only, for LLVM.
"""

from __future__ import annotations

from loopwright.ir import AttrStmt, Expr, For, PrimFunc, StringImm, While, deep
from loopwright.ir.annotations import ONCE, ONCE_SCOPE
from loopwright.ir.passes import function_pass
from loopwright.ir.visitor import Visitor
from loopwright.runtime.errors import NotBuilt
from loopwright.target import Target


class _CheckRunOnce(Visitor):
    def __init__(self) -> None:
        self.loops = 0

    def visit_Expr(self, expr: Expr) -> None:
        """Statements only."""

    def visit_For(self, loop: For | While) -> None:
        self.loops += 1
        self.visit(loop.body)
        self.loops -= 1

    visit_While = visit_For

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        if node.attr_key == ONCE_SCOPE:
            target = Target.current()
            if not (isinstance(node.value, StringImm) and node.value.value == ONCE):
                raise NotBuilt(f"{ONCE_SCOPE} with {node.value}", f'"{ONCE}" runs its body in the first call alone')
            if self.loops:
                raise NotBuilt(f"{ONCE_SCOPE} inside a loop", "put it around the outermost loop")
            if target is not None and str(target.kind) != "llvm":
                raise NotBuilt(f"{ONCE_SCOPE} for the target {target.kind}", 'build for "llvm"')
        self.visit(node.body)


@function_pass
@deep
def check_run_once(func: PrimFunc) -> PrimFunc:
    """What is marked to run in the first call of a module alone stands outside of loops."""
    _CheckRunOnce().visit(func.body)
    return func
