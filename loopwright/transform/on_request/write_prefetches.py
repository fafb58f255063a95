"""write_prefetches: the request to bring a region near becomes one hint a cache line.

    T.prefetch(A, [T.Range(0, 4), T.Range(0, 64)])   →   for i, j in T.grid(4, 4):
                                                             T.prefetch_line(T.address_of(A[i, j * 16]))

`flatten_buffers` does the same on its way, so the pipeline does not run it; it shows what a request comes to.
Needs: nothing.  Leaves: no Prefetch statement.
"""

from __future__ import annotations

from loopwright.ir import Prefetch, PrimFunc, Stmt, deep
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.prefetch_loops import prefetch_loops
from loopwright.transform.parts.statements import StmtRewriter


class _WritePrefetches(StmtRewriter):
    def visit_Prefetch(self, node: Prefetch) -> Stmt:
        return prefetch_loops(node)


@function_pass
@deep
def write_prefetches(func: PrimFunc) -> PrimFunc:
    """The request to bring a region near becomes one hint a cache line."""
    return func.with_(body=_WritePrefetches().visit(func.body))
