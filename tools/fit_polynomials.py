"""Fit the polynomials of loopwright/codegen/math: `python tools/fit_polynomials.py [NAME ...]` prints coefficients.

Needs mpmath. A fit minimises the greatest weighted error max |w(t) (g(t) - P(t))| (Remez's exchange on a dense grid).
Leading terms that must be exact are not fitted, but subtracted first, so rounding the other coefficients costs little.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpmath import (
    acos,
    asin,
    atan,
    cos,
    erf,
    erfc,
    exp,
    expm1,
    inf,
    log,
    log1p,
    lu_solve,
    matrix,
    mp,
    mpf,
    pi,
    sin,
    sqrt,
)

mp.dps = 45

Function = Callable[[mpf], mpf]


@dataclass
class Fit:
    """P(t) ≈ goal(t) on [low, high], its error counted by `weight`."""

    name: str
    goal: Function
    weight: Function
    low: mpf
    high: mpf
    degree: int
    dtype: str = "float32"
    stepwise: bool = False  # round one coefficient after the other, and let the higher ones make up for it


def grid(low: mpf, high: mpf, count: int) -> list[mpf]:
    """Points that are denser towards the ends, and miss 0."""
    return [(low + high) / 2 - (high - low) / 2 * cos(pi * (k + mpf("0.5")) / count) for k in range(count)]


def remez(points: list[mpf], goal: list[mpf], weight: list[mpf], degree: int) -> tuple[list[mpf], mpf]:
    """The coefficients, lowest first, of the best polynomial of that degree, and its greatest weighted error."""
    size = degree + 2
    chosen = [round((len(points) - 1) * k / (size - 1)) for k in range(size)]
    best: tuple[list[mpf], mpf] = ([], inf)
    for _ in range(40):
        system, right = matrix(size, size), matrix(size, 1)
        for row, at in enumerate(chosen):
            for power in range(degree + 1):
                system[row, power] = points[at] ** power
            system[row, size - 1] = (-1) ** row / weight[at]
            right[row] = goal[at]
        solution = lu_solve(system, right)
        coefficients = [solution[k] for k in range(degree + 1)]
        errors = [w * (horner(coefficients, t) - g) for t, g, w in zip(points, goal, weight)]
        worst = max(abs(e) for e in errors)
        if worst < best[1]:
            best = coefficients, worst
        peaks = _peaks(errors, size)
        if len(peaks) < size or peaks == chosen:
            break
        chosen = peaks
    return best


def _peaks(errors: list[mpf], count: int) -> list[int]:
    """Where the error is greatest between its changes of sign; `count` of them, the lowest dropped from the ends."""
    peaks: list[int] = []
    for k, error in enumerate(errors):
        if not peaks or (error > 0) != (errors[peaks[-1]] > 0):
            peaks.append(k)
        elif abs(error) > abs(errors[peaks[-1]]):
            peaks[-1] = k
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def horner(coefficients: list[mpf], t: mpf) -> mpf:
    """The polynomial at `t`."""
    value = mpf(0)
    for coefficient in reversed(coefficients):
        value = value * t + coefficient
    return value


def fit(what: Fit) -> tuple[list[float], mpf]:
    """The rounded coefficients, lowest first, and their greatest weighted error."""
    points = grid(what.low, what.high, 40 * (what.degree + 2))
    goal, weight = [what.goal(t) for t in points], [abs(what.weight(t)) for t in points]
    number = np.dtype(what.dtype).type
    rounded: list[float] = []
    if what.stepwise:
        for step in range(what.degree + 1):
            lower = [mpf(c) for c in rounded]
            rest = [(g - horner(lower, t)) / t**step for t, g in zip(points, goal)]
            heavier = [w * abs(t) ** step for t, w in zip(points, weight)]
            coefficients, _ = remez(points, rest, heavier, what.degree - step)
            rounded.append(float(number(float(coefficients[0]))))
    else:
        coefficients, _ = remez(points, goal, weight, what.degree)
        rounded = [float(number(float(c))) for c in coefficients]
    exact = [mpf(c) for c in rounded]
    return rounded, max(w * abs(horner(exact, t) - g) for t, g, w in zip(points, goal, weight))


HALF_LN2 = log(2) / 2 * mpf("1.002")
LOG_LOW, LOG_HIGH = sqrt(mpf("0.5")) * mpf("0.997") - 1, sqrt(mpf(2)) * mpf("1.003") - 1
QUARTER = pi / 4 * mpf("1.01")
TINY = mpf("1e-12")


def root(g: Function) -> Function:
    """g as a function of t = x²."""
    return lambda t: g(sqrt(t))


def _fits() -> list[Fit]:
    def exp_tail(r: mpf) -> mpf:
        return (expm1(r) - r) / r**2

    def half_expm1_tail(r: mpf) -> mpf:  # (e^(2r) - 1) / 2 = r + r² (1 + r P(r))
        return ((expm1(2 * r) / 2 - r) / r**2 - 1) / r

    def log_tail(f: mpf) -> mpf:
        return (log1p(f) - f + f**2 / 2) / f**3

    def atanh_tail(t: mpf) -> mpf:  # log((1 + s) / (1 - s)) = 2s + s t Q(t), t = s²
        s = sqrt(t)
        return (log((1 + s) / (1 - s)) - 2 * s) / (s * t)

    def twelfth_tail(t: mpf) -> mpf:  # log((1 + u/2) / (1 - u/2)) = u + u t (1/12 + t Q(t)), t = u²
        u = sqrt(t)
        return ((log((1 + u / 2) / (1 - u / 2)) - u) / (u * t) - mpf(1) / 12) / t

    def sin_tail(x: mpf) -> mpf:
        return (sin(x) / x - 1) / x**2

    def cos_tail(x: mpf) -> mpf:
        return (cos(x) - 1 + x**2 / 2) / x**4

    def asin_tail(x: mpf) -> mpf:
        return (asin(x) / x - 1) / x**2

    def atan_tail(x: mpf) -> mpf:
        return (atan(x) / x - 1) / x**2

    def erf_tail(x: mpf) -> mpf:
        return (erf(x) / x - 2 / sqrt(pi)) / x**2

    def scaled_erfc(u: mpf) -> mpf:  # e^(x²) (1 - erf x) with u = 1 / (1 + x)
        x = 1 / u - 1
        return erfc(x) * exp(x**2)

    def erfc_scale(u: mpf) -> mpf:
        return exp(-((1 / u - 1) ** 2))

    def fourth_root(x: mpf) -> mpf:  # of 1 - erf x
        return sqrt(sqrt(erfc(x)))

    s_high = (LOG_HIGH / (2 + LOG_HIGH)) ** 2 * mpf("1.01")
    boundary = mpf("1.125")
    return [
        Fit("exp", exp_tail, lambda r: r**2 / exp(r), -HALF_LN2, HALF_LN2, 4),
        Fit("expm1", exp_tail, lambda r: r**2 / expm1(r), -HALF_LN2, HALF_LN2, 5),
        Fit("exp2", lambda r: expm1(r * log(2)) / r, lambda r: r, -mpf("0.501"), mpf("0.501"), 5),
        Fit("tanh", half_expm1_tail, lambda r: 2 * r**3 / expm1(2 * r), -HALF_LN2 / 2, HALF_LN2 / 2, 3),
        Fit("log", log_tail, lambda f: f**3 / log1p(f), mpf("-0.2502"), mpf("0.5002"), 7),
        Fit("log2", log_tail, lambda f: f**3 / log1p(f), LOG_LOW, LOG_HIGH, 8),
        Fit("sin", root(sin_tail), root(lambda x: x**3 / sin(x)), TINY, QUARTER**2, 2),
        Fit("cos", root(cos_tail), root(lambda x: x**4 / cos(x)), TINY, QUARTER**2, 2),
        Fit("asin", root(asin_tail), root(lambda x: x**3 / asin(x)), TINY, mpf("0.2501"), 4),
        Fit("acos", lambda x: acos(x) / sqrt(1 - x), lambda x: sqrt(1 - x) / acos(x), TINY, 1 - TINY, 8, stepwise=True),
        Fit("atan", root(atan_tail), root(lambda x: x**3 / atan(x)), TINY, mpf(1), 8),
        Fit(
            "erf_near",
            root(lambda x: erf(x) / x - 1),
            root(lambda x: x / erf(x)),
            TINY,
            boundary**2,
            6,
            stepwise=True,
        ),
        Fit("erf_far", fourth_root, lambda x: 4 * fourth_root(x) ** 3, boundary, mpf(4), 7, stepwise=True),
        Fit("pow", twelfth_tail, lambda t: t**2, mpf("1e-4"), 4 * s_high, 2),
        Fit("pow_float64", twelfth_tail, lambda t: t**2, mpf("1e-4"), 4 * s_high, 8, "float64"),
        Fit("exp_float64", exp_tail, lambda r: r**2 / expm1(r), -HALF_LN2, HALF_LN2, 10, "float64"),
        Fit("erf_near_float64", root(erf_tail), root(lambda x: x**3 / erf(x)), TINY, mpf(1), 10, "float64"),
        Fit(
            "erf_far_float64",
            scaled_erfc,
            lambda u: exp(-((1 / u - 1) ** 2)),
            1 / mpf("6.95"),
            mpf("0.5"),
            12,
            "float64",
        ),
        Fit("sin_float64", root(sin_tail), root(lambda x: x**3 / sin(x)), TINY, QUARTER**2, 5, "float64"),
        Fit("cos_float64", root(cos_tail), root(lambda x: x**4 / cos(x)), TINY, QUARTER**2, 5, "float64"),
        Fit("asin_float64", root(asin_tail), root(lambda x: x**3 / asin(x)), TINY, mpf("0.2501"), 11, "float64"),
        Fit("atan_float64", root(atan_tail), root(lambda x: x**3 / atan(x)), TINY, mpf("0.17158"), 10, "float64"),
        Fit("log_float64", atanh_tail, lambda t: t, TINY, s_high, 6, "float64"),
    ]


def main(names: list[str]) -> None:
    """Print the named fits, or all."""
    for what in _fits():
        if not names or what.name in names:
            coefficients, error = fit(what)
            print(f"# {what.name}: greatest error 2^{float(log(error, 2)):.1f}")
            digits = 9 if what.dtype == "float32" else 17
            print(f"{what.name.upper()} = (" + ", ".join(f"{c:.{digits}g}" for c in coefficients) + ")")


if __name__ == "__main__":
    main(sys.argv[1:])
