"""convert_for_loops_to_serial: parallel loops run one iteration after the other.

    for i in T.parallel(8):        →    for i in range(8):
        B[i] = A[i]                         B[i] = A[i]

For runtimes without threads, and to look for a race: the values must not change.
Needs: nothing.  Leaves: no parallel loop.
"""

from __future__ import annotations

from loopwright.ir import For, ForKind, PrimFunc, Stmt, deep
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.statements import StmtRewriter


class _RunSerially(StmtRewriter):
    def __init__(self, kind: ForKind) -> None:
        self.kind = kind

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        return loop.with_(kind=ForKind.SERIAL) if loop.kind is self.kind else loop


def run_serially(body: Stmt, kind: ForKind) -> Stmt:
    """`body` with all loops of that kind serial."""
    result: Stmt = _RunSerially(kind).visit(body)
    return result


@function_pass
@deep
def convert_for_loops_to_serial(func: PrimFunc) -> PrimFunc:
    """Parallel loops run one iteration after the other."""
    return func.with_(body=run_serially(func.body, ForKind.PARALLEL))
