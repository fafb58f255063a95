"""narrow_data_type: index arithmetic in no more bits than its values need.

    for i in range(T.int64(8)):                     →    for i in range(8):                 # i: int32
        B[i * T.int64(4) + T.int64(1)] = A[i]                B[i * 4 + 1] = A[i]

`narrow_data_type(32)` computes in 32 bits where every value on the way fits them, as loops and lets show; what may be
larger keeps its 64 bits. Values that are stored keep their type. Machines with 64-bit pointers compute addresses in 64
bits (`choose_index_width`), so the pipeline does not run this; it is for targets whose wide arithmetic is slow.

Needs: no blocks.  Leaves: index arithmetic of `bits` bits where that changes no value.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import (
    Add,
    Broadcast,
    Cast,
    CompareExpr,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    Let,
    LetStmt,
    Max,
    Min,
    Mod,
    Mul,
    PrimFunc,
    Ramp,
    Range,
    Select,
    Stmt,
    Sub,
    Var,
    cast,
    const,
    deep,
)
from loopwright.ir.pass_context import PassInfo
from loopwright.ir.passes import Pass, PrimFuncPass
from loopwright.runtime.dtype import DataType
from loopwright.transform.errors import BadIndexWidth
from loopwright.transform.parts.index_rewriter import IndexRewriter
from loopwright.transform.parts.purity import has_data

_ARITHMETIC = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)


class _NarrowDataType(IndexRewriter):
    def __init__(self, bits: int) -> None:
        super().__init__()
        self.dtype = DataType(f"int{bits}")
        self.bits = bits
        self.facts = Analyzer()

    def fits(self, expr: Expr) -> bool:
        low, high = self.facts.interval(expr)
        return -(1 << (self.bits - 1)) <= low and high < 1 << (self.bits - 1)

    def is_wide(self, dtype: DataType) -> bool:
        return dtype.kind == "int" and dtype.bits > self.bits

    # -- definitions

    def visit_For(self, loop: For) -> Stmt:
        old = loop.loop_var
        domain = Range.from_min_extent(loop.min, loop.extent)
        low, extent = self.narrow(loop.min), self.narrow(loop.extent)
        with self.facts.bound(old, domain):
            if not self.is_wide(old.dtype) or low is None or extent is None or not self.fits(old):
                return self.rebuild(loop)
            # One past the last value is computed as well.
            if not self.fits(loop.min + loop.extent):
                return self.rebuild(loop)
            var = self.successors[old] = Var(old.name, self.dtype)
            return loop.with_(loop_var=var, min=low, extent=extent, body=self.visit(loop.body))

    def let(self, let: Let | LetStmt) -> tuple[Var, Expr]:
        value = self.narrow(let.value) if self.is_wide(let.var.dtype) and not has_data(let.value) else None
        if value is None:
            return let.var, self.visit(let.value)
        var = self.successors[let.var] = Var(let.var.name, value.dtype)
        return var, value

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        with self.facts.bound(let.var, let.value, inline=False):
            return super().visit_LetStmt(let)

    def visit_Let(self, let: Let) -> Expr:
        with self.facts.bound(let.var, let.value, inline=False):
            return super().visit_Let(let)

    # -- uses

    def visit_Cast(self, expr: Cast) -> Expr:
        if expr.dtype.element == str(self.dtype) and self.is_wide(expr.value.dtype):
            narrow = self.narrow(expr.value)
            if narrow is not None:
                return narrow
        return self.rebuild(expr)

    def visit_CompareExpr(self, expr: CompareExpr) -> Expr:
        if self.is_wide(expr.a.dtype):
            a, b = self.narrow(expr.a), self.narrow(expr.b)
            if a is not None and b is not None:
                return expr.with_(a=a, b=b)
        return self.rebuild(expr)

    def index(self, expr: Expr) -> Expr:
        """`expr` as an index: in fewer bits, where that changes no value."""
        narrow = self.narrow(expr) if self.is_wide(expr.dtype) else None
        return self.visit(expr) if narrow is None else narrow

    def narrow(self, expr: Expr) -> Expr | None:
        """`expr` in fewer bits, or None where some value on the way needs more."""
        if not self.is_wide(expr.dtype):
            return self.visit(expr) if expr.dtype.element == str(self.dtype) else None
        if isinstance(expr, IntImm):
            return const(expr.value, self.dtype) if self.fits(expr) else None
        if isinstance(expr, Var):
            return self.successors.get(expr)
        if isinstance(expr, _ARITHMETIC):
            if expr.dtype.lanes > 1 or not self.fits(expr):
                return None
            a = self.narrow(expr.a)
            b = None if a is None else self.narrow(expr.b)
            return None if a is None or b is None else type(expr)._make(a, b, span=expr.span)
        if isinstance(expr, Ramp):
            base, stride = self.narrow(expr.base), self.narrow(expr.stride)
            last = expr.base + expr.stride * const(expr.lanes - 1, expr.stride.dtype)
            return None if base is None or stride is None or not self.fits(last) else Ramp(base, stride, expr.lanes)
        if isinstance(expr, Broadcast):
            value = self.narrow(expr.value)
            return None if value is None else Broadcast(value, expr.lanes)
        if isinstance(expr, Select) and expr.dtype.lanes == 1:
            one, other = self.narrow(expr.true_value), self.narrow(expr.false_value)
            if one is None or other is None:
                return None
            return expr.with_(condition=self.visit(expr.condition), true_value=one, false_value=other)
        if isinstance(expr, Cast) and expr.value.dtype.kind == "int" and expr.value.dtype.bits <= self.bits:
            inner: Expr = self.visit(expr.value)
            return cast(inner, self.dtype.with_lanes(inner.dtype.lanes))
        return None


def narrow_data_type(bits: int) -> Pass:
    """A pass that computes index arithmetic in `bits` bits where that changes no value."""
    if bits not in (8, 16, 32, 64):
        raise BadIndexWidth(bits)

    @deep
    def change(func: PrimFunc, mod: object, context: object) -> PrimFunc:
        return func.with_(body=_NarrowDataType(bits).visit(func.body))

    return PrimFuncPass(change, PassInfo(0, "narrow_data_type"))
