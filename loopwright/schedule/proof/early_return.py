"""Early returns: where a function may return before its end, what comes later runs or not by what came before.

    for i in range(8):
        with T.block("C"): …
        with T.block("R"):
            if A[vi] > 3:
                T.ret(0)          # of C, the iterations up to here have run

Who sees whose value does not tell that: a statement that nobody reads from decides which others run. So a step there
keeps the order of everything, or is refused.
"""

from __future__ import annotations

from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    DeclBuffer,
    Evaluate,
    LetStmt,
    SeqStmt,
    Stmt,
    is_return,
)
from loopwright.schedule.errors import NotProved
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def check_order_kept(method: str, view: View, step: Step) -> None:
    """Refuse a step that changes the order of anything in a function that may return early."""
    if step.proof is Proof.ORDER_KEPT and not step.concurrent:
        return
    if view.index.returns > _ends_with_return(view.function.body):
        problem = "the function may return before its end (T.ret), so only steps that keep the order of all it does go"
        raise NotProved(method, problem, step.at)


def _ends_with_return(body: Stmt) -> bool:
    """Whether the last statement is a return that always comes, after everything else."""
    while not isinstance(body, Evaluate):
        if isinstance(body, SeqStmt):
            body = body.seq[-1]
        elif isinstance(body, BlockRealize) and not body.block.iter_vars:
            body = body.block
        elif isinstance(body, (Allocate, AllocateConst, AttrStmt, Block, DeclBuffer, LetStmt)):
            body = body.body
        else:
            return False
    return is_return(body)
