"""Every scalar operation on edge values of every type, against numpy and exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import IntegerDivisionByZero
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BufferStore,
    Call,
    Cast,
    DataType,
    Div,
    FloorDiv,
    FloorMod,
    For,
    ForKind,
    Max,
    Min,
    Mod,
    Mul,
    Op,
    PrimFunc,
    Sub,
    Var,
    decl_buffer,
    intrinsics,
)

# numpy warns where it computes the expected infinities and NaNs.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def numpy_type(dtype):
    return DataType(dtype).numpy()


def elementwise(function, result, *arrays):
    """`function` of the elements of the arrays, evaluated."""
    size = arrays[0].size
    i = Var("i")
    inputs = [decl_buffer((size,), DataType(a.dtype), name=f"A{k}") for k, a in enumerate(arrays)]
    C = decl_buffer((size,), result, name="C")
    body = For(i, 0, size, ForKind.SERIAL, BufferStore(C, function(*[a[i] for a in inputs]), [i]))
    out = np.zeros(size, numpy_type(result))
    evaluate(PrimFunc([*inputs, C], body), *arrays, out)
    return out


def same(found, expected):
    """Equal bit by bit, except that any NaN equals any NaN."""
    assert found.dtype == expected.dtype
    bits = f"uint{found.dtype.itemsize * 8}"
    equal = found.view(bits) == expected.view(bits)
    if found.dtype.kind not in "iub":
        equal |= np.isnan(found.astype("float64")) & np.isnan(expected.astype("float64"))
    where = np.flatnonzero(~equal)
    assert not len(where), f"{found[where[:3]]} instead of {expected[where[:3]]} at {where[:3]}"


def pairs(values):
    a, b = np.meshgrid(values, values)
    return a.reshape(-1).copy(), b.reshape(-1).copy()


def int_edges(dtype):
    info = np.iinfo(dtype)
    candidates = [info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 7, 100, info.max - 1, info.max]
    return np.array(sorted({v for v in candidates if info.min <= v <= info.max}), dtype)


def float_edges(dtype):
    info = ml_dtypes.finfo(numpy_type(dtype))
    tiny, least = float(info.tiny), float(info.smallest_subnormal)
    values = [0.0, 1.0, 1.5, 1 / 3, 2.5, 7.0, 100.7, tiny, least, float(info.max), 1 + float(info.eps), math.inf]
    return np.array([*values, *[-v for v in values], math.nan], "float64").astype(numpy_type(dtype))


def wrapped(value, dtype):
    info = np.iinfo(dtype)
    return (value - info.min) % (1 << info.bits) + info.min


INT_MEANING = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    Min: min,
    Max: max,
    Div: lambda a, b: int(Fraction(a, b)),
    Mod: lambda a, b: a - b * int(Fraction(a, b)),
    FloorDiv: lambda a, b: a // b,
    FloorMod: lambda a, b: a % b,
}
COMPARISONS = {EQ: np.equal, NE: np.not_equal, LT: np.less, LE: np.less_equal, GT: np.greater, GE: np.greater_equal}


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
@pytest.mark.parametrize("cls", INT_MEANING, ids=lambda cls: cls.__name__)
def test_integers_wrap(cls, dtype):
    a, b = pairs(int_edges(dtype))
    if cls in (Div, Mod, FloorDiv, FloorMod):
        defined = (b != 0) & ~((b.astype(object) == -1) & (a == np.iinfo(dtype).min))
        a, b = a[defined].copy(), b[defined].copy()
    expected = [wrapped(INT_MEANING[cls](int(x), int(y)), dtype) for x, y in zip(a, b)]
    same(elementwise(cls, dtype, a, b), np.array(expected, dtype))


@pytest.mark.parametrize("cls", [Div, Mod, FloorDiv, FloorMod], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("a,b", [(5, 0), (-128, -1)])
def test_integer_division_without_result(cls, a, b):
    with pytest.raises(IntegerDivisionByZero, match=rf"int8 division of {a} by {b} has no result at i=0 .LW0804"):
        elementwise(cls, "int8", np.array([a], "int8"), np.array([b], "int8"))


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED + FLOATS)
@pytest.mark.parametrize("cls", COMPARISONS, ids=lambda cls: cls.__name__)
def test_comparisons(cls, dtype):
    a, b = pairs(float_edges(dtype) if dtype in FLOATS else int_edges(dtype))
    same(elementwise(cls, "bool", a, b), COMPARISONS[cls](a, b))


def in_float32(function, dtype):
    """numpy's operation, computed in float32 for the 16-bit types and rounded."""
    computed = "float64" if dtype == "float64" else "float32"

    def run(*arrays):
        with np.errstate(all="ignore"):
            return function(*[a.astype(computed) for a in arrays]).astype(numpy_type(dtype))

    return run


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "cls,meaning",
    [
        (Add, np.add),
        (Sub, np.subtract),
        (Mul, np.multiply),
        (Div, np.divide),
        (Mod, np.fmod),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_float_arithmetic(cls, meaning, dtype):
    a, b = pairs(float_edges(dtype))
    same(elementwise(cls, dtype, a, b), in_float32(meaning, dtype)(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_floor_division(dtype):
    a, b = pairs(float_edges(dtype))
    same(elementwise(FloorDiv, dtype, a, b), in_float32(lambda x, y: np.floor(x / y), dtype)(a, b))

    def remainder(x, y):
        exact = np.fmod(x, y)
        return np.where((exact != 0) & ((exact < 0) != (y < 0)), exact + y, exact)

    same(elementwise(FloorMod, dtype, a, b), in_float32(remainder, dtype)(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_min_and_max_propagate_nan_and_order_zeros(dtype):
    a, b = pairs(float_edges(dtype))
    wide_a, wide_b = a.astype("float64"), b.astype("float64")
    low, high = np.minimum(wide_a, wide_b), np.maximum(wide_a, wide_b)
    zeros = (wide_a == 0) & (wide_b == 0)
    low[zeros] = np.where(np.signbit(wide_a) | np.signbit(wide_b), -0.0, 0.0)[zeros]
    high[zeros] = np.where(np.signbit(wide_a) & np.signbit(wide_b), -0.0, 0.0)[zeros]
    same(elementwise(Min, dtype, a, b), low.astype(numpy_type(dtype)))
    same(elementwise(Max, dtype, a, b), high.astype(numpy_type(dtype)))


# --- casts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SIGNED + UNSIGNED + ["bool"])
@pytest.mark.parametrize("target", SIGNED + UNSIGNED)
def test_int_to_int_keeps_the_low_bits(source, target):
    a = np.array([False, True]) if source == "bool" else int_edges(source)
    expected = np.array([wrapped(int(x), target) for x in a], target)
    same(elementwise(lambda x: Cast(target, x), target, a), expected)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", SIGNED + UNSIGNED)
def test_float_to_int_truncates_and_saturates(source, target):
    a = np.concatenate(
        [float_edges(source), np.array([0.9, -0.9, 127.6, -128.9, 3e9, -3e9, 1e19, 1e4]).astype(numpy_type(source))]
    )
    info = np.iinfo(target)

    def meaning(x):
        if math.isnan(x):
            return 0
        if math.isinf(x):
            return info.max if x > 0 else info.min
        return min(max(int(x), info.min), info.max)

    expected = np.array([meaning(float(x)) for x in a], target)
    same(elementwise(lambda x: Cast(target, x), target, a), expected)


@pytest.mark.parametrize("source", SIGNED + UNSIGNED + FLOATS)
def test_to_bool(source):
    a = float_edges(source) if source in FLOATS else int_edges(source)
    same(elementwise(lambda x: Cast("bool", x), "bool", a), a.astype("float64") != 0)


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_float_rounds_to_nearest_even(source, target):
    a = np.concatenate(
        [float_edges(source), np.array([1 + 2**-9, 1 + 3 * 2**-9, 65519.9, 65520, 1e39]).astype(numpy_type(source))]
    )
    with np.errstate(all="ignore"):
        expected = a.astype("float64") if target == "float64" else a.astype("float32").astype(numpy_type(target))
    same(elementwise(lambda x: Cast(target, x), target, a), expected)


@pytest.mark.parametrize("target", ["float32", "float64"])
@pytest.mark.parametrize("source", SIGNED + UNSIGNED)
def test_int_to_float_rounds_once(source, target):
    rng = np.random.default_rng(0)
    info = np.iinfo(source)
    a = np.concatenate([int_edges(source), rng.integers(info.min, info.max, 200, source, endpoint=True)])
    same(elementwise(lambda x: Cast(target, x), target, a), a.astype(target))


def test_int_to_float32_does_not_round_twice():
    # Between two float32 numbers, a hair above the middle: rounding to float64 first would lose the hair.
    x = (1 << 62) + (1 << 38) + 1
    found = elementwise(lambda v: Cast("float32", v), "float32", np.array([x, -x], "int64"))
    assert found.tolist() == [float((1 << 62) + (1 << 39)), -float((1 << 62) + (1 << 39))]


def test_narrow_float_from_int_goes_through_float32():
    a = np.array([2**31 - 1, 65519, 65520, 257, 258, 259], "int32")
    for target in ("float16", "bfloat16"):
        expected = a.astype("float32").astype(numpy_type(target))
        same(elementwise(lambda x, target=target: Cast(target, x), target, a), expected)


@pytest.mark.parametrize("dtype", ["e4m3_float8", "e5m2_float8"])
def test_float8(dtype):
    number = numpy_type(dtype)
    a = np.arange(256, dtype="uint8").view(number)
    b = np.roll(a, 77).copy()
    with np.errstate(all="ignore"):
        expected = (a.astype("float32") + b.astype("float32")).astype(number)
    same(elementwise(Add, dtype, a, b), expected)


# --- fused multiply-add -------------------------------------------------------------------------------------------


def exact_fma(x, y, z, dtype):
    if math.isfinite(x) and math.isfinite(y) and not math.isfinite(z):
        return z
    if not all(math.isfinite(v) for v in (x, y)):
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z if x == 0 or y == 0 else 0.0
    return nearest(exact, dtype)


def nearest(exact, dtype):
    """The value of a float type nearest to an exact number: found by search among its neighbours."""
    number = numpy_type(dtype).type
    info = np.finfo(number)
    # Where the spacing ends, overflow begins half a step further.
    limit = Fraction(float(info.max)) + Fraction(float(info.max) - float(np.nextafter(info.max, number(0)))) / 2
    if abs(exact) >= limit:
        return math.inf if exact > 0 else -math.inf
    try:
        guess = number(float(exact))
    except OverflowError:
        guess = info.max
    best = None
    for candidate in (np.nextafter(guess, number(-np.inf)), guess, np.nextafter(guess, number(np.inf))):
        if np.isfinite(candidate):
            distance = abs(Fraction(float(candidate)) - exact)
            odd = int(np.array(candidate).view(f"uint{info.bits}")) & 1
            if best is None or (distance, odd) < best[0]:
                best = ((distance, odd), candidate)
    return abs(float(best[1])) if exact > 0 else -abs(float(best[1]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_once(dtype):
    rng = np.random.default_rng(3)
    number = numpy_type(dtype)
    edges = float_edges(dtype).astype("float64")
    x, y, z = (rng.choice(edges, 500).astype(number) for _ in range(3))
    # Products that nearly cancel, or that lie a hair from the middle of two numbers.
    p = rng.random(500).astype(number)
    q = (1 + rng.integers(-3, 4, 500) * np.finfo(number).eps).astype(number)
    r = np.where(rng.random(500) < 0.5, -p * q, p * np.finfo(number).eps / 2).astype(number)
    a, b, c = np.concatenate([x, p]), np.concatenate([y, q]), np.concatenate([z, r])
    expected = np.array([exact_fma(float(u), float(v), float(w), dtype) for u, v, w in zip(a, b, c)], number)
    same(elementwise(intrinsics.fma, dtype, a, b, c), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_fma_is_a_float32_fma_rounded(dtype):
    rng = np.random.default_rng(4)
    a, b, c = (rng.standard_normal(300).astype(numpy_type(dtype)) for _ in range(3))
    exact = [exact_fma(float(u), float(v), float(w), "float32") for u, v, w in zip(a, b, c)]
    same(elementwise(intrinsics.fma, dtype, a, b, c), np.array(exact, "float32").astype(numpy_type(dtype)))


# --- bits ---------------------------------------------------------------------------------------------------------


def call(name, dtype=None):
    return lambda *args: Call(dtype or args[0].dtype, Op.get(f"tir.{name}"), args)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_shifts_use_the_amount_modulo_the_width(dtype):
    bits = np.iinfo(dtype).bits
    a, by = pairs(int_edges(dtype))
    amount = [int(x) & (bits - 1) for x in by]
    left = np.array([wrapped(int(x) << n, dtype) for x, n in zip(a, amount)], dtype)
    right = np.array([int(x) >> n for x, n in zip(a, amount)], dtype)
    same(elementwise(call("shift_left"), dtype, a, by), left)
    same(elementwise(call("shift_right"), dtype, a, by), right)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_bitwise(dtype):
    a, b = pairs(int_edges(dtype))
    same(elementwise(call("bitwise_and"), dtype, a, b), a & b)
    same(elementwise(call("bitwise_or"), dtype, a, b), a | b)
    same(elementwise(call("bitwise_xor"), dtype, a, b), a ^ b)
    same(elementwise(call("bitwise_not"), dtype, a), ~a)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_counting_bits(dtype):
    a = int_edges(dtype)
    bits = np.iinfo(dtype).bits
    raw = [int(x) % (1 << bits) for x in a]
    same(elementwise(intrinsics.clz, "int32", a), np.array([bits - x.bit_length() for x in raw], "int32"))
    same(elementwise(intrinsics.popcount, dtype, a), np.array([x.bit_count() for x in raw], dtype))


@pytest.mark.parametrize("dtype", SIGNED)
def test_abs_of_the_least_integer_is_itself(dtype):
    a = int_edges(dtype)
    with np.errstate(all="ignore"):
        same(elementwise(intrinsics.abs, dtype, a), np.abs(a))


@pytest.mark.parametrize(
    "dtype,other", [("float32", "int32"), ("float64", "uint64"), ("float16", "int16"), ("bfloat16", "uint16")]
)
def test_reinterpret_keeps_the_bits(dtype, other):
    a = float_edges(dtype)
    found = elementwise(lambda x: intrinsics.reinterpret(other, x), other, a)
    expected = a.view(other)
    numbers = ~np.isnan(a.astype("float64"))
    np.testing.assert_array_equal(found[numbers], expected[numbers])
    back = elementwise(lambda x: intrinsics.reinterpret(dtype, x), dtype, expected.copy())
    same(back, a)


def test_reinterpret_of_half_bytes():
    a = np.arange(-8, 8).astype(ml_dtypes.int4)
    b = np.array([*range(8, 16), *range(8)]).astype(ml_dtypes.uint4)
    np.testing.assert_array_equal(elementwise(lambda x: intrinsics.reinterpret("uint4", x), "uint4", a), b)
    np.testing.assert_array_equal(elementwise(lambda x: intrinsics.reinterpret("int4", x), "int4", b), a)


def test_fixed_point_multiply_rounds_half_up():
    x = np.array([100, -100, 3, -3, 2**30], "int32")
    y = np.full(5, 1 << 30, "int32")  # one half, with 31 fraction bits
    run = lambda s: elementwise(
        lambda a, b: Call("int32", Op.get("tir.q_multiply_shift"), (a, b, 31, s)), "int32", x, y
    )
    assert run(0).tolist() == [50, -50, 2, -1, 2**29]
    assert run(1).tolist() == [100, -100, 3, -3, 2**30]
    assert run(-1).tolist() == [25, -25, 1, -1, 2**28]


# --- functions ----------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": np.vectorize(math.erf),
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_rounded_from_float64(name, dtype):
    a = np.concatenate([float_edges(dtype), np.linspace(-3, 3, 40).astype(numpy_type(dtype))])
    found = elementwise(getattr(intrinsics, name), dtype, a).astype("float64")
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](a.astype("float64")).astype(numpy_type(dtype)).astype("float64")
    # float64 values may differ in the last places between two libraries; a narrow rounding then rarely differs too.
    eps = float(ml_dtypes.finfo(numpy_type(dtype)).eps)
    np.testing.assert_allclose(found, expected, rtol=eps if dtype != "float64" else 4 * eps, atol=1e-300)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_functions(dtype):
    a = np.concatenate([float_edges(dtype), np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 1e5]).astype(numpy_type(dtype))])
    wide = a.astype("float64")
    with np.errstate(all="ignore"):
        away = np.copysign(np.floor(np.abs(wide)) + (np.abs(wide) - np.floor(np.abs(wide)) >= 0.5), wide)
        meanings = {
            "ceil": np.ceil(wide),
            "floor": np.floor(wide),
            "trunc": np.trunc(wide),
            "nearbyint": np.rint(wide),
            "round": np.where(np.isfinite(wide), away, wide),
        }
        for name, expected in meanings.items():
            same(elementwise(getattr(intrinsics, name), dtype, a), expected.astype(numpy_type(dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name,meaning", [("atan2", np.arctan2), ("hypot", np.hypot), ("pow", np.power), ("fmod", np.fmod)]
)
def test_functions_of_two(name, meaning, dtype):
    a, b = pairs(float_edges(dtype))
    found = elementwise(getattr(intrinsics, name), dtype, a, b).astype("float64")
    with np.errstate(all="ignore"):
        expected = meaning(a.astype("float64"), b.astype("float64")).astype(numpy_type(dtype)).astype("float64")
    np.testing.assert_allclose(found, expected, rtol=float(ml_dtypes.finfo(numpy_type(dtype)).eps) * 4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_copysign_nextafter_ldexp_and_predicates(dtype):
    a, b = pairs(float_edges(dtype))
    same(elementwise(intrinsics.copysign, dtype, a, b), np.copysign(a, b))
    with np.errstate(all="ignore"):
        # numpy's float16 gives a, not b, where both are zero.
        same(elementwise(intrinsics.nextafter, dtype, a, b), np.where(a == b, b, np.nextafter(a, b)))
        exponents = np.resize(np.array([-3, 0, 1, 5, 400, -400], "int32"), a.shape)
        expected = np.ldexp(a.astype("float64"), exponents)
        expected = expected if dtype == "float64" else expected.astype("float32").astype(numpy_type(dtype))
        same(elementwise(intrinsics.ldexp, dtype, a, exponents), expected)
    same(elementwise(intrinsics.isnan, "bool", a), np.isnan(a))
    same(elementwise(intrinsics.isinf, "bool", a), np.isinf(a))
    same(elementwise(intrinsics.isfinite, "bool", a), np.isfinite(a))
    same(elementwise(intrinsics.abs, dtype, a), np.abs(a))
