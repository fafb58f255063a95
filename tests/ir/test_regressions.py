"""Bugs that building expressions once had, each held by the smallest program that showed it."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.ir.expr import ImmediateOutOfRange
from loopwright.ir.operators import BadOperand


def test_comparing_an_iteration_variable_is_an_expression():
    k = te.reduce_axis((0, 4), "k")
    A = te.placeholder((4,), name="A")
    first = te.compute((1,), lambda i: te.sum(te.if_then_else(k == 2, A[k], 0.0), axis=k))
    others = te.compute((1,), lambda i: te.sum(te.if_then_else(k != 2, A[k], 0.0), axis=k))
    one, two = np.zeros(1, "float32"), np.zeros(1, "float32")
    lw.build([A, first])(np.array([1, 2, 4, 8], "float32"), one)
    lw.build([A, others])(np.array([1, 2, 4, 8], "float32"), two)
    assert (one[0], two[0]) == (4, 11)


def test_iteration_variables_are_still_found_in_lists_and_dictionaries():
    i, j = ir.IterVar((0, 4), "i", 0), ir.IterVar((0, 4), "j", 0)
    assert i in [j, i] and [j, i].index(i) == 1 and {i: 1, j: 2}[j] == 2
    assert i == i.var and i != j and i != None and i != "i"  # noqa: E711


def test_a_finite_literal_too_large_for_a_type_without_infinity_is_refused():
    assert ir.const(448.0, "e4m3_float8").value == 448
    with pytest.raises(ImmediateOutOfRange, match=r"literal 1000.0 does not fit e4m3_float8"):
        ir.const(1000.0, "e4m3_float8")


@pytest.mark.parametrize("value", [2**54 + 2**30 + 1, -(2**54 + 2**30 + 1), 2**24 + 1, 2**63 - 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_folded_conversion_of_an_integer_rounds_as_the_program_would(value, dtype):
    folded = ir.cast(ir.const(value, "int64"), ir.DataType(dtype))
    wide = np.int64(value).astype("float64" if dtype == "float64" else "float32")
    if isinstance(folded, ir.FloatImm):
        assert folded.value == float(wide.astype(ir.DataType(dtype).numpy()))


def test_a_folded_conversion_from_float64_to_float16_goes_by_float32():
    value = 1 + 2.0**-11 + 2.0**-40  # just above the middle between two float16: float32 forgets by how much
    folded = ir.cast(ir.const(value, "float64"), ir.DataType("float16"))
    assert folded.value == float(np.float16(np.float32(value))) == 1.0


def test_a_truth_value_has_no_negative():
    with pytest.raises(BadOperand, match="operator - is not defined for bool"):
        -ir.const(True)
