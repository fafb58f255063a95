"""Fixed-point products: `q_multiply_shift` and its per-axis form, with the exact intermediate of docs/semantics.md.

x * y * 2^(s - q), halves rounded up: the product of two 32-bit numbers has 64 bits, and needs more only where x is
shifted left first. So 64 bits are used where the shifts are known and fit, else 128.
"""

from __future__ import annotations

from loopwright import ir
from loopwright.codegen.llvm.control_flow import ControlFlow
from loopwright.runtime.dtype import DataType


def emit_multiply_shift(emitter: ControlFlow, call: ir.Call) -> str:
    """q_multiply_shift(x, y, q, s)."""
    x, y, q, s = call.args
    if isinstance(q, ir.IntImm) and isinstance(s, ir.IntImm) and s.value <= 0 and q.value - s.value <= 62:
        work = _Wide(emitter, call.dtype.lanes, 64)
        return work.product(x, y, None, str(q.value - s.value), call.dtype)
    work = _Wide(emitter, call.dtype.lanes, 128)
    shift, none = work.of(s), work.number(0)
    left = work.minmax("smax", shift, none)
    back = work.minmax("smax", work.do("sub", none, shift), none)
    return work.product(x, y, left, work.do("add", work.of(q), back), call.dtype)


def emit_multiply_shift_per_axis(emitter: ControlFlow, call: ir.Call) -> str:
    """q_multiply_shift_per_axis(x, y, left, right, q, whether to shift left, whether to shift right)."""
    x, y, left, right, q, shifts_left, shifts_right = call.args
    work = _Wide(emitter, call.dtype.lanes, 128)
    before = work.do("mul", work.of(left), work.truth(shifts_left))
    after = work.do("add", work.of(q), work.do("mul", work.of(right), work.truth(shifts_right)))
    return work.product(x, y, before, after, call.dtype)


class _Wide:
    """Arithmetic on signed integers of `bits` bits, lane by lane."""

    def __init__(self, emitter: ControlFlow, lanes: int, bits: int) -> None:
        self.emitter, self.lanes, self.bits = emitter, lanes, bits
        self.text = f"i{bits}" if lanes == 1 else f"<{lanes} x i{bits}>"

    def number(self, value: int) -> str:
        return str(value) if self.lanes == 1 else f"splat (i{self.bits} {value})"

    def do(self, operation: str, a: str, b: str) -> str:
        return self.emitter.b.value(f"{operation} {self.text} {a}, {b}")

    def of(self, expr: ir.Expr) -> str:
        """The value of `expr`, widened."""
        emitter = self.emitter
        value = emitter.value(expr)
        if expr.dtype.lanes < self.lanes:
            value = emitter.splat(value, expr.dtype, self.lanes)
        dtype = expr.dtype.element.with_lanes(self.lanes)
        source = f"i{dtype.bits}" if self.lanes == 1 else f"<{self.lanes} x i{dtype.bits}>"
        extend = "zext" if dtype.is_unsigned or dtype.is_bool else "sext"
        return emitter.b.value(f"{extend} {source} {value} to {self.text}")

    def truth(self, expr: ir.Expr) -> str:
        """1 where `expr` is not zero, else 0."""
        test = ir.NE(expr, ir.const(0, expr.dtype)) if not expr.dtype.is_bool else expr
        return self.of(test)

    def minmax(self, name: str, a: str, b: str) -> str:
        symbol = f"llvm.{name}." + (f"i{self.bits}" if self.lanes == 1 else f"v{self.lanes}i{self.bits}")
        self.emitter.module.declare(symbol, f"{self.text} @{symbol}({self.text}, {self.text})")
        return self.emitter.b.value(f"call {self.text} @{symbol}({self.text} {a}, {self.text} {b})")

    def product(self, x: ir.Expr, y: ir.Expr, left: str | None, right: str, dtype: DataType) -> str:
        """(x << left) * y >> right, halves rounded up, in the low bits of `dtype`."""
        wide = self.of(x)
        if left is not None:
            wide = self.do("shl", wide, left)
        exact = self.do("mul", wide, self.of(y))
        one, none = self.number(1), self.number(0)
        if left is None:
            locations = int(right)
            if locations > 0:
                exact = self.do("add", exact, self.number(1 << (locations - 1)))
                exact = self.do("ashr", exact, self.number(locations))
        else:
            # Past the last bit the rounded result is 0 however far it goes; a shift by 128 would be undefined.
            by = self.minmax("smin", right, self.number(self.bits - 1))
            before = self.minmax("smax", self.do("sub", by, one), none)
            half = self.do("and", self.do("shl", one, before), self._mask(by))
            exact = self.do("ashr", self.do("add", exact, half), self.minmax("smax", by, none))
        target = f"i{dtype.bits}" if self.lanes == 1 else f"<{self.lanes} x i{dtype.bits}>"
        return self.emitter.b.value(f"trunc {self.text} {exact} to {target}")

    def _mask(self, by: str) -> str:
        """All ones where `by` is positive, else 0: nothing is added where nothing is shifted out."""
        bit = "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"
        positive = self.emitter.b.value(f"icmp sgt {self.text} {by}, {self.number(0)}")
        return self.emitter.b.value(f"sext {bit} {positive} to {self.text}")
