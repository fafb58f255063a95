"""erf: for |x| < 1 an odd polynomial, x (2/√π + x² P(x²)).

Beyond, float32 uses a polynomial around 2.4375 up to 4, where erf rounds to 1; float64 uses 1 - e^(-x²) Q(1 / (1 + x))
up to 6. tools/fit_polynomials.py has the fits (erf_near, erf_far).
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.math.body import Body, at_most, copysign, fma, magnitude, polynomial, select
from loopwright.codegen.math.exp import exp_of_float64

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
    """The error function."""
    body = Body()
    a = body.let("a", magnitude(x))
    square = body.let("square", a * a)
    tail = fma(square * a, polynomial(square, _NEAR), a * _TWO_BY_ROOT_PI[1])
    near = fma(a, _TWO_BY_ROOT_PI[0], tail)
    t = body.let("t", at_most(a, 4.0) - _MIDDLE)
    return body.result(copysign(select(a < 1.0, near, polynomial(t, _FAR)), x))


def erf_float64(x: ir.Expr) -> ir.Expr:
    """The error function."""
    body = Body()
    a = body.let("a", at_most(magnitude(x), 6.0))
    square = body.let("square", a * a)
    tail = fma(square * a, polynomial(square, _NEAR_FLOAT64), a * _TWO_BY_ROOT_PI_FLOAT64[1])
    near = fma(a, _TWO_BY_ROOT_PI_FLOAT64[0], tail)
    u = body.let("u", 1.0 / (a + 1.0))
    far = 1.0 - exp_of_float64(body, square * -1.0) * polynomial(u, _FAR_FLOAT64)
    return body.result(copysign(select(a < 1.0, near, far), x))
