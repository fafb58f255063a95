"""Thread loops: loops bound to blocks and threads, for kernels that are written with the IR builder."""

from __future__ import annotations

from loopwright.ir import Expr, For, ForKind, IterType, IterVar, Var, const
from loopwright.ir.ir_builder import IRBuilder


def run_on(ib: IRBuilder, tag: str, extent: Expr | int) -> Var:
    """The rest of the scope runs on so many blocks or threads; the number of each of them."""
    size = const(extent) if isinstance(extent, int) else extent
    var = Var(tag.replace("Idx.", "_"), size.dtype)
    axis = IterVar(None, Var(tag, size.dtype), IterType.ThreadIndex, tag)
    zero = const(0, size.dtype)
    ib.emit(lambda body: For(var, zero, size, ForKind.THREAD_BINDING, body, thread_binding=axis))
    return var
