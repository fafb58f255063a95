"""Reductions: what the walk over the registry does not see (values are in test_operators.py)."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi


def test_names_tags_and_axes():
    x = te.placeholder((4, 5, 6), name="x")
    made = topi.sum(x, axis=(0, 2))
    assert (made.op.name, made.op.tag) == ("x_red", "comm_reduce")
    assert [axis.var.name for axis in made.op.reduce_axis] == ["k0", "k1"]
    place = topi.argmax(x, axis=1)
    assert (place.op.name, place.op.tag, str(place.dtype)) == ("x_red", "comm_reduce_idx", "int32")
    best = next(tensor.op for tensor in place.op.input_tensors if tensor.op is not x.op)
    assert (best.name, best.tag, best.num_outputs) == ("x_red_temp", "comm_reduce_idx", 1)
    assert topi.sum(x).shape == ()


@pytest.mark.parametrize("axis, keepdims", [(1, False), ((1, 2), True)])
def test_the_only_place_along_an_axis_is_not_looked_for(axis, keepdims):
    x = te.placeholder((5, 1, 1, 3), name="x")
    place = topi.argmin(x, axis=axis, keepdims=keepdims)
    assert not place.op.input_tensors
    out = np.full([int(size) for size in place.shape], 7, "int32")
    lw.build([x, place], autosched=True)(np.full((5, 1, 1, 3), np.nan, "float32"), out)
    assert not out.any()


def test_no_axis_is_a_copy():
    made = topi.max(te.placeholder((4, 5), name="x"), axis=())
    assert not made.op.reduce_axis and [int(size) for size in made.shape] == [4, 5]


@pytest.mark.parametrize("operator, reference", [(topi.all, np.all), (topi.any, np.any)])
@pytest.mark.parametrize("columns", [1, 44, 232])
def test_truth_values_of_columns(operator, reference, columns):
    x = te.placeholder((5, 2, columns), "bool", name="x")
    a = np.random.default_rng(columns).random((5, 2, columns)) < (0.9 if operator is topi.all else 0.1)
    result = np.zeros((5, columns), "bool")
    lw.build([x, operator(x, axis=1)], autosched=True)(a, result)
    assert np.array_equal(result, reference(a, axis=1))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("autosched", [False, True])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_sizes_that_are_not_known(size, autosched):
    n = te.size_var("n")
    x = te.placeholder((3, n), name="x")
    a = np.random.default_rng(size).integers(-9, 9, (3, size)).astype("float32")
    total, place = np.zeros(3, "float32"), np.zeros((3, 1), "int32")
    lw.build([x, topi.sum(x, axis=1), topi.argmin(x, axis=-1, keepdims=True)], autosched=autosched)(a, total, place)
    assert np.array_equal(total, a.sum(axis=1))
    assert np.array_equal(place[:, 0], a.argmin(axis=1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: topi.sum(x, axis=2), topi.BadAxis, "sum: axis 2 is not one of a tensor with 2 dimensions"),
        (lambda x: topi.max(te.placeholder((), name="y")), topi.InvalidShapeError, "nothing to reduce"),
        (lambda x: topi.all(x), topi.UnsuitableType, "elements of type float32"),
        (lambda x: topi.any(x), topi.UnsuitableType, "elements of type float32"),
        (lambda x: topi.argmax(x, axis=()), topi.InvalidShapeError, "a place is one along an axis"),
        (lambda x: topi.collapse_sum(x, (2, 3)), topi.InvalidShapeError, "4 is not 2"),
        (lambda x: topi.collapse_sum(x, (1, 4, 3)), topi.InvalidShapeError, "at most 2 dimensions"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(te.placeholder((4, 3), name="x"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((1,), 0), ((127,), 0), ((0,), 0), ((3, 0), 1), ((17, 129), 1), ((5, 33), (0, 1)), ((9, 31), 0)]
)
def test_truth_values_along_rows(name, shape, axes):
    given = te.placeholder(shape, "bool", name="given")
    out = getattr(topi, name)(given, axes)
    built = lw.build([given, out], autosched=True)
    for one_in in (1, 2, 40):  # all hold, half of them, few or none
        data = np.random.default_rng(one_in).integers(0, one_in, shape) == 0
        for values in (data, ~data):
            found = np.empty([int(size) for size in out.shape], "bool")
            built(values, found)
            assert np.array_equal(found, getattr(np, name)(values, axis=axes))
