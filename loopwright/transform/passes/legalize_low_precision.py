"""legalize_low_precision: arithmetic on 16- and 8-bit floats is computed in float32 and rounded back.

    C[i] = A[i] * B[i]      →    C[i] = T.Cast("float16", T.Cast("float32", A[i]) * T.Cast("float32", B[i]))

Every operation rounds to its type, so results do not depend on how expressions are grouped into instructions. For
+ - * / and sqrt, computing in float32 and rounding once more gives exactly the rounded result (float32 carries more
than twice the digits of float16, plus two), so a machine with native float16 arithmetic may use it and agree with one
without; math functions have no such guarantee and always go through float32. Loads, stores, selections and casts to
and from float32 stay: they are moves, and code generation knows how to convert. Casts between a small type and any
other type go by float32.

Needs: nothing.  Leaves: no arithmetic, comparison or math call on bfloat16 and float8; on float16 only what the machine
does natively.
"""

from __future__ import annotations

from typing import Final

from loopwright.codegen.small_floats import is_small_float
from loopwright.ir import (
    Add,
    BinaryExpr,
    Call,
    Cast,
    CompareExpr,
    Div,
    Expr,
    Max,
    Min,
    Mul,
    Op,
    PrimFunc,
    Rewriter,
    Sub,
    cast,
    deep,
)
from loopwright.ir.intrinsics import BINARY_FLOAT, PREDICATES, ROUNDING, UNARY_FLOAT
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import FLOAT32
from loopwright.target import CpuDescription
from loopwright.transform.parts.cpu_of import cpu_of

# nextafter steps by the type's own spacing, so it is not a float32 computation.
_COMPUTED: Final = frozenset(
    Op.get(f"tir.{name}")
    for name in (*UNARY_FLOAT, *ROUNDING, *BINARY_FLOAT, *PREDICATES, "abs", "fma", "ldexp")
    if name != "nextafter"
)
_NATIVE: Final = (Add, Sub, Mul, Div, Min, Max, CompareExpr)


class _Legalize(Rewriter):
    def __init__(self, cpu: CpuDescription) -> None:
        self.native = frozenset(["float16"]) if cpu.has_native_f16 else frozenset[str]()

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Expr:
        dtype = expr.a.dtype
        if not is_small_float(dtype) or (str(dtype.element) in self.native and isinstance(expr, _NATIVE)):
            return self.rebuild(expr)
        wide = FLOAT32.with_lanes(dtype.lanes)
        a, b = cast(self.visit(expr.a), wide), cast(self.visit(expr.b), wide)
        result = type(expr)._make(a, b, span=expr.span)
        return result if isinstance(expr, CompareExpr) else Cast(dtype, result)

    def visit_Call(self, call: Call) -> Expr:
        if call.op not in _COMPUTED or not is_small_float(call.args[0].dtype):
            return self.rebuild(call)
        wide = FLOAT32.with_lanes(call.args[0].dtype.lanes)
        args = []
        for arg in call.args:
            new = self.visit(arg)
            args.append(cast(new, wide) if is_small_float(new.dtype) else new)
        if not is_small_float(call.dtype):  # isnan and its kind
            return Call._make(call.dtype, call.op, tuple(args), span=call.span)
        return Cast(call.dtype, Call._make(wide, call.op, tuple(args), span=call.span))

    def visit_Cast(self, node: Cast) -> Expr:
        source, target = node.value.dtype, node.dtype
        if source is target:
            return self.visit(node.value)
        if FLOAT32 in (source.element, target.element) or not (is_small_float(source) or is_small_float(target)):
            return self.rebuild(node)
        return Cast._make(target, cast(self.visit(node.value), FLOAT32.with_lanes(target.lanes)), span=node.span)


@function_pass
@deep
def legalize_low_precision(func: PrimFunc) -> PrimFunc:
    """Arithmetic on 16- and 8-bit floats is computed in float32 and rounded back."""
    return func.with_(body=_Legalize(cpu_of(func)).visit(func.body))
