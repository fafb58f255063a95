"""Around a loop: the function with nothing in it but one loop and what stands around that.

    A[…] = …                                →    for i in range(64):
    for i in range(64):                              for j in T.vectorized(16):     the loop asked about
        for j in T.vectorized(16):                       B[…] = …
            B[…] = …
    C[…] = …

Whether iterations of a loop disturb each other is a question about that loop alone, and a function may have hundreds.
"""

from __future__ import annotations

from loopwright.ir import For, PrimFunc, SeqStmt, Stmt, Var
from loopwright.ir.deep import deep


@deep
def around_loop(function: PrimFunc, var: Var) -> PrimFunc:
    """`function` with only the loop that counts with `var`, its body, and the statements that hold it."""
    result = _only(function.body, var)
    return function if result is None else function.with_(body=result)


def _only(statement: Stmt, var: Var) -> Stmt | None:
    """The statement without what does not hold the loop; None when it does not hold the loop itself."""
    if isinstance(statement, For) and statement.loop_var is var:
        return statement
    for child in statement.children():
        if isinstance(child, Stmt) and (result := _only(child, var)) is not None:
            return result if isinstance(statement, SeqStmt) else _with_child(statement, child, result)
    return None


def _with_child(statement: Stmt, old: Stmt, new: Stmt) -> Stmt:
    return statement.rebuild(lambda child: new if child is old else child)
