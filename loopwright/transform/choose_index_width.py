"""choose_index_width: indices are computed in the width of a pointer, which is 64 bits on most machines.

    for i in range(n):                    →    for i in range(T.int64(0), T.Cast("int64", n)):      # i: int64
        B[i * 4] = A[i] + i                        B[i * T.int64(4)] = A[i] + T.Cast("int32", i)

An address has 64 bits, so a 32-bit index would be extended in the inner loop, and the extension keeps code generation
from seeing that neighbours are neighbours. Values that are stored keep their type: only loop variables, indices and
comparisons between them change.

Index arithmetic (on loop variables, parameters and literals) is widened on the understanding that it does not wrap
around; where intervals show that it does, and where loaded data takes part, it is computed in its own width and then
converted, so its value is exactly the program's.

On a machine with 32-bit pointers indices are narrowed instead: see `narrow_indices.py`.

Needs: loops from 0, flat buffers.  Leaves: buffer indices of the width of a pointer, and on 64-bit machines loop
variables too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from loopwright.ir import (
    Add,
    Allocate,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    CompareExpr,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    Let,
    LetStmt,
    Max,
    Min,
    Mul,
    PrimFunc,
    Ramp,
    Select,
    Stmt,
    Sub,
    Var,
    cast,
    const,
    deep,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import INT32, INT64
from loopwright.transform.cpu_of import cpu_of
from loopwright.transform.index_rewriter import IndexRewriter, inside
from loopwright.transform.known_ops import IN_BOUNDS
from loopwright.transform.narrow_indices import narrow_indices

Interval = tuple[int, int]
_ENDS: Final[dict[type, Callable[[int, int], int]]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    Min: min,
    Max: max,
}
_WIDENED: Final = (Add, Sub, Mul, Min, Max, FloorDiv, FloorMod)


class _ChooseIndexWidth(IndexRewriter):
    def __init__(self) -> None:
        super().__init__()  # the successors of 32-bit variables have 64 bits
        self.ranges: dict[Var, Interval] = {}
        self.known: dict[int, tuple[Expr, Expr | None, Interval | None]] = {}  # by identity; the node is kept alive

    # -- values that keep their type

    def visit_CompareExpr(self, expr: CompareExpr) -> Expr:
        if expr.a.dtype.element is INT32:
            a, b = self.widen(expr.a), self.widen(expr.b)
            if a is not None and b is not None:
                return expr.with_(a=a, b=b)
        return self.rebuild(expr)

    def visit_Cast(self, expr: Cast) -> Expr:
        wide = self.widen(expr.value) if expr.dtype.element is INT64 and expr.value.dtype.element is INT32 else None
        if wide is None or (isinstance(wide, Cast) and wide.value is expr.value):
            return self.rebuild(expr)
        return wide

    def visit_Call(self, call: Call) -> Expr:
        return inside(*[self.index(arg) for arg in call.args]) if call.op is IN_BOUNDS else self.rebuild(call)

    # -- definitions

    def visit_For(self, loop: For) -> Stmt:
        extent, old = self.index(loop.extent), loop.loop_var
        if old.dtype is INT64:
            return loop.with_(min=self.index(loop.min), extent=extent, body=self.visit(loop.body))
        if old in self.successors:
            self.known.clear()  # the variable of an earlier loop: what was known of it is no longer so
        self.ranges.pop(old, None)
        if isinstance(extent, IntImm):
            self.ranges[old] = (0, max(0, extent.value - 1))
        var = self.successors[old] = Var(old.name, INT64)
        return loop.with_(loop_var=var, min=self.index(loop.min), extent=extent, body=self.visit(loop.body))

    def let(self, let: Let | LetStmt) -> tuple[Var, Expr]:
        if let.var.dtype is INT32:
            wide = self.widen(let.value)
            # A value of data is best kept as it is: it may be used as data.
            if wide is not None:
                interval = self.interval(let.value)
                if interval is not None:
                    self.ranges[let.var] = interval
                var = self.successors[let.var] = Var(let.var.name, INT64)
                return var, wide
        return let.var, self.visit(let.value)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        return node.with_(extents=rewrite_tuple(node.extents, self._extent), body=self.visit(node.body))

    def _extent(self, extent: Expr) -> Expr:
        return extent if isinstance(extent, IntImm) else self.index(extent)

    # -- indices

    def index(self, expr: Expr) -> Expr:
        """`expr` as an index: 64 bits, through and through where that is the same value."""
        wide = self.widen(expr)
        if wide is not None:
            return wide
        narrow: Expr = self.visit(expr)
        if isinstance(narrow, Ramp):
            return Ramp(cast(narrow.base, INT64), cast(narrow.stride, INT64), narrow.lanes)
        return cast(narrow, INT64.with_lanes(narrow.dtype.lanes))

    def widen(self, expr: Expr) -> Expr | None:
        """`expr` computed in 64 bits, or None where data takes part or 32 bits would wrap around."""
        found = self.known.get(id(expr))
        if found is None:
            found = self.known[id(expr)] = (expr, self._widen(expr), None)
        return found[1]

    def _widen(self, expr: Expr) -> Expr | None:
        element = expr.dtype.element
        if isinstance(expr, IntImm):
            return expr if element is INT64 else const(expr.value, INT64) if element.is_int else None
        if element is INT32 and isinstance(expr, Var):
            wide = self.successors.get(expr)
            return wide if wide is not None else Cast(INT64.with_lanes(expr.dtype.lanes), expr)
        if element is not INT32 and element is not INT64:
            return None
        if isinstance(expr, _WIDENED):
            a = self.widen(expr.a)
            b = None if a is None else self.widen(expr.b)
            if a is None or b is None or (element is INT32 and self._wraps(expr)):
                return None
            return expr if a is expr.a and b is expr.b else type(expr)._make(a, b, span=expr.span)
        if isinstance(expr, Ramp):
            base, stride = self.widen(expr.base), self.widen(expr.stride)
            return None if base is None or stride is None else expr.with_(base=base, stride=stride)
        if isinstance(expr, Broadcast):
            value = self.widen(expr.value)
            return None if value is None else expr.with_(value=value)
        if isinstance(expr, Select):
            chosen, other = self.widen(expr.true_value), self.widen(expr.false_value)
            if chosen is None or other is None:
                return None
            return expr.with_(condition=self.visit(expr.condition), true_value=chosen, false_value=other)
        if element is INT32:
            return None
        visited: Expr = self.visit(expr)  # 64 bits already, but not so what it is computed from
        return visited

    def _wraps(self, expr: Expr) -> bool:
        """Whether intervals show that the 32-bit value differs from the true one for some iteration."""
        interval = self.interval(expr)
        return interval is not None and not (interval[0] >= -(1 << 31) and interval[1] < 1 << 31)

    def interval(self, expr: Expr) -> Interval | None:
        """The values a scalar index takes, computed without wrapping; None when a part is unbounded."""
        if isinstance(expr, IntImm):
            return expr.value, expr.value
        if isinstance(expr, Var):
            return self.ranges.get(expr)
        if not isinstance(expr, BinaryExpr):
            return None
        found = self.known.get(id(expr))
        if found is not None and found[2] is not None:
            return found[2]
        a = self.interval(expr.a)
        b = None if a is None else self.interval(expr.b)
        if a is None or b is None:
            return None
        interval = _combine(type(expr), a, b)
        if found is not None:
            self.known[id(expr)] = (found[0], found[1], interval)
        return interval


def _combine(node: type, a: Interval, b: Interval) -> Interval | None:
    if node in _ENDS:
        ends = [_ENDS[node](x, y) for x in a for y in b]
        return min(ends), max(ends)
    if node is FloorDiv and b[0] > 0:
        ends = [x // y for x in a for y in b]
        return min(ends), max(ends)
    if node is FloorMod and b[0] > 0:
        return 0, b[1] - 1
    return None


@function_pass
@deep
def choose_index_width(func: PrimFunc) -> PrimFunc:
    """Indices are computed in the width of a pointer."""
    if cpu_of(func).pointer_bits < 64:
        return func.with_(body=narrow_indices(func.body))
    return func.with_(body=_ChooseIndexWidth().visit(func.body))
