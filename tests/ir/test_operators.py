"""Python's operators: which type the operands meet in, what is folded, what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from loopwright import ir, tir
from loopwright.ir import const, intrinsics
from loopwright.ir.operators import BadOperand, DivisionByZero, NotACondition, truncdiv, truncmod
from loopwright.ir.operators import div as c_division

INTS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


# --- types ---


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("int8", "int8", "int8"),
        ("int8", "int32", "int32"),
        ("int32", "uint8", "int32"),
        ("int32", "uint32", "uint32"),
        ("uint64", "int64", "uint64"),
        ("int64", "float16", "float16"),
        ("int64", "bfloat16", "bfloat16"),
        ("int32", "e4m3_float8", "e4m3_float8"),
        ("float16", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("bfloat16", "float32", "float32"),
        ("bool", "int8", "int8"),
        ("bool", "float32", "float32"),
        ("int32", "int32x4", "int32x4"),
        ("float32", "int8x4", "float32x4"),
        ("float16x4", "float32x4", "float32x4"),
    ],
)
def test_operands_meet_in_one_type(a, b, common):
    x, y = ir.Var("x", a), ir.Var("y", b)
    for left, right in ((x, y), (y, x)):
        assert (left + right).dtype == common
        assert (left < right).dtype == ir.DataType("bool").with_lanes(ir.DataType(common).lanes)
        made = ir.match_types(left, right)
        assert [one.dtype for one in made] == [common, common]


def test_python_numbers_take_the_type_of_the_other_operand():
    assert (ir.Var("x", "int8") + 1).b.dtype == "int8"
    assert (1 + ir.Var("x", "uint16")).a.dtype == "uint16"
    assert (ir.Var("x", "float16") * 2).b.dtype == "float16"
    assert (ir.Var("x", "float32x4") * 2).b.dtype == "float32x4"
    assert (ir.Var("x", "int8") + 300).dtype == "int32"  # it does not fit
    assert (ir.Var("x", "int32") + 0.5).dtype == "float32"
    assert (ir.Var("x", "int8") + np.int32(1)).dtype == "int32"  # numpy's numbers have a type


def test_what_has_no_common_type_says_why():
    with pytest.raises(BadOperand, match="int8x4 and int8x8") as caught:
        ir.Var("v", "int8x4") + ir.Var("w", "int8x8")
    assert "why: the vectors have different lane counts" in str(caught.value)
    with pytest.raises(BadOperand, match="handle and int32") as caught:
        ir.pointer("p", "int8") + 1
    assert "why: pointers take no part in arithmetic" in str(caught.value)
    assert "hint: use address_of or an index instead" in str(caught.value)


def test_truth_values_take_no_part_in_arithmetic():
    p = ir.Var("p", "bool")
    with pytest.raises(BadOperand, match=r"operator \+ is not defined for bool and bool \[LW0508\]") as caught:
        p + p
    assert 'hint: convert with .astype("int32") first' in str(caught.value)


# --- folding ---


FOLDED = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "//": (lambda a, b: a // b, lambda a, b: a // b),
    "%": (lambda a, b: a % b, lambda a, b: a % b),
    "&": (lambda a, b: a & b, lambda a, b: a & b),
    "|": (lambda a, b: a | b, lambda a, b: a | b),
    "^": (lambda a, b: a ^ b, lambda a, b: a ^ b),
    "min": (intrinsics.minimum, min),
    "max": (intrinsics.maximum, max),
    "truncdiv": (truncdiv, lambda a, b: int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)),
    "truncmod": (truncmod, lambda a, b: a - b * int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)),
}


@pytest.mark.parametrize("sign", FOLDED)
@pytest.mark.parametrize("dtype", INTS)
def test_integer_literals_fold(dtype, sign):
    """What wraps wraps. Index arithmetic is exact: what int32 and int64 have no literal for stays as it is written."""
    kind = ir.DataType(dtype)
    build, exact = FOLDED[sign]
    values = sorted(
        {value for value in (0, 1, 2, 7, -1, -7, kind.lowest, kind.highest) if kind.lowest <= value <= kind.highest}
    )
    for a, b in itertools.product(values, values):
        if b == 0 and sign in ("//", "%", "truncdiv", "truncmod"):
            continue
        folded = build(const(a, dtype), const(b, dtype))
        assert folded.dtype == dtype
        if dtype in ("int32", "int64") and not kind.lowest <= exact(a, b) <= kind.highest:
            assert isinstance(folded, ir.BinaryExpr) and [folded.a.value, folded.b.value] == [a, b]
            continue
        assert isinstance(folded, ir.IntImm), (a, b)
        assert (folded.value - exact(a, b)) % (1 << kind.bits) == 0, (a, b)


@pytest.mark.parametrize("dtype", INTS)
def test_integer_comparisons_fold(dtype):
    low, high = const(ir.DataType(dtype).lowest, dtype), const(ir.DataType(dtype).highest, dtype)
    assert [bool(low < high), bool(low >= high), bool(high > low), bool(low == low), bool(low != high)] == [
        True,
        False,
        True,
        True,
        True,
    ]
    assert isinstance(low < high, ir.IntImm) and (low < high).dtype == "bool"


@pytest.mark.parametrize("dtype", INTS)
def test_shifts_and_inversion_fold(dtype):
    kind = ir.DataType(dtype)
    one = const(1, dtype)
    assert (one << (kind.bits - 1)).value == (1 << (kind.bits - 1) if kind.is_unsigned else kind.lowest)
    assert (const(kind.highest, dtype) >> 1).value == kind.highest >> 1
    assert (~one).value == (kind.highest - 1 if kind.is_unsigned else -2)
    assert (-one).value == (kind.highest if kind.is_unsigned else -1)
    if dtype in ("int32", "int64"):
        assert isinstance(-const(kind.lowest, dtype), ir.Mul)
    else:
        assert (-const(kind.lowest, dtype)).value == kind.lowest  # wraps
    with pytest.raises(BadOperand, match=f"operator << is not defined for {dtype} and {dtype}") as caught:
        one << kind.bits
    assert f"why: the shift by {kind.bits} leaves 0 to {kind.bits - 1}" in str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_literals_fold_in_their_own_precision(dtype):
    a, b = const(0.1, dtype), const(0.2, dtype)
    number = np.dtype(dtype).type
    assert (a + b).value == float(number(0.1) + number(0.2))
    assert (a - b).value == float(number(0.1) - number(0.2))
    assert (a * b).value == float(number(0.1) * number(0.2))
    assert bool(a < b) and isinstance(a < b, ir.IntImm)
    largest = const(ir.DataType(dtype).max_value(), dtype)
    assert (largest + largest).value == np.inf
    nan = const(float("nan"), dtype)
    assert (nan == nan).value == 0 and (nan < a).value == 0 and (nan != a).value == 1
    assert (a / b).value == float(number(0.1) / number(0.2))


def test_small_floats_are_not_folded():
    """Their arithmetic goes through float32; only the evaluator and code generation know that rule."""
    x = const(0.1, "float16")
    assert isinstance(x + x, ir.Add)
    assert isinstance(const(1.0, "bfloat16") * const(2.0, "bfloat16"), ir.Mul)


def test_signed_zeros_survive():
    zero, minus = const(0.0), const(-0.0)
    assert np.signbit(minus.value)
    assert np.signbit((-zero).value) and not np.signbit((-minus).value)
    assert np.signbit((minus + minus).value) and not np.signbit((zero + minus).value)


def test_identities_fold():
    x, y = ir.Var("x"), ir.Var("y", "float32")
    assert all([e is x for e in (x + 0, 0 + x, x - 0, x * 1, 1 * x, x // 1, truncdiv(x, 1))])
    assert all([ir.structural_equal(e, const(0)) for e in (x * 0, 0 * (x + 1), x % 1)])
    assert y * 1.0 is y and 1.0 * y is y and y - 0.0 is y and y / 1.0 is y
    # What an operand may say beside its value stays: the sign of zero, a load, a call.
    loaded = ir.decl_buffer((4,), "int32")[x]
    assert isinstance(y + 0.0, ir.Add) and isinstance(y * 0.0, ir.Mul) and isinstance(loaded * 0, ir.Mul)
    assert isinstance(x - x, ir.Sub) and isinstance(0 - x, ir.Sub)
    deep = x
    for _ in range(5000):
        deep = deep + x
    assert isinstance(deep * 0, ir.Mul)


def test_an_identity_that_was_not_folded_is_read_back():
    x = ir.Var("x")
    assert repr(ir.Add(x, const(0))) == "T.Add(x, 0)" and repr(ir.Mul(const(1), x)) == "T.Mul(1, x)"


# --- division ---


def test_division_says_how_it_rounds():
    x, y = ir.Var("x"), ir.Var("y", "float32")
    assert isinstance(x // 2, ir.FloorDiv) and isinstance(x % 2, ir.FloorMod)
    assert isinstance(truncdiv(x, 2), ir.Div) and isinstance(truncmod(x, 2), ir.Mod)
    assert isinstance(y / 2, ir.Div) and isinstance(c_division(x, 2), ir.Div)
    with pytest.raises(BadOperand, match="operator / is not defined for int32 and int32") as caught:
        x / 2
    assert "why: dividing integers rounds, and / does not say which way" in str(caught.value)
    assert "hint: use a // b to round down, truncdiv(a, b) to round towards zero" in str(caught.value)


@pytest.mark.parametrize(
    ("build", "sign"), [(lambda x: x // 0, "//"), (lambda x: x % 0, "%"), (lambda x: truncdiv(x, 0), "truncdiv")]
)
def test_division_by_the_literal_zero(build, sign):
    for x in (ir.Var("x"), const(4)):
        with pytest.raises(DivisionByZero, match=rf"{sign}: the divisor is the literal 0 \[LW0509\]"):
            build(x)
    with pytest.raises(ZeroDivisionError):
        build(ir.Var("x"))


# --- casts ---


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (200, "int32", "int8", -56),
        (-1, "int32", "uint8", 255),
        (-1, "int8", "uint64", (1 << 64) - 1),
        (5, "int32", "bool", 1),
        (0, "int32", "bool", 0),
        (3, "int32", "float32", 3.0),
        ((1 << 24) + 1, "int32", "float32", float(1 << 24)),
        (1.5, "float32", "float64", 1.5),
        (0.1, "float64", "float32", float(np.float32(0.1))),
    ],
)
def test_casts_of_literals_fold(value, source, target, result):
    folded = const(value, source).astype(target)
    assert folded.dtype == target and folded.value == result


def test_casts_that_stay():
    x = ir.Var("x")
    assert x.astype("int32") is x
    assert isinstance(x.astype("int8"), ir.Cast)
    assert const(-2.5).astype("int32").value == -2
    assert isinstance(const(1e20).astype("int32"), ir.Cast)  # how floats saturate is said in one place only
    assert isinstance(const(1 << 20).astype("float16"), ir.Cast)  # overflows
    assert isinstance(ir.Broadcast(x, 4).astype("int8x4"), ir.Broadcast)
    assert x.astype("int8x4").dtype == "int8x4"
    with pytest.raises(BadOperand, match="astype is not defined for int32x4") as caught:
        ir.Var("v", "int32x4").astype("int8")
    assert "why: it cannot become int8" in str(caught.value)


# --- logic ---


def test_logic_on_truth_values_folds_what_is_decided():
    p, true, false = ir.Var("p", "bool"), const(True), const(False)
    assert (p & true) is p and (p | false) is p
    assert (p & false).value == 0 and (p | true).value == 1
    assert isinstance(p & ir.Var("q", "bool"), ir.And) and isinstance(p ^ p, ir.NE)
    assert (~true).value == 0 and isinstance(~p, ir.Not)
    assert ir.logical_and(p) is p
    assert isinstance(ir.logical_and(p, ir.Var("q", "bool"), ir.Var("r", "bool")).a, ir.And)
    assert isinstance(ir.logical_or(p, p), ir.Or)
    assert ir.logical_not(true).value == 0


def test_integers_count_as_conditions_and_floats_do_not():
    x = ir.Var("x")
    assert repr(ir.logical_and(x)) == "x != 0"
    with pytest.raises(NotACondition, match=r"the condition y of type float32 is neither true nor false \[LW0513\]"):
        ir.logical_or(ir.Var("y", "float32"))
    for build in (tir.all, tir.any, lambda value: tir.if_then_else(value, 1, 2)):  # what users write is a comparison
        with pytest.raises(NotACondition, match="the condition x of type int32 is neither true nor false"):
            build(x)
    assert tir.all(x > 0, True).same_as(tir.any(x > 0)) is False and tir.all(True, False).value == 0


def test_functions_of_literals_are_literals():
    rounded = [(tir.ceil, 4.0), (tir.floor, 3.0), (tir.round, 4.0), (tir.nearbyint, 4.0), (tir.trunc, 3.0)]
    assert [f(const(3.5)).value for f, _ in rounded] == [wanted for _, wanted in rounded]
    assert tir.nearbyint(const(2.5)).value == 2.0 and tir.round(const(-2.5)).value == -3.0
    assert np.signbit(tir.ceil(const(-0.5)).value) and np.isnan(tir.floor(const(float("nan"))).value)
    assert tir.max(1, 5, 3).value == 5 and isinstance(tir.min(ir.Var("x"), 2), ir.Min)


def test_a_let_has_the_type_of_its_variable():
    x = ir.Var("x", "int8")
    assert ir.Let(x, 3, x).value.dtype == "int8" and ir.LetStmt(x, 3, ir.Evaluate(x)).value.dtype == "int8"
    with pytest.raises(TypeError, match="Let: operands have different types, int8 and int16"):
        ir.Let(x, ir.Var("y", "int16"), x)
    with pytest.raises(TypeError, match="the name of a variable is a text, not int 1"):
        ir.Var(1)


@pytest.mark.parametrize("build", [lambda x: x & x, lambda x: x << 1, lambda x: ~x])
def test_bits_are_those_of_integers(build):
    with pytest.raises(BadOperand, match="is not defined for float32") as caught:
        build(ir.Var("y", "float32"))
    assert "why: it works on the bits of integers" in str(caught.value)


# --- intrinsics that choose ---


def test_intrinsics_match_their_operands():
    x, y, p = ir.Var("x"), ir.Var("y", "float32"), ir.Var("p", "bool")
    assert intrinsics.if_then_else(p, x, y).dtype == "float32"
    assert intrinsics.if_then_else(True, x, y).dtype == "float32"
    assert isinstance(intrinsics.select(p, x, 1), ir.Select)
    assert intrinsics.exp(x).dtype == "float32" and intrinsics.exp(x).args[0].dtype == "float32"
    assert intrinsics.floor(x) is x and intrinsics.floor(y).dtype == "float32"
    assert intrinsics.isnan(x).value == 0 and intrinsics.isfinite(x).value == 1
    assert intrinsics.abs(ir.Var("u", "uint8")).dtype == "uint8"
    assert intrinsics.max_value("int8").value == 127 and intrinsics.min_value("uint8").value == 0
    assert intrinsics.ceildiv(const(7), const(2)).value == 4
    with pytest.raises(BadOperand, match="reinterpret is not defined for int32"):
        intrinsics.reinterpret("float64", x)


def test_comparisons_are_expressions_under_the_names_of_deferred_ones():
    x, y = ir.Var("x"), ir.Var("y")
    equal, unequal = x == y, x != y
    assert isinstance(equal, tir.expr.EqualOp) and isinstance(unequal, tir.expr.NotEqualOp)
    assert equal.asobject() is equal and unequal.asobject() is unequal
