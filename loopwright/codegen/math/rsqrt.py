"""rsqrt: one over the square root, two correctly rounded steps, together within 1.5 ulp of exact."""

from __future__ import annotations

from loopwright import ir
from loopwright.ir import intrinsics


def rsqrt(x: ir.Expr) -> ir.Expr:
    """1 / sqrt(x); infinity at +0 and -infinity at -0."""
    return 1.0 / intrinsics.sqrt(x)
