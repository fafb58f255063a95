"""choose_index_width: indices are computed in the width of a pointer, which is 64 bits on most machines.

    for i in range(n):                    →    for i in range(T.int64(0), T.Cast("int64", n)):      # i: int64
        B[i * 4] = A[i] + i                        B[i * T.int64(4)] = A[i] + T.Cast("int32", i)

An address has 64 bits, so a 32-bit index would be extended in the inner loop, and the extension keeps code generation
from seeing that neighbours are neighbours. Values that are stored keep their type: only loop variables, indices and
comparisons between them change.

Index arithmetic (on loop variables, parameters and literals) is exact, whatever its type. Computed in 64 bits it is;
where its low 32 bits are all that counts, in a value that is stored or meets data, sums and products stay in 32 bits,
and so does what cannot leave them, as intervals show. Where loaded data takes part, it is computed in its own width and
then converted, so it wraps as the program's does.

A thread of a GPU computes 64-bit integers in several instructions, and its registers are few: there only what may leave
32 bits is computed in 64. On a machine with 32-bit pointers, too, and indices are narrowed: see `narrow_indices.py`.

Needs: loops from 0, flat buffers.  Leaves: buffer indices of the width of a pointer, and on 64-bit machines loop
variables too; no 32-bit index arithmetic that differs from exact arithmetic in more than what its low bits are.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from loopwright.arith.index_arithmetic import EXACT_NODES, IndexArithmetic
from loopwright.ir import (
    Add,
    Allocate,
    AttrStmt,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    CompareExpr,
    Div,
    Expr,
    For,
    IntImm,
    IterVar,
    Let,
    LetStmt,
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
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import INT32, INT64
from loopwright.transform.parts.cpu_of import cpu_of, is_gpu, target_of
from loopwright.transform.parts.index_rewriter import IndexRewriter, inside
from loopwright.transform.parts.known_ops import IF_THEN_ELSE, IN_BOUNDS
from loopwright.transform.parts.narrow_indices import narrow_indices

# Calls whose arguments at these places are sizes or offsets: index arithmetic, not values.
_INDICES: Final[dict[str, Container[int]]] = {
    "tir.tvm_stack_make_shape": range(1 << 16),
    "tir.tvm_stack_make_array": (5,),
    "tir.tvm_access_ptr": (2, 3),
}


class _ChooseIndexWidth(IndexRewriter):
    """The successors of 32-bit variables have 64 bits; of all (`always`), or of those that may leave 32."""

    def __init__(self, always: bool, is_last: bool = True) -> None:
        super().__init__()
        self.always, self.is_last = always, is_last  # the last writes checks of indices out
        self.numbers = IndexArithmetic()
        self.known: dict[Expr, Expr] = {}  # what was widened

    # -- values that keep their type

    def visit_CompareExpr(self, expr: CompareExpr) -> Expr:
        if expr.a.dtype.element is INT32 and self.numbers.is_index(expr.a) and self.numbers.is_index(expr.b):
            if self.always or not (self.numbers.fits(expr.a) and self.numbers.fits(expr.b)):
                return expr.with_(a=self.widen(expr.a), b=self.widen(expr.b))
        return self.rebuild(expr)

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Expr:
        # The low bits of a sum or product are those of its operands' low bits; all else needs the numbers themselves.
        if expr.dtype.element is INT32 and not isinstance(expr, (Add, Sub, Mul)) and self.numbers.is_index(expr):
            if not self._is_narrow(expr):
                return cast(self.widen(expr), INT32.with_lanes(expr.dtype.lanes))
        return self.rebuild(expr)

    def _is_narrow(self, expr: BinaryExpr) -> bool:
        """Whether 32 bits hold the operands and the result."""
        return all([self.numbers.fits(part) for part in (expr.a, expr.b, expr)])

    def visit_Cast(self, expr: Cast) -> Expr:
        value = expr.value
        if expr.dtype.element is INT64 and value.dtype.element is INT32 and self.numbers.is_index(value):
            if self.always and not isinstance(value, Var) and self.numbers.fits(value):
                return self.widen(value)
            if isinstance(value, Var) and value in self.successors and self.numbers.fits(value):
                return self.successors[value]
        return self.rebuild(expr)

    def visit_Call(self, call: Call) -> Expr:
        if call.op is IN_BOUNDS:
            parts = tuple([self.index(argument) for argument in call.args])
            if not self.is_last:
                return call.with_(args=parts)
            return inside(*(parts if self.always else [cast(part, INT64) for part in parts]))
        locations = _INDICES.get(getattr(call.op, "name", ""))
        if locations is None:
            return self.rebuild(call)
        arguments = [
            self.index(argument) if index in locations and argument.dtype.is_int else self.visit(argument)
            for index, argument in enumerate(call.args)
        ]
        return call.with_(args=tuple(arguments))

    # -- definitions

    def visit_For(self, loop: For) -> Stmt:
        extent, old = self.index(loop.extent), loop.loop_var
        low = self.index(loop.min)
        self._redefine(old)
        self.numbers.loop(old, loop.min, loop.extent)
        if old.dtype is INT64 or not (self.always or not self.numbers.fits(old)):
            return loop.with_(min=low, extent=extent, body=self.visit(loop.body))
        var = self.successors[old] = Var(old.name, INT64)
        low, extent = cast(low, INT64), cast(extent, INT64)
        return loop.with_(loop_var=var, min=low, extent=extent, body=self.visit(loop.body))

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if isinstance(node.node, IterVar) and node.attr_key == "thread_extent":
            zero = const(0, node.node.var.dtype)
            self.numbers.loop(node.node.var, zero, node.value)
            value = self.visit(node.value)
            axis = node.node.with_(dom=Range.from_min_extent(zero, cast(value, zero.dtype)))
            return node.with_(node=axis, value=value, body=self.visit(node.body))
        return self.rebuild(node)

    def _redefine(self, var: Var) -> None:
        """`var` is bound anew: what was widened with its old meaning is no longer so."""
        if var in self.successors:
            del self.successors[var]
            self.known.clear()
            self.buffers.clear()

    def let(self, let: Let | LetStmt) -> tuple[Var, Expr]:
        self._redefine(let.var)
        self.numbers.let(let.var, let.value)
        if let.var.dtype.element is INT32 and self.numbers.is_index(let.value):
            if self.always or not self.numbers.fits(let.value):
                wide = self.widen(let.value)
                var = self.successors[let.var] = Var(let.var.name, wide.dtype)
                return var, wide
        return let.var, self.visit(let.value)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        return node.with_(extents=rewrite_tuple(node.extents, self._extent), body=self.visit(node.body))

    def _extent(self, extent: Expr) -> Expr:
        return extent if isinstance(extent, IntImm) else self.index(extent)

    # -- indices

    def index(self, expr: Expr) -> Expr:
        """`expr` as an index: 64 bits, through and through where no data takes part."""
        element = expr.dtype.element
        if self.numbers.is_index(expr):
            if self.always or element is INT64 or not self.numbers.fits(expr):
                return self.widen(expr)
            narrow: Expr = self.visit(expr)
            return narrow
        narrow = self.visit(expr)
        if not self.always:
            return narrow
        if isinstance(narrow, Ramp):
            return Ramp(cast(narrow.base, INT64), cast(narrow.stride, INT64), narrow.lanes)
        return cast(narrow, INT64.with_lanes(narrow.dtype.lanes))

    def widen(self, expr: Expr) -> Expr:
        """Index arithmetic computed in 64 bits."""
        result = self.known.get(expr)
        if result is None:
            result = self.known[expr] = self._widen(expr)
        return result

    def _widen(self, expr: Expr) -> Expr:
        element, wide = expr.dtype.element, INT64.with_lanes(expr.dtype.lanes)
        if isinstance(expr, IntImm):
            return expr if element is INT64 else const(expr.value, INT64)
        if isinstance(expr, Var):
            result = self.successors.get(expr)
            return result if result is not None else cast(expr, wide)
        if isinstance(expr, EXACT_NODES):
            if element is INT32 and isinstance(expr, (Div, Mod)) and self._is_narrow(expr):
                return cast(self.rebuild(expr), wide)  # which is the cheaper division
            a, b = self.widen(expr.a), self.widen(expr.b)
            return expr if a is expr.a and b is expr.b else type(expr)._make(a, b, span=expr.span)
        if isinstance(expr, Ramp):
            return expr.with_(base=self.widen(expr.base), stride=self.widen(expr.stride))
        if isinstance(expr, Broadcast):
            return expr.with_(value=self.widen(expr.value))
        if isinstance(expr, Select):
            chosen, other = self.widen(expr.true_value), self.widen(expr.false_value)
            return expr.with_(condition=self.visit(expr.condition), true_value=chosen, false_value=other)
        if isinstance(expr, Call) and expr.op is IF_THEN_ELSE and not self.numbers.fits(expr):
            condition, chosen, other = expr.args
            return Call(wide, expr.op, (self.visit(condition), self.widen(chosen), self.widen(other)))
        if isinstance(expr, Let):
            var, value = self.let(expr)
            return Let(var, value, self.widen(expr.body))
        return cast(self.visit(expr), wide)  # a value of its type: a conversion, a call


@function_pass
@deep
def choose_index_width(func: PrimFunc) -> PrimFunc:
    """Indices are computed in the width of a pointer."""
    if is_gpu(target_of(func)):
        return func.with_(body=_ChooseIndexWidth(always=False).visit(func.body))
    if cpu_of(func).pointer_bits < 64:
        return func.with_(body=narrow_indices(_ChooseIndexWidth(always=False, is_last=False).visit(func.body)))
    return func.with_(body=_ChooseIndexWidth(always=True).visit(func.body))
