"""prefetch_loops: the request to bring a region near, as one hint a cache line.

T.prefetch(A, [T.Range(0, 4), T.Range(0, 64)])   →   for i, j in T.grid(4, 4):
                                                         T.prefetch_line(T.address_of(A[i, j * 16]))
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import BufferLoad, Call, Evaluate, Expr, For, ForKind, Prefetch, Stmt, Var, const
from loopwright.ir.intrinsics import address_of, ceildiv
from loopwright.runtime.dtype import INT32
from loopwright.transform.parts.flat_index import add_index
from loopwright.transform.parts.known_ops import PREFETCH

_LINE_BYTES: Final = 64  # on every CPU we compile for


def prefetch_loops(node: Prefetch) -> Stmt:
    """A nest of loops over the region of `node`, one cache line an iteration."""
    step = max(1, _LINE_BYTES // node.buffer.dtype.nbytes)
    loops: list[tuple[Var, Expr]] = []
    indices: list[Expr] = []
    for axis, part in enumerate(node.bounds):
        is_last = axis == len(node.bounds) - 1
        var = Var(f"{'line' if is_last else 'row'}_{axis}", part.extent.dtype)
        loops.append((var, ceildiv(part.extent, step) if is_last else part.extent))
        indices.append(add_index(part.min, var * step if is_last else var))
    hint = (address_of(BufferLoad(node.buffer, tuple(indices))), const(0), const(3), const(1))
    result: Stmt = Evaluate(Call(INT32, PREFETCH, hint))
    for var, extent in reversed(loops):
        result = For(var, const(0, var.dtype), extent, ForKind.SERIAL, result)
    return result
