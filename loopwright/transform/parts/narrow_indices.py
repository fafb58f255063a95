"""narrow_indices: on machines with 32-bit pointers, indices are computed in 32 bits.

    for i in range(T.int64(8)):           →    for i in range(8):                            # i: int32
        B[i * T.int64(4)] = A[n + i]               B[i * 4] = A[T.Cast("int32", n) + i]      # n: int64, an argument

No buffer there has more than 2^31 elements, so an index that is right fits 32 bits. The low 32 bits of a sum, a
difference or a product depend on the low 32 bits of its operands alone: those are narrowed through and through.
Quotients, remainders and comparisons do depend on the rest: they stay as they are, and only their result is narrowed. A
loop keeps its 64-bit variable unless its bounds are literals that fit.

Used by `choose_index_width`.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import Add, Broadcast, Call, Cast, Expr, For, IntImm, Mul, Ramp, Stmt, Sub, Var, cast, const
from loopwright.runtime.dtype import INT32, INT64
from loopwright.transform.parts.index_rewriter import IndexRewriter, inside
from loopwright.transform.parts.known_ops import IN_BOUNDS

_LIMIT: Final = 1 << 31


class _NarrowIndices(IndexRewriter):
    """Gives 64-bit loop variables successors of 32 bits."""

    def visit_For(self, loop: For) -> Stmt:
        old, low, extent = loop.loop_var, loop.min, loop.extent
        fits = isinstance(low, IntImm) and isinstance(extent, IntImm) and 0 <= low.value + extent.value < _LIMIT
        if old.dtype is not INT64 or not fits:
            self.successors.pop(old, None)
            return self.rebuild(loop)
        assert isinstance(low, IntImm) and isinstance(extent, IntImm)
        var = self.successors[old] = Var(old.name, INT32)
        return loop.with_(
            loop_var=var, min=const(low.value, INT32), extent=const(extent.value, INT32), body=self.visit(loop.body)
        )

    def visit_Call(self, call: Call) -> Expr:
        if call.op is not IN_BOUNDS:
            return self.rebuild(call)
        return inside(*[cast(self.visit(arg), INT64) for arg in call.args])  # all of it, not only the low bits

    def index(self, expr: Expr) -> Expr:
        """`expr` as an index: 32 bits."""
        if expr.dtype.element is INT64:
            return self.low(expr)
        visited: Expr = self.visit(expr)
        return visited if expr.dtype.element is INT32 else cast(visited, INT32.with_lanes(expr.dtype.lanes))

    def low(self, expr: Expr) -> Expr:
        """The low 32 bits of a 64-bit index."""
        if isinstance(expr, IntImm):
            return const((expr.value + _LIMIT) % (2 * _LIMIT) - _LIMIT, INT32)
        if isinstance(expr, Var):
            return self.successors[expr] if expr in self.successors else Cast(INT32, expr)
        if isinstance(expr, (Add, Sub, Mul)):
            return type(expr)._make(self.low(expr.a), self.low(expr.b), span=expr.span)
        if isinstance(expr, Ramp):
            return expr.with_(base=self.low(expr.base), stride=self.low(expr.stride))
        if isinstance(expr, Broadcast):
            return expr.with_(value=self.low(expr.value))
        if isinstance(expr, Cast) and expr.value.dtype.element is INT32:
            narrow: Expr = self.visit(expr.value)
            return narrow
        return Cast(INT32.with_lanes(expr.dtype.lanes), self.visit(expr))


def narrow_indices(body: Stmt) -> Stmt:
    """`body` with loop variables and buffer indices of 32 bits wherever that changes no value."""
    result: Stmt = _NarrowIndices().visit(body)
    return result
