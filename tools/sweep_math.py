"""Measure how accurate the mathematical functions are: `python tools/sweep_math.py exp log` tries every float32.

A step (`--step 1009`) tries every so many bit patterns; without names, all functions of one float32 argument are
measured. The error of a result y is |y - exact| in units of the last place of the exact value, so that correct rounding
gives at most 0.5; infinity counts as 2^128, and a NaN or a sign of zero in the wrong place as infinitely wrong. The
tests use the same code on a sample.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from loopwright import ir
from loopwright.build import build
from loopwright.ir import intrinsics
from loopwright.runtime.dtype import DataType

CHUNK: Final = 1 << 16

# What docs/math.md promises, in units of the last place.
STATED: Final[dict[tuple[str, str], float]] = {
    ("exp", "float32"): 1.0,
    ("exp2", "float32"): 1.0,
    ("exp10", "float32"): 1.5,
    ("log", "float32"): 1.0,
    ("log2", "float32"): 1.5,
    ("log10", "float32"): 1.5,
    ("log1p", "float32"): 2.0,
    ("sigmoid", "float32"): 2.5,
    ("tanh", "float32"): 3.0,
    ("sinh", "float32"): 2.5,
    ("cosh", "float32"): 1.5,
    ("asinh", "float32"): 2.5,
    ("acosh", "float32"): 2.5,
    ("atanh", "float32"): 2.5,
    ("erf", "float32"): 1.5,
    ("sin", "float32"): 2.0,
    ("cos", "float32"): 2.0,
    ("tan", "float32"): 4.0,
    ("asin", "float32"): 2.0,
    ("acos", "float32"): 2.5,
    ("atan", "float32"): 1.5,
    ("atan2", "float32"): 2.0,
    ("pow", "float32"): 1.0,
    ("pow", "float64"): 1.0,
    ("exp", "float64"): 1.0,
    ("log", "float64"): 1.0,
    ("sigmoid", "float64"): 2.5,
    ("tanh", "float64"): 3.0,
    ("erf", "float64"): 1.5,
    ("exp2", "float64"): 1.5,
    ("exp10", "float64"): 2.0,
    ("log2", "float64"): 1.5,
    ("log10", "float64"): 1.5,
    ("log1p", "float64"): 2.0,
    ("sinh", "float64"): 2.5,
    ("cosh", "float64"): 1.5,
    ("asinh", "float64"): 2.5,
    ("acosh", "float64"): 3.0,
    ("atanh", "float64"): 2.5,
    ("sin", "float64"): 2.0,
    ("cos", "float64"): 2.0,
    ("tan", "float64"): 4.0,
    ("asin", "float64"): 2.0,
    ("acos", "float64"): 1.5,
    ("atan", "float64"): 2.5,
    ("atan2", "float64"): 3.0,
    ("fmod", "float32"): 0.0,
    ("fmod", "float64"): 0.0,
    ("hypot", "float32"): 1.0,
    ("hypot", "float64"): 1.5,
}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (1 + power)


# What the functions mean, on a wider type than they are measured in.
EXACT: Final[dict[str, Callable[..., np.ndarray]]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(np.asarray(10, x.dtype), x),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": lambda x: np.array([math.erf(value) for value in x.tolist()]),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "pow": np.power,
    "hypot": np.hypot,
    "fmod": np.fmod,
}
OF_TWO: Final = ("atan2", "fmod", "hypot", "pow")


def kernel(
    body: Callable[..., ir.Expr], sources: Sequence[str], target: str, lanes: int = 16
) -> Callable[..., np.ndarray]:
    """A native function on arrays of any length, which computes `body` with vectors of `lanes`."""
    return on_arrays(build(program(body, sources, target, lanes), target="llvm"), target)


def program(body: Callable[..., ir.Expr], sources: Sequence[str], target: str, lanes: int) -> ir.PrimFunc:
    """The function that computes `body` on `CHUNK` elements with vectors of `lanes`."""
    inputs = [ir.decl_buffer((CHUNK,), dtype, f"x{position}") for position, dtype in enumerate(sources)]
    output = ir.decl_buffer((CHUNK,), target, "y")
    i = ir.Var("i")
    index = i if lanes == 1 else ir.Ramp(i * lanes, ir.const(1), lanes)
    store = ir.BufferStore(output, body(*[ir.BufferLoad(buffer, (index,)) for buffer in inputs]), (index,))
    loop = ir.For(i, ir.const(0), ir.const(CHUNK // lanes), ir.ForKind.SERIAL, store)
    return ir.PrimFunc([*inputs, output], loop)


def on_arrays(compiled: Callable[..., object], target: str) -> Callable[..., np.ndarray]:
    """`compiled`, a function of `CHUNK` elements, on arrays of any length."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        size = len(arrays[0])
        result = np.empty(-(-size // CHUNK) * CHUNK, DataType(target).numpy())
        padded = [np.resize(array, len(result)) for array in arrays]  # repeats: padding is as good as any other value
        for start in range(0, size, CHUNK):
            compiled(*[array[start : start + CHUNK] for array in padded], result[start : start + CHUNK])
        return result[:size]

    return run


def function(name: str, dtype: str, lanes: int = 16) -> Callable[..., np.ndarray]:
    """The function called `name` on arrays: the body that code generation takes for this CPU and lane count.

    It is called, as programs call it: of a body written into a program, products and sums would become multiply-adds.
    """
    return kernel(getattr(intrinsics, name), [dtype] * (2 if name in OF_TWO else 1), dtype, lanes)


def ulp_errors(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The errors of `result`; `exact` has a wider type."""
    info = np.finfo(result.dtype)
    limit = np.ldexp(np.ones((), exact.dtype), info.maxexp)
    got, want = np.clip(result.astype(exact.dtype), -limit, limit), np.clip(exact, -limit, limit)
    _, exponent = np.frexp(np.maximum(np.abs(want), exact.dtype.type(info.smallest_normal)))
    place = np.ldexp(np.ones((), exact.dtype), np.minimum(exponent, info.maxexp) - 1 - info.nmant)
    errors = np.abs(got - want) / place
    nan = np.isnan(exact)
    wrong = (nan != np.isnan(result)) | ((exact == 0) & (np.signbit(exact) != np.signbit(result)))
    return np.where(wrong, np.inf, np.where(nan, 0, errors))


def all_patterns(step: int) -> Any:
    """Arrays of every step-th float32, NaN and infinities included."""
    for start in range(0, 1 << 32, step << 20):
        patterns = np.arange(start, min(start + (step << 20), 1 << 32), step, dtype=np.uint64)
        yield patterns.astype(np.uint32).view(np.float32)


def main() -> None:
    """Print the greatest error of each function, and where."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="functions; all if none are given")
    parser.add_argument("--step", type=int, default=1, help="try every STEP-th float32; best an odd number")
    options = parser.parse_args()
    single = [name for name, dtype in STATED if dtype == "float32" and name not in OF_TWO]
    for name in options.names or single:
        run, worst, where = function(name, "float32"), 0.0, np.float32(0)
        with np.errstate(all="ignore"):
            for x in all_patterns(options.step):
                errors = ulp_errors(run(x), EXACT[name](x.astype(np.float64)))
                at = int(np.argmax(errors))
                if errors[at] > worst:
                    worst, where = float(errors[at]), x[at]
        print(f"{name}: {worst:.3f} ulp at {float(where)!r} (stated {STATED[name, 'float32']})", flush=True)


if __name__ == "__main__":
    main()
