"""Functions of an element, and those of two that are functions in a library: powers, remainders, whole divisions.

Distribution: 2^11 to 2^20 elements (log-uniform; functions take some ns each; 2^14 to 2^22 of those that are one
instruction), ranks 1 to 4, last axis by `sizes.extent`. Three of five are functions of one element, drawn evenly,
float32 65 % and float64 35 %. Two of five are pow with a constant exponent (2, 3, 4, 0.5, -1, -0.5, 1.5, 2.2) or a
tensor of them, fmod, floor_mod and floor_divide, in float32, float64, int32, int64, int16 and uint8 where it has them;
the divisor is a tensor, a row or a number; one in ten of them is atan2 or hypot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench.bounds import unit, wide
from benchmarks.bench.case import Array, Bounded
from benchmarks.sweep.activations import exact_erf
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded, exactly
from benchmarks.sweep.sizes import Rng, pick, shape_of

ELEMENTS = (2**11, 2**20)


class Function(NamedTuple):
    """A function as each has it; None in place of a name it has not."""

    name: str  # in topi and torch
    onnx: str | None
    numpy: Any
    low: float
    high: float
    exact: Any = None  # where numpy's float64 is not it


FUNCTIONS = [
    Function("exp", "Exp", np.exp, -20, 20),
    Function("log", "Log", np.log, 1e-3, 100),
    Function("log2", None, np.log2, 1e-3, 100),
    Function("log10", None, np.log10, 1e-3, 100),
    Function("sin", "Sin", np.sin, -20, 20),
    Function("cos", "Cos", np.cos, -20, 20),
    Function("tan", "Tan", np.tan, -1.5, 1.5),
    Function("tanh", "Tanh", np.tanh, -6, 6),
    Function("sinh", "Sinh", np.sinh, -6, 6),
    Function("cosh", "Cosh", np.cosh, -6, 6),
    Function("asin", "Asin", np.arcsin, -1, 1),
    Function("acos", "Acos", np.arccos, -1, 1),
    Function("atan", "Atan", np.arctan, -20, 20),
    Function("erf", "Erf", None, -4, 4, exact_erf),
    Function("sqrt", "Sqrt", np.sqrt, 0, 100),
    Function("rsqrt", None, None, 1e-3, 100, lambda x: 1 / np.sqrt(x)),
    Function("floor", "Floor", np.floor, -100, 100),
    Function("ceil", "Ceil", np.ceil, -100, 100),
    Function("round", "Round", np.rint, -100, 100),
    Function("abs", "Abs", np.abs, -100, 100),
    Function("sign", "Sign", np.sign, -100, 100),
    Function("log1p", None, np.log1p, -0.5, 100),
    Function("exp2", None, np.exp2, -20, 20),
    Function("asinh", "Asinh", np.arcsinh, -20, 20),
    Function("atanh", "Atanh", np.arctanh, -0.95, 0.95),
]
EXACT = ("floor", "ceil", "round", "abs", "sign")
CHEAP = (*EXACT, "sqrt")


def draw(rng: Rng) -> Case:
    """A case."""
    if rng.random() < 0.6:
        return _function(rng)
    return pick(rng, (_power, _remainder, _angle), (45, 45, 10))(rng)


def _angle(rng: Rng) -> Case:
    """atan2 or hypot of two tensors."""
    name, dtype = pick(rng, ("atan2", "hypot")), pick(rng, ("float32", "float64"), (75, 25))
    shape = shape_of(rng, ELEMENTS, (1, 2, 3, 4))
    function = np.arctan2 if name == "atan2" else np.hypot

    def exact(x: Any) -> list[Bounded]:
        right = function(wide(x[0]), wide(x[1]))
        return [Bounded(right, np.abs(right) * unit(dtype) * (5 if dtype == "float32" else 12))]

    def of_two(x: Any, y: Any) -> Any:
        from loopwright import te, tir

        return te.compute(shape, lambda *at: getattr(tir, name)(x(*at), y(*at)), name=name)

    return Case(
        name,
        [Input(shape, dtype, -3, 3), Input(shape, dtype, -3, 3)],
        [Output(shape, dtype)],
        exact,
        kernel=of_two,
        numpy=lambda x, out: function(x[0], x[1], out=out[0]),
        torch=lambda t, x, out: getattr(t, name)(x[0], x[1], out=out[0]),
    )


def _function(rng: Rng) -> Case:
    made = pick(rng, FUNCTIONS)
    dtype = pick(rng, ("float32", "float64"), (65, 35))
    times = 8 if made.name in CHEAP else 1
    shape = shape_of(rng, (times * ELEMENTS[0], min(times, 4) * ELEMENTS[1]), (1, 2, 3, 4))
    function = made.exact or made.numpy

    def exact(x: Any) -> list[Bounded]:
        if made.name in EXACT:
            return [exactly(function(x[0]))]
        # Functions without a stated bound in float64 are the C library's; both it and numpy are within a few ulp.
        ulps = None if dtype == "float32" else 4.0
        return [Rounded.of(x[0]).monotone(made.name, function, ulps).bounded()]

    return Case(
        made.name,
        [Input(shape, dtype, made.low, made.high)],
        [Output(shape, dtype)],
        exact,
        kernel=lambda x: in_te(made.name, x),
        model=[Step(made.onnx, ["x0"], "y0")] if made.onnx else (),
        numpy=None if made.numpy is None else lambda x, out: made.numpy(x[0], out=out[0]),
        torch=lambda t, x, out: getattr(t, made.name)(x[0], out=out[0]),
    )


def in_te(name: str, x: Any) -> Any:
    """The function by topi, or by tir where topi has it not. Peers round halves to even, topi's `round` does not."""
    from loopwright import te, tir, topi

    name = {"round": "nearbyint"}.get(name, name)
    if hasattr(topi, name):
        return getattr(topi, name)(x)
    return te.compute(x.shape, lambda *at: getattr(tir, name)(x(*at)), name=name)


def _power(rng: Rng) -> Case:
    is_int = rng.random() < 0.25
    dtype = pick(rng, ("int32", "int64")) if is_int else pick(rng, ("float32", "float64"), (65, 35))
    shape = shape_of(rng, ELEMENTS, (1, 2, 3, 4))
    base = Input(shape, dtype, -6, 6) if is_int else Input(shape, dtype, 0.05, 10)
    if rng.random() < 0.5:
        exponent = pick(rng, (2, 3, 4)) if is_int else pick(rng, (2.0, 3.0, 4.0, 0.5, -1.0, -0.5, 1.5, 2.2))
        inputs, details = [base], f"to {exponent}"
    else:
        inputs, details = [base, Input(shape, dtype, 0, 6) if is_int else Input(shape, dtype, -3, 3)], "tensors"

    def exact(x: Any) -> list[Bounded]:
        if is_int:
            return [exactly(np.power(x[0], x[1] if len(x) > 1 else exponent))]
        power = wide(x[1]) if len(x) > 1 else np.asarray(exponent, dtype).astype("float64")
        right = np.power(wide(x[0]), power)
        # A constant exponent may be expanded into products and roots: a rounding for each.
        units = (3 if len(x) > 1 else 8) * (2 if dtype == "float64" else 1)
        return [Bounded(right, np.abs(right) * unit(dtype) * units)]

    constant = {} if len(inputs) > 1 else {"e": np.asarray(exponent, dtype)}
    return Case(
        "power",
        inputs,
        [Output(shape, dtype)],
        exact,
        details,
        kernel=lambda x, y=None: _topi().power(x, exponent if y is None else y),
        model=[Step("Pow", ["x0", "x1" if len(inputs) > 1 else "e"], "y0")],
        constants=constant,
        numpy=lambda x, out: np.power(x[0], x[1] if len(x) > 1 else exponent, out=out[0]),
        torch=lambda t, x, out: t.pow(x[0], x[1] if len(x) > 1 else exponent, out=out[0]),
    )


def _remainder(rng: Rng) -> Case:
    name = pick(rng, ("fmod", "floor_mod", "floor_divide"))
    dtype = pick(rng, ("float32", "float64", "int32", "int64", "int16", "uint8"), (30, 15, 25, 15, 8, 7))
    is_float = np.dtype(dtype).kind == "f"
    shape = shape_of(rng, ELEMENTS, (1, 2, 3, 4))
    low = 0 if dtype == "uint8" else -100
    of = Input(shape, dtype, low, 100)
    how = pick(rng, ("tensors", "row", "constant"))
    divisor = pick(rng, (2, 3, 7, 10, 64)) if not is_float else pick(rng, (0.5, 1.0, 2.5, 3.0))
    other = shape if how == "tensors" else (1,) * (len(shape) - 1) + (shape[-1],)

    def values(generator: np.random.Generator) -> Array:
        drawn = generator.integers(1, 30, other) if not is_float else generator.uniform(0.1, 10, other)
        sign = 1 if dtype == "uint8" else np.where(generator.random(other) < 0.3, -1, 1)
        return np.asarray(drawn * sign).astype(dtype)

    inputs = [of] if how == "constant" else [of, Input(other, dtype, make=values)]

    def right_of(x: Any) -> Any:
        return x[1] if len(x) > 1 else np.asarray(divisor, dtype)

    functions = {"fmod": np.fmod, "floor_mod": np.mod, "floor_divide": np.floor_divide}

    def exact(x: Any) -> list[Bounded]:
        if not is_float:
            return [exactly(functions[name](x[0], right_of(x)))]
        a, b = wide(x[0]), wide(right_of(x))
        if name == "floor_divide":
            quotient = a / b
            near = np.abs(quotient - np.rint(quotient)) <= 8 * unit(dtype) * np.abs(quotient)
            return [Bounded(np.floor(quotient), np.where(near, 1.0, 0.0))]
        found = functions[name](a, b)
        # From the sign's correction: one rounding of the result; as a - b · floor(a / b): of a and of the product.
        off = unit(dtype) * np.abs(found) * 2
        if name == "floor_mod":
            off = off + 4 * unit(dtype) * np.abs(a)
            wraps = np.minimum(np.abs(found), np.abs(np.abs(b) - np.abs(found))) <= 8 * unit(dtype) * np.abs(a)
            off = np.where(wraps, np.abs(b) * (1 + 1e-6), off)
        return [Bounded(found, off)]

    names = {"fmod": ("mod", "fmod"), "floor_mod": ("floor_mod", "remainder"), "floor_divide": ("floor_divide",) * 2}
    in_topi, in_torch = names[name]
    model = [] if name == "floor_divide" or (is_float and name == "floor_mod") else [
        Step("Mod", ["x0", "x1" if len(inputs) > 1 else "d"], "y0", {"fmod": int(name == "fmod")})
    ]  # fmt: skip
    return Case(
        name,
        inputs,
        [Output(shape, dtype)],
        exact,
        f"by {divisor}" if how == "constant" else f"by {how}",
        kernel=lambda x, y=None: getattr(_topi(), in_topi)(x, divisor if y is None else y),
        model=model,
        constants={} if len(inputs) > 1 else {"d": np.asarray(divisor, dtype)},
        numpy=lambda x, out: functions[name](x[0], right_of(x), out=out[0]),
        torch=lambda t, x, out: getattr(t, in_torch)(x[0], x[1] if len(x) > 1 else divisor, out=out[0]),
    )


def _topi() -> Any:
    from loopwright import topi

    return topi
