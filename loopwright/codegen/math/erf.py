"""erf: near zero an odd polynomial; beyond, float32 uses 1 - q(x)⁴ up to 4, where erf rounds to 1.

q, a polynomial for the fourth root of 1 - erf, needs half as many terms as one for erf itself, and no exponential;
float64 uses 1 - e^(-x²) Q(1 / (1 + x)) up to 6. tools/fit_polynomials.py has the fits (erf_near, erf_far).
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import (
    Body,
    at_most,
    copysign,
    fma,
    magnitude,
    polynomial,
    polynomial_by_pairs,
    select,
)
from loopwright.codegen.math.exp import Scale, exp_of_float64, scale_float64, scale_float64_avx512

_BOUNDARY: Final = 1.125
_NEAR: Final = (0.128379166, -0.376126021, 0.112832561, -0.0268392209, 0.00516025303, -0.000776573201, 7.06327482e-05)
_FAR: Final = (
    1.00549877,
    -0.308786809,
    -0.0634241179,
    -0.0504811294,
    0.0661228746,
    -0.0222137477,
    0.00323426211,
    -0.00017950144,
)
_TWO_BY_ROOT_PI_FLOAT64: Final = (1.1283791670955126, 1.533545961316588e-17)
_NEAR_FLOAT64: Final = (
    -0.37612638903183598,
    0.11283791670946212,
    -0.026866170643355565,
    0.0052239776077437489,
    -0.00085483259953024232,
    0.00012055295296112857,
    -1.4924741654078669e-05,
    1.6447458288467559e-06,
    -1.6208597463531619e-07,
    1.3720080819309359e-08,
    -7.7952389236962996e-10,
)
_FAR_FLOAT64: Final = (
    -5.7279156540758146e-06,
    0.56442944120911676,
    0.55959848119736444,
    0.33522514836322115,
    -0.69564586040775511,
    1.5674280706214976,
    -9.1067447600858475,
    26.734284608279918,
    -45.448633499800081,
    49.252073202642634,
    -34.165628158887785,
    14.001849857237161,
    -2.6003591255295682,
)


def erf_float32(x: ir.Expr) -> ir.Expr:
    """The error function: x + x P(x²) near zero, which keeps its sign."""
    body = Body()
    near = fma(x, polynomial(body.let("square", x * x), _NEAR), x)
    a = body.let("a", magnitude(x))
    root = body.let("root", polynomial(body.let("t", at_most(a, 4.0)), _FAR))
    square_root = body.let("square_root", root * root)
    far = copysign(fma(square_root, square_root * -1.0, 1.0), x)
    return body.result(select(a < _BOUNDARY, near, far))


def erf_float64(x: ir.Expr) -> ir.Expr:
    """The error function."""
    return _erf_float64(x, scale_float64)


def erf_float64_avx512(x: ir.Expr) -> ir.Expr:
    """The error function, the same bits with fewer instructions."""
    return _erf_float64(x, scale_float64_avx512)


def _erf_float64(x: ir.Expr, scale_by: Scale) -> ir.Expr:
    body = Body()
    a = body.let("a", at_most(magnitude(x), 6.0))
    square = body.let("square", a * a)
    tail = fma(square * a, polynomial(square, _NEAR_FLOAT64), a * _TWO_BY_ROOT_PI_FLOAT64[1])
    near = fma(a, _TWO_BY_ROOT_PI_FLOAT64[0], tail)
    u = body.let("u", 1.0 / (a + 1.0))
    far = 1.0 - exp_of_float64(body, square * -1.0, scale_by) * polynomial_by_pairs(body, u, _FAR_FLOAT64)
    return body.result(copysign(select(a < 1.0, near, far), x))
