"""Element-wise operators: what the walk over the registry does not see (values are in test_operators.py)."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir, topi


def test_names_and_tags():
    x = te.placeholder((4,), name="x")
    for made, name in [
        (topi.exp(x), "T_exp"),
        (topi.clip(x, 0, 1), "T_clip"),
        (topi.cast(x, "int32"), "T_cast"),
        (topi.full((2,), "float32", 1), "T_full"),
        (topi.elemwise_sum([x, x]), "T_elemwise_sum"),
        (topi.fast_exp(x), "T_fast_exp"),
    ]:
        assert (made.op.name, made.op.tag) == (name, "elemwise")
    with te.tag_scope("mine"):
        assert topi.exp(x).op.tag == "mine"


def test_what_changes_nothing_is_the_tensor_itself():
    whole, some = te.placeholder((4,), "int32", name="whole"), te.placeholder((4,), "uint8", name="some")
    for made in (topi.floor(whole), topi.ceil(whole), topi.trunc(whole), topi.round(whole), topi.cast(whole, "int32")):
        assert made is whole
    assert topi.abs(some) is some
    assert topi.abs(whole) is not whole


def test_expressions_give_expressions():
    n = te.var("n")
    assert isinstance(topi.cast(n, "float32"), tir.PrimExpr)
    assert isinstance(topi.ceil_log2(n), tir.PrimExpr)
    assert isinstance(topi.exp(te.var("x", "float32")), tir.PrimExpr)
    assert str(topi.cast(2, "float32x4").dtype) == "float32x4"


@pytest.mark.parametrize("size", [0, 1, 7])
def test_sizes_that_are_not_known(size):
    n = te.size_var("n")
    x = te.placeholder((n, 3), name="x")
    out = topi.trilu(topi.clip(topi.negative(x), -2, te.const(1.5, "float32")), 0, True)
    a = np.arange(size * 3, dtype="float32").reshape(size, 3) - 4
    result = np.zeros_like(a)
    lw.build([x, out])(a, result)
    assert np.array_equal(result, np.triu(np.clip(-a, -2, 1.5)))
    assert np.array_equal(out.shape[0].name, "n")


def test_full_takes_expressions_and_numbers_of_rank_0():
    value = te.placeholder((), "float32", name="value")
    out = np.zeros((2, 2), "int32")
    lw.build([value, topi.full((2, 2), "int32", value())])(np.array(7.5, "float32"), out)
    assert (out == 7).all()


def test_whole_tensors_answer_te_functions():
    x = te.placeholder((4,), name="x")
    assert te.exp(x).op.tag == topi.exp(x).op.tag == "elemwise"
    assert (x + 1).op.tag == topi.add(x, 1).op.tag == "broadcast"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: topi.elemwise_sum([]), topi.InvalidShapeError, "nothing to add"),
        (lambda x: topi.elemwise_sum([x, topi.full((5,), "float32", 0)]), topi.InvalidShapeError, r"\(4,\).* \(5,\)"),
        (lambda x: topi.trilu(x, 0, True), topi.InvalidShapeError, "no triangle"),
        (lambda x: topi.fixed_point_multiply(x, 1, 1), topi.UnsuitableType, "elements of type float32"),
        (lambda x: topi.reinterpret(x, "int8"), TypeError, "another width"),
        (lambda x: topi.bitwise_not(x), TypeError, "bits of integers"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(te.placeholder((4,), name="x"))
