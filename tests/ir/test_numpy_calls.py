"""numpy's operators work on expressions as Python's do; its functions are refused with the name to use here."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from loopwright import te, tir
from loopwright.ir import Expr, as_expr, assert_structural_equal
from loopwright.ir.expr import NumpyFunction
from loopwright.ir.expr.numpy_calls import _INSTEAD

X = te.placeholder((4, 5), name="X")
N = te.placeholder((4,), "int32", name="N")
i = te.var("i")
k = te.reduce_axis((0, 4), "k")
OPERANDS = {"slice": X[i, k], "expression": X(i, i) + 1.0, "int": N[i], "var": i, "axis": k}
SCALARS = [np.float32(2), np.float64(2.5), np.float16(2), np.int8(3), np.int64(3), np.uint8(3), np.array(2.0)]


def id_of(scalar):
    return f"{type(scalar).__name__}-{scalar.dtype}"


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("scalar", SCALARS, ids=id_of)
@pytest.mark.parametrize("do", "add sub mul lt le gt ge eq ne".split())
def test_a_number_of_numpy_on_the_left_is_a_number(do, scalar, name):
    apply, right = getattr(operator, do), OPERANDS[name]
    made = apply(scalar, right)
    assert isinstance(made, Expr)
    assert_structural_equal(made, as_expr(apply(scalar.item(), right)))


def test_a_whole_tensor_takes_a_number_of_numpy():
    assert (np.float32(2) * X).shape == X.shape
    assert (np.float32(2) < X).dtype == "bool"


def test_an_array_of_numbers_gives_an_array_of_expressions():
    made = np.array([1.0, 2.0]) * X[i, i]
    assert made.shape == (2,)
    assert all([isinstance(value, Expr) for value in made])
    assert isinstance(np.prod((4, i)), Expr)


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize(
    ("function", "instead"),
    [
        (np.exp, "use te.exp"),
        (np.arctan, "use te.atan"),
        (np.isnan, "use te.isnan"),
        (lambda x: np.maximum(x, 0), "use te.max"),
        (lambda x: np.maximum(0, x), "use te.max"),
        (np.sum, r"use te.sum\(x, axis=k\), over a te.reduce_axis k"),
        (np.max, r"use te.max\(x, axis=k\)"),
        (np.prod, "use a reducer made by te.comm_reducer"),
        (np.sign, "use a function of te or tir"),
    ],
)
def test_functions_are_refused_with_the_name_to_use(function, instead, name):
    with pytest.raises(NumpyFunction, match=rf"(?s)^np\.\w+ cannot compute with .*: its value .*\n  hint: {instead}"):
        function(OPERANDS[name])


def test_the_names_to_use_are_there():
    for instead in _INSTEAD.values():
        home, _, name = instead.partition("(")[0].partition(".")
        assert home not in ("te", "tir") or hasattr({"te": te, "tir": tir}[home], name), instead


def test_pythons_max_is_shown_te_max():
    with pytest.raises(ValueError, match=r"te\.max/te\.min instead of max/min"):
        max(X[i, i], 0)
