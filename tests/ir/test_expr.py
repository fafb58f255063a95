"""Expressions: types, literals and their ranges, what == means, ranges and iteration variables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loopwright import ir
from loopwright.ir import const
from loopwright.ir.expr import (
    BinaryExpr,
    ImmediateOutOfRange,
    NotALiteral,
    NotAnExpression,
    NoTruthValue,
    OperandMismatch,
    round_to,
)
from loopwright.ir.operators import BadOperand
from loopwright.runtime.errors import LoopwrightError

ARITHMETIC = [ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max]
COMPARE = [ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE]


# --- types ---


@pytest.mark.parametrize("cls", ARITHMETIC)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "bfloat16", "float64", "float32x4"])
def test_arithmetic_keeps_the_type(cls, dtype):
    x = ir.Var("x", dtype)
    assert cls(x, x).dtype is ir.DataType(dtype)
    assert isinstance(cls(x, x), BinaryExpr)


@pytest.mark.parametrize("cls", COMPARE)
def test_comparisons_are_truth_values(cls):
    x, v = ir.Var("x", "float32"), ir.Var("v", "int8x8")
    assert cls(x, x).dtype == "bool"
    assert cls(v, v).dtype == "boolx8"


@pytest.mark.parametrize("cls", [*ARITHMETIC, *COMPARE])
def test_operands_of_one_node_have_one_type(cls):
    with pytest.raises(
        OperandMismatch, match=rf"{cls.__name__}: operands have different types, int32 and float32 \[LW0501\]"
    ) as caught:
        cls(ir.Var("x"), ir.Var("y", "float32"))
    assert "hint: convert one with .astype('int32'), or use the operator" in str(caught.value)
    assert caught.value.fields == {"node": cls.__name__, "left": "int32", "right": "float32"}


@pytest.mark.parametrize("cls", [ir.And, ir.Or])
def test_logic_takes_truth_values(cls):
    p, v = ir.Var("p", "bool"), ir.Var("v", "boolx4")
    assert cls(p, p).dtype == "bool"
    assert cls(v, v).dtype == "boolx4"
    with pytest.raises(OperandMismatch, match=f"{cls.__name__}: operands have different types, int32 and bool"):
        cls(ir.Var("x"), p)
    with pytest.raises(OperandMismatch, match="bool and boolx4"):
        cls(p, v)


def test_not_and_select():
    p, x, y = ir.Var("p", "bool"), ir.Var("x", "int8"), ir.Var("y", "int8")
    assert ir.Not(p).dtype == "bool"
    with pytest.raises(OperandMismatch, match="Not: operands have different types, int8 and bool"):
        ir.Not(x)
    assert ir.Select(p, x, y).dtype == "int8"
    with pytest.raises(OperandMismatch, match="Select: operands have different types, int8 and bool"):
        ir.Select(p, x, p)


def test_casts_lets_and_vectors():
    x = ir.Var("x")
    assert ir.Cast("float16", x).dtype == "float16"
    let = ir.Let(x, const(1), ir.Cast("int8", x))
    assert let.dtype == "int8"
    assert ir.Ramp(x, 2, 8).dtype == "int32x8"
    assert ir.Broadcast(x, 4).dtype == "int32x4"
    assert ir.Shuffle([ir.Broadcast(x, 4), ir.Broadcast(x, 4)], [0, 7]).dtype == "int32x2"
    assert ir.Shuffle([ir.Broadcast(x, 4)], [3]).dtype == "int32"
    with pytest.raises(OperandMismatch, match="Ramp: operands have different types, int64 and int32"):
        ir.Ramp(ir.Var("i", "int64"), 1, 4)


# --- variables and literals ---


def test_variables_are_their_own_selves():
    x, other = ir.Var("x"), ir.Var("x")
    assert x.dtype == "int32" and x.name_hint == "x"
    assert len({x, other}) == 2
    assert {x: 1}.get(other) is None
    pointer = ir.pointer("p", "float16", "shared")
    assert pointer.dtype == "handle"
    assert (pointer.type_annotation.element_type.dtype, pointer.type_annotation.storage_scope) == ("float16", "shared")
    assert isinstance(ir.SizeVar("n"), ir.Var)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("int4", -8, 7),
        ("int32", -(1 << 31), (1 << 31) - 1),
        ("uint64", 0, (1 << 64) - 1),
        ("bool", 0, 1),
    ],
)
def test_integer_literals_stay_in_range(dtype, low, high):
    assert ir.IntImm(dtype, low).value == low
    assert ir.IntImm(dtype, high).value == high
    for outside in (low - 1, high + 1):
        message = rf"literal {outside} does not fit {dtype}, which holds {low} to {high} \[LW0502\]"
        with pytest.raises(ImmediateOutOfRange, match=message):
            ir.IntImm(dtype, outside)


def test_float_literals_are_rounded_to_their_type():
    assert ir.FloatImm("float32", 0.1).value == float(np.float32(0.1))
    assert ir.FloatImm("float16", 1 + 2**-11).value == 1.0  # ties to even
    assert ir.FloatImm("bfloat16", 1.00390625).value == 1.0
    assert ir.FloatImm("float64", 0.1).value == 0.1
    assert math.isnan(ir.FloatImm("float16", math.nan).value)
    assert ir.FloatImm("float32", math.inf).value == math.inf
    for dtype, value in (("float16", 65520.0), ("float32", 1e39), ("bfloat16", 3.4e38 * 2)):
        with pytest.raises(ImmediateOutOfRange, match=f"does not fit {dtype}"):
            ir.FloatImm(dtype, value)


def test_literals_need_a_scalar_type_of_their_kind():
    with pytest.raises(LoopwrightError, match="IntImm: float32 is not a scalar integer type"):
        ir.IntImm("float32", 1)
    with pytest.raises(LoopwrightError, match="IntImm: int32x4 is not a scalar integer type"):
        ir.IntImm("int32x4", 1)
    with pytest.raises(LoopwrightError, match="FloatImm: int8 is not a scalar floating-point type"):
        ir.FloatImm("int8", 1)


def test_literals_are_numbers_in_python():
    three = const(3)
    assert int(three) == 3 and float(three) == 3.0 and bool(three) and list(range(9))[three] == 3
    assert not const(0) and not const(False) and not const(0.0)
    assert float(const(0.5)) == 0.5 and int(const(2.5)) == 2


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (1 << 31, "int64"),
        (-(1 << 31), "int32"),
        (True, "bool"),
        (1.5, "float32"),
        (1e300, "float64"),
        (math.inf, "float32"),
        (np.int8(3), "int8"),
        (np.float64(3), "float64"),
        (np.float16(3), "float16"),
        (np.bool_(True), "bool"),
    ],
)
def test_const_chooses_a_type(value, dtype):
    assert const(value).dtype == dtype
    assert ir.as_expr(value).dtype == dtype


def test_const_with_a_type():
    assert const(3, "float32").value == 3.0
    assert const(2.0, "int8").value == 2
    assert isinstance(const(1, "int32x4"), ir.Broadcast) and const(1, "int32x4").dtype == "int32x4"
    with pytest.raises(ImmediateOutOfRange, match=r"literal 2.5 does not fit int8, which holds integers"):
        const(2.5, "int8")
    with pytest.raises(ImmediateOutOfRange, match="literal 300 does not fit uint8"):
        const(300, "uint8")
    with pytest.raises(NotALiteral, match="cannot make an int8 literal from str 'x'"):
        const("x", "int8")
    assert const(5) is const(5)  # small ones are shared


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "e4m3_float8", "e5m2_float8"])
def test_round_to_agrees_with_numpy(dtype):
    kind = ir.DataType(dtype)
    values = np.random.default_rng(0).normal(size=200) * np.exp2(np.random.default_rng(1).integers(-20, 8, 200))
    for value in values:
        assert round_to(kind, float(value)) == float(np.float64(value).astype(kind.numpy()))
    assert round_to(ir.DataType("float32"), 1e300) == math.inf


def test_what_is_no_expression_says_so():
    with pytest.raises(NotAnExpression, match=r"cannot make an expression from list \[1\] \[LW0503\]") as caught:
        ir.as_expr([1])
    assert "hint: use a number, a variable, an iteration variable" in str(caught.value)
    with pytest.raises(NotAnExpression, match="from NoneType None"):
        ir.Var("x") + None  # type: ignore[operator]
    assert isinstance(ir.as_expr("text"), ir.StringImm)


# --- == and truth ---


def test_equals_builds_a_comparison_whose_truth_is_identity():
    x, y = ir.Var("x"), ir.Var("y")
    assert isinstance(x == y, ir.EQ) and isinstance(x != y, ir.NE)
    assert bool(x == x) and not bool(x == y)
    assert not bool(x != x) and bool(x != y)
    assert x in [y, x] and x not in [y]
    assert [y, x].index(x) == 1
    assert bool(const(3) == 3) and not bool(const(3) == 4)
    assert isinstance(x.equal(y), ir.EQ)


def test_what_cannot_be_compared_is_different():
    x, p = ir.Var("x"), ir.pointer("p", "int8")
    assert (x == "text") is False and (x != "text") is True
    assert (x == None) is False  # noqa: E711
    assert (x == p) is False
    assert x not in [None, "a", object(), p]
    assert bool(p == p)
    assert (ir.Var("v", "int8x4") == ir.Var("w", "int8x8")) is False


def test_comparison_with_numbers_takes_the_type():
    comparison = ir.Var("x", "float16") == 1
    assert isinstance(comparison, ir.EQ) and comparison.b.dtype == "float16"


def test_symbolic_conditions_have_no_truth_value():
    x = ir.Var("x")
    with pytest.raises(NoTruthValue, match=r"the expression x < 3 has no truth value: it is known only when") as caught:
        if x < 3:
            pass
    assert "hint: use tir.all/tir.any instead of and/or, tir.if_then_else instead of if" in str(caught.value)
    with pytest.raises(NoTruthValue, match="the expression x "):
        bool(x)
    with pytest.raises(NoTruthValue):
        0 <= x < 3


def test_expressions_hash_by_identity():
    a, b = ir.Var("x") + 1, ir.Var("x") + 1
    assert len({a: 1, b: 2}) == 2
    assert hash(a) == hash(a)


# --- ranges and iteration variables ---


def test_ranges():
    n = ir.Var("n", "int64")
    assert [int(part) for part in (ir.Range(5).min, ir.Range(5).extent)] == [0, 5]
    assert [int(part) for part in (ir.Range(2, 5).min, ir.Range(2, 5).extent)] == [2, 3]
    assert ir.Range(n).min.dtype == "int64" and ir.Range(n).extent is n
    assert ir.Range.from_min_extent(2, 5).extent.value == 5
    assert repr(ir.Range(1, n).extent) == "n - T.int64(1)"


def test_iteration_variables():
    axis = ir.IterVar((0, 8), "i", 0)
    assert axis.iter_type is ir.IterType.DataPar and axis.var.name == "i" and axis.dtype == "int32"
    assert ir.IterVar(ir.Range(ir.Var("n", "int64")), "i", 2).var.dtype == "int64"
    assert ir.IterVar(None, "t", ir.IterVar.ThreadIndex, "threadIdx.x").thread_tag == "threadIdx.x"
    with pytest.raises(LoopwrightError, match=r"IterVar: the domain must be a Range or \(begin, end\), got 8"):
        ir.IterVar(8, "i", 0)
    with pytest.raises(OperandMismatch, match="IterVar: operands have different types, int32 and int64"):
        ir.IterVar(ir.Range(ir.Var("n", "int64")), ir.Var("i"), 0)


def test_arithmetic_on_iteration_variables_is_arithmetic_on_the_variable():
    axis, x = ir.IterVar((0, 8), "i", 0), ir.Var("x")
    for made in (axis + 1, axis - 1, axis * 2, axis // 2, axis % 2, axis & 3, axis << 1, axis < 4, axis >= 4):
        assert made.a is axis.var if isinstance(made, BinaryExpr) else made.args[0] is axis.var
    for made in (1 + axis, 1 - axis, 2 * axis, 9 // axis, x + axis):
        assert made.b is axis.var
    assert repr(-axis) == "i * -1"
    assert axis.astype("int64").value is axis.var


def test_iteration_variables_have_every_operator_of_expressions():
    axis = ir.IterVar((0, 8), "i", 0)
    operators = [name for name in vars(ir.Expr) if name.startswith("__") and callable(vars(ir.Expr)[name])]
    assert not [name for name in operators if not hasattr(ir.IterVar, name) and name != "__bool__"]
    assert abs(axis).args[0] is axis.var and +axis is axis.var
    with pytest.raises(BadOperand, match=r"operator \*\* is not defined for int32"):
        axis**2
