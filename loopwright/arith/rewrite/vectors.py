"""Vectors whose lanes are equal (broadcast) or evenly spaced (ramp): an operation is done once for all lanes.

    ramp(x, 1, 4) + ramp(y, 2, 4)       →   ramp(x + y, 3, 4)
    ramp(x * 8 + 1, 1, 4) // 8          →   broadcast(x, 4)         every lane has the same quotient
    ramp(x * 4, 1, 4) % 64              →   ramp(x * 4 % 64, 1, 4)  no lane wraps around
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from loopwright.arith.data import is_data
from loopwright.arith.engine import Engine
from loopwright.arith.linear import imm
from loopwright.arith.modular import expr_modular
from loopwright.ir import GE, Add, Broadcast, Div, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Mul, Ramp, Sub


def rewrite_vector(s: Engine, e: Any, proves: Callable[[Expr], bool]) -> Expr | None:
    """What a binary operation on two vectors may be replaced by; its operands are simple."""
    cls, a, b = type(e), e.a, e.b
    if type(a) is Broadcast and type(b) is Broadcast:
        return Broadcast(cls(a.value, b.value), a.lanes)
    if type(a) is cls and cls in (Min, Max) and type(a.b) is Broadcast and type(b) is Broadcast:
        return cls(a.a, Broadcast(cls(a.b.value, b.value), b.lanes))
    if a.dtype.element not in ("int32", "int64"):
        return None
    if cls in (Add, Sub) and _is_number(b, 0):
        return a
    if cls is Add and _is_number(a, 0):
        return b
    if cls in (Add, Sub):
        return _sum(cls, a, b)
    if cls is Mul and type(a) is Broadcast:
        a, b = b, a
    if type(a) is not Ramp or type(b) is not Broadcast:
        return None
    if cls is Mul:
        return Ramp(Mul(a.base, b.value), Mul(a.stride, b.value), a.lanes)
    if cls in (FloorDiv, FloorMod, Div, Mod) and not is_data(s, a.base):
        return _divide(s, e, a, b, proves)
    return None


def _sum(cls: Any, a: Any, b: Any) -> Expr | None:
    if type(a) is Ramp and type(b) is Ramp:
        return Ramp(cls(a.base, b.base), cls(a.stride, b.stride), a.lanes)
    if type(a) is Ramp and type(b) is Broadcast:
        return Ramp(cls(a.base, b.value), a.stride, a.lanes)
    if type(a) is Broadcast and type(b) is Ramp:
        stride = b.stride if cls is Add else Sub(imm(0, b.stride.dtype), b.stride)
        return Ramp(cls(a.value, b.base), stride, b.lanes)
    return None


def _divide(s: Engine, e: Any, ramp: Any, divisor: Any, proves: Callable[[Expr], bool]) -> Expr | None:
    cls, base, lanes, d = type(e), ramp.base, ramp.lanes, divisor.value
    if type(ramp.stride) is not IntImm or type(d) is not IntImm or d.value <= 0:
        return None
    stride, c = ramp.stride.value, d.value
    last = stride * (int(lanes) - 1)
    if cls in (Div, Mod) and not (proves(GE(base, imm(max(0, -last), base.dtype)))):
        return None  # rounding towards zero is rounding down only where no lane is negative
    wants_quotient = cls in (FloorDiv, Div)
    part = (Div if cls in (Div, Mod) else FloorDiv) if wants_quotient else (Mod if cls in (Div, Mod) else FloorMod)
    if stride % c == 0:
        if wants_quotient:
            return Ramp(part(base, d), imm(stride // c, d.dtype), lanes)
        return Broadcast(part(base, d), lanes)
    coeff, offset = expr_modular(s, base)
    block = gcd(coeff, c)
    offset %= block
    if offset + min(last, 0) >= 0 and offset + max(last, 0) < block:  # all lanes lie between two multiples of `block`
        return Broadcast(part(base, d), lanes) if wants_quotient else Ramp(part(base, d), ramp.stride, lanes)
    if not wants_quotient and block == c and type(base) is not IntImm:
        return cls(Ramp(imm(offset, base.dtype), ramp.stride, lanes), divisor)
    return None


def _is_number(e: Any, value: int) -> bool:
    return type(e) is Broadcast and type(e.value) is IntImm and bool(e.value.value == value)
