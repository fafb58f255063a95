"""interchange_loops: a loop over tiles of a row moves into the rows, where the tiles save nothing.

    for jo in range(8):                      →    for i in range(32):
        for i in range(32):                           for jo in range(8):
            for j in range(128):                          for j in range(128):
                B[i, jo * 128 + j] = A[i, jo * 128 + j]       B[i, jo * 128 + j] = A[i, jo * 128 + j]

A tile keeps in L1 what will be used again. Where every access moves further in the inner loop than in the outer one,
nothing that the whole inner loop reads is used again in the next tile; and where one iteration of the inner loop, for
all tiles, fits into L1, rows that overlap (a stencil's) stay there as well. Then tiles only break up the streams that
the hardware prefetches, at every row. C compilers interchange such loops too.

No cell belongs to two iterations of the loop that moves, so every cell sees its updates in the same order.

Needs: no blocks.  Leaves: the same loops.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import For, ForKind, IntImm, PrimFunc, Stmt, deep, uses_var
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.cpu_of import cpu_of
from loopwright.transform.parts.memory_strides import stride_of
from loopwright.transform.parts.plain_nest import Nest, is_parallelizable, read_nest
from loopwright.transform.parts.statements import StmtRewriter


class _InterchangeLoops(StmtRewriter):
    def __init__(self, l1_bytes: int) -> None:
        self.l1_bytes = l1_bytes
        self.facts = Analyzer()

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        inner = loop.body
        if not (_is_free(loop) and isinstance(inner, For) and _is_free(inner) and isinstance(inner.body, For)):
            return loop
        if any(uses_var(part, lambda var: var is loop.loop_var) for part in (inner.min, inner.extent)):
            return loop
        nest = read_nest(inner)
        if nest is None or not self._breaks_streams(loop, inner, nest):
            return loop
        if not (self._fits(loop, inner, nest) and is_parallelizable(nest, loop.loop_var, self.facts)):
            return loop
        return inner.with_(body=self.visit_For(loop.with_(body=inner.body)))

    def _breaks_streams(self, loop: For, inner: For, nest: Nest) -> bool:
        """Whether every access moves, and moves further in the inner loop."""
        for access in nest.accesses:
            near = stride_of(access, loop.loop_var, self.facts)
            far = stride_of(access, inner.loop_var, self.facts)
            if not near or not far or abs(near) >= abs(far):
                return False
        return bool(nest.accesses)

    def _fits(self, loop: For, inner: For, nest: Nest) -> bool:
        """Whether what one iteration of the inner loop touches, over all of the outer one, stays in L1."""
        count = 1
        for part in (loop, *nest.loops):
            if part is inner:
                continue
            if not isinstance(part.extent, IntImm):
                return False
            count *= part.extent.value
        return count * sum(access.buffer.dtype.nbytes for access in nest.accesses) <= self.l1_bytes


def _is_free(loop: For) -> bool:
    return loop.kind is ForKind.SERIAL and not loop.annotations


@function_pass
@deep
def interchange_loops(func: PrimFunc) -> PrimFunc:
    """A loop over tiles of a row moves into the rows, where the tiles save nothing."""
    if func.attrs.get("tir.noalias", True) in (False, 0):
        return func  # two arguments may be one memory
    return func.with_(body=_InterchangeLoops(cpu_of(func).cache_sizes.l1d).visit(func.body))
