"""Operators of two operands: what the walk over the registry does not see (values are in test_operators.py)."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir, topi


def test_names_and_tags():
    x = te.placeholder((4,), name="x")
    for made, name in [
        (topi.add(x, x), "T_add"),
        (topi.divide(x, 2), "T_divide"),
        (topi.where(topi.less(x, 0), x, 0.0), "T_where"),
        (topi.broadcast_to(x, (3, 4)), "T_broadcast_to"),
    ]:
        assert (made.op.name, made.op.tag) == (name, "broadcast")


def test_two_expressions_give_an_expression():
    n = te.var("n")
    assert isinstance(topi.add(n, 1), tir.PrimExpr)
    assert isinstance(topi.equal(n, n), tir.PrimExpr)
    assert int(topi.maximum(3, tir.const(5))) == 5
    assert topi.power(2.0, te.var("x", "float32")).dtype == "float32"


def test_a_tensor_of_rank_0_gives_a_tensor():
    x = te.placeholder((), name="x")
    assert isinstance(topi.add(x, x), te.Tensor)
    assert isinstance(topi.add(x, 1), te.Tensor)


@pytest.mark.parametrize(("one", "other"), [(5, 5), (1, 5), (5, 1), (0, 0)])
def test_sizes_that_are_not_known(one, other):
    x = te.placeholder((te.size_var("n"), 3), name="x")
    y = te.placeholder((te.size_var("m"), 1), name="y")
    out = topi.where(topi.greater(x, y), x, y)
    a = np.arange(one * 3, dtype="float32").reshape(one, 3)
    b = np.full((other, 1), 4, "float32")
    result = np.zeros((max(one, other), 3), "float32")
    lw.build([x, y, out])(a, b, result)
    assert np.array_equal(result, np.maximum(a, b))


def test_broadcast_to_a_size_that_is_not_known():
    n = te.size_var("n")
    x, like = te.placeholder((3, 1), name="x"), te.placeholder((n,), name="like")
    out = topi.broadcast_to(x, (2, 3, n))
    result = np.zeros((2, 3, 5), "float32")
    lw.build([x, like, out])(np.arange(3, dtype="float32").reshape(3, 1), np.zeros(5, "float32"), result)
    assert np.array_equal(result, np.broadcast_to(np.arange(3).reshape(3, 1), (2, 3, 5)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: topi.add(x, te.placeholder((5,), name="y")), ValueError, "Incompatible broadcast dims"),
        (lambda x: topi.broadcast_to(x, ()), topi.InvalidShapeError, "more dimensions"),
        (lambda x: topi.broadcast_to(x, (5,)), topi.InvalidShapeError, "4 is not repeated to 5"),
        (lambda x: topi.broadcast_to(x, (1,)), topi.InvalidShapeError, "4 is not repeated to 1"),
        (lambda x: topi.where(x, x, topi.cast(x, "int32")), topi.UnsuitableType, "float32, y of type int32"),
        (lambda x: topi.left_shift(x, 1), TypeError, "bits of integers"),
        (lambda x: topi.divide(topi.cast(x, "int32"), 0), ZeroDivisionError, "literal 0"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(te.placeholder((4,), name="x"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["divide", "trunc_divide", "floor_divide", "mod", "trunc_mod", "floor_mod"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_whole_numbers_divided_by_zero_and_minus_one_stop_nothing(name, dtype):
    low = np.iinfo(dtype).min
    x = np.array([7, 0, low, low, 9], dtype)
    y = np.array([0, 0, 0, 1 if dtype == "uint8" else -1, 4], dtype)
    a, b = te.placeholder(x.shape, dtype, name="a"), te.placeholder(x.shape, dtype, name="b")
    out = np.empty_like(x)
    lw.build(te.create_prim_func([a, b, getattr(topi, name)(a, b)]))(x, y, out)
    last = 1 if "mod" in name else 2
    least = 0 if "mod" in name else low  # which wraps
    assert out.tolist() == [0, 0, 0, least, last]
