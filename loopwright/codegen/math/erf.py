"""erf: for |x| < 1 an odd polynomial, x (2/√π + x² P(x²)); from 1 to 4 a polynomial around 2.4375; 1 beyond.

tools/fit_polynomials.py has the fits (erf_near, erf_far).
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import Body, at_most, copysign, fma, magnitude, polynomial, select

_TWO_BY_ROOT_PI: Final = (1.12837923, -5.86353828e-08)  # the sum has twice the precision
_NEAR: Final = (-0.376126289, 0.112836175, -0.0268549155, 0.00519016339, -0.000802482769, 7.89872647e-05)
_MIDDLE: Final = 2.4375
_FAR: Final = (
    0.999433458,
    0.00296574715,
    -0.00722903199,
    0.0107587259,
    -0.0107022803,
    0.00720629608,
    -0.00300210691,
    0.000377219869,
    0.000415206916,
    -0.000301598135,
    7.14080015e-05,
    2.0545689e-05,
    -1.81471241e-05,
    2.5263696e-06,
    1.21505775e-06,
    -3.49168317e-07,
)


def erf_float32(x: ir.Expr) -> ir.Expr:
    """The error function."""
    body = Body()
    a = body.let("a", magnitude(x))
    square = body.let("square", a * a)
    tail = fma(square * a, polynomial(square, _NEAR), a * _TWO_BY_ROOT_PI[1])
    near = fma(a, _TWO_BY_ROOT_PI[0], tail)
    t = body.let("t", at_most(a, 4.0) - _MIDDLE)
    return body.result(copysign(select(a < 1.0, near, polynomial(t, _FAR)), x))
