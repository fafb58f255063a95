"""Reducers: identities, tuples, direct use, and what they refuse."""

from __future__ import annotations

import math

import pytest

from loopwright import ir, te


@pytest.fixture
def A():
    return te.placeholder((4, 8), name="A")


@pytest.fixture
def k():
    return te.reduce_axis((0, 8), name="k")


def test_sum(A, k):
    value = te.sum(A[0, k], axis=k)
    assert isinstance(value, ir.Reduce)
    assert value.axis == (k,)
    assert isinstance(value.combiner.result[0], ir.Add)
    assert value.combiner.identity_element[0].value == 0
    assert (value.value_index, value.dtype, value.init, bool(value.condition)) == (0, "float32", (), True)


@pytest.mark.parametrize(
    ("dtype", "least", "greatest"),
    [
        ("float32", -math.inf, math.inf),
        ("float16", -math.inf, math.inf),
        ("bfloat16", -math.inf, math.inf),
        ("e4m3_float8", -448.0, 448.0),
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("int64", -(2**63), 2**63 - 1),
    ],
)
def test_identities(k, dtype, least, greatest):
    B = te.placeholder((8,), dtype)
    assert te.max(B[k], axis=k).combiner.identity_element[0].value == least
    assert te.min(B[k], axis=k).combiner.identity_element[0].value == greatest
    assert te.sum(B[k], axis=k).combiner.identity_element[0].dtype == dtype


def test_axis_forms(A, k):
    l = te.reduce_axis((0, 4), name="l")
    assert te.sum(A[l, k], [l, k]).axis == (l, k)
    assert te.sum(A[l, k], (l, k)).axis == (l, k)
    assert te.sum(A[l, k], axis=[l, k]).axis == (l, k)


def test_where_and_init(A, k):
    value = te.max(A[0, k], axis=k, where=k > 3, init=7)
    assert isinstance(value.condition, ir.GT)
    assert (value.init[0].value, value.init[0].dtype) == (7.0, "float32")
    positional = te.max(A[0, k], k, k > 3, 7)
    assert isinstance(positional.condition, ir.GT)
    assert positional.init[0].value == 7.0


def test_direct_use(A):
    i = te.var("i")
    assert isinstance(te.max(A[i, 0], A[i, 1]), ir.Max)
    assert isinstance(te.max(A[i, 0], 0.0), ir.Max)
    assert isinstance(te.min(i, 3, 4), ir.Min)
    assert int(te.sum(1, 2, 3, 4, 5)) == 15
    assert int(te.max(3, 7, 5)) == 7


def test_reductions_of_one_kind_share_their_combiner(A, k):
    assert te.sum(A[0, k], k).combiner is te.sum(A[1, k], k).combiner


def test_tuple_reducer(k):
    I, V = te.placeholder((8,), "int64", name="I"), te.placeholder((8,), name="V")
    argmax = te.comm_reducer(
        lambda x, y: (ir.Select(x[1] >= y[1], x[0], y[0]), ir.Select(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (ir.const(-1, index), te.min_value(value)),
        name="argmax",
    )
    index, value = argmax((I[k], V[k]), axis=k)
    assert argmax.__name__ == "argmax"
    assert index.combiner is value.combiner
    assert index.source is value.source
    assert (index.value_index, value.value_index, index.dtype, value.dtype) == (0, 1, "int64", "float32")


def test_a_data_axis_is_not_reduced(A):
    B = te.compute((4, 8), lambda i, j: A[i, j])
    with pytest.raises(te.BadReduceAxis, match=r"te\.sum: i is a data axis, not a reduce axis(.|\n)*te\.reduce_axis"):
        te.sum(A[0, 0], axis=B.op.axis[0])
    with pytest.raises(te.BadReduceAxis, match=r"the axis variable j \(a data axis of a compute"):
        te.compute((4, 8), lambda i, j: te.sum(A[i, j], axis=j))
    with pytest.raises(te.BadReduceAxis, match="the axis variable j"):
        te.compute((4, 8), lambda i, j: te.sum(A[i, j], [j]))
    with pytest.raises(te.BadReduceAxis, match=r"threadIdx\.x is a thread axis, not a reduce axis"):
        te.sum(A[0, 0], axis=te.thread_axis("threadIdx.x"))


def test_bad_axes(A, k):
    with pytest.raises(te.BadReduceAxis, match="the axis k is given twice"):
        te.sum(A[0, k], axis=[k, k])
    with pytest.raises(te.BadReduceAxis, match="the list of axes is empty"):
        te.sum(A[0, 0], axis=[])
    with pytest.raises(te.BadReduceAxis, match="the axis int 1 is not a reduce axis"):
        te.sum(A[0, k], axis=1)
    with pytest.raises(te.BadReduceAxis, match="no axis is given"):
        te.sum(A[0, k])


def test_bad_calls(A, k):
    with pytest.raises(te.BadReducerCall, match="init= makes no sense without an axis"):
        te.max(A[0, 0], A[0, 1], init=0.0)
    with pytest.raises(AssertionError):
        te.max(A[0, 0], A[0, 1], init=0.0)
    with pytest.raises(te.BadReducerCall, match="where= makes no sense without an axis"):
        te.max(A[0, 0], A[0, 1], where=A[0, 0] > 1)
    with pytest.raises(te.BadReducerCall, match="where= has type float32, not bool"):
        te.max(A[0, k], axis=k, where=A[0, k])
    with pytest.raises(te.BadReducerCall, match="init= has 2 values for 1 reduced fields"):
        te.max(A[0, k], axis=k, init=[1, 2])
    with pytest.raises(te.BadReducerCall, match="init= of field 0 has type int32, but the reduced value is float32"):
        te.max(A[0, k], axis=k, init=te.var("n"))
    with pytest.raises(te.BadReducerCall, match="too many arguments"):
        te.max(A[0, k], k, None, None, 1)
    with pytest.raises(te.BadReducerCall, match="the tuple of values is empty"):
        te.sum((), axis=k)


def test_fcombine_takes_two(k):
    with pytest.raises(te.BadReducer, match=r"te\.comm_reducer bad: fcombine takes 3 arguments, not 2"):
        te.comm_reducer(lambda x, y, z: x, lambda t: 0, name="bad")
    with pytest.raises(te.BadReducer, match="fcombine takes a variable number of arguments"):
        te.comm_reducer(lambda *x: x, lambda t: 0)
    with pytest.raises(AssertionError):
        te.comm_reducer(lambda x: x, lambda t: 0)


@pytest.mark.parametrize(
    ("combine", "identity", "message"),
    [
        (lambda x, y: x + y, lambda t: None, "fidentity gives None: the identity is missing"),
        (lambda x, y: None, lambda t: 0, "fcombine gives None: the combined value is missing"),
        (lambda x, y: x + y, lambda t: ir.const(0, "int8"), "fidentity gives int8 for field 0, whose values"),
        (lambda x, y: x < y, lambda t: 0, "fcombine gives bool for field 0, whose values are float32"),
        (lambda x, y: x + y, lambda t, u: (0, 0), "fidentity takes 2 arguments, but 1 field is reduced"),
        (lambda x, y: (x, y), lambda t: 0, "fcombine gives 2 values, but 1 field is reduced"),
    ],
)
def test_bad_reducers(A, k, combine, identity, message):
    with pytest.raises(te.BadReducer, match=message):
        te.comm_reducer(combine, identity, name="bad")(A[0, k], axis=k)


@pytest.mark.parametrize(
    ("combine", "identity", "message"),
    [
        (lambda x, y: (x[0], x[1]), lambda t, u: (0, None), "fidentity gives None for field 1: the identity is"),
        (lambda x, y: (x[0], x[1]), lambda t, u: 0, "fidentity gives 1 value, but 2 fields are reduced"),
        (lambda x, y: x[0], lambda t, u: (0, 0), "fcombine gives 1 value, but 2 fields are reduced"),
        (lambda x, y: (x[0], x[1]), lambda t: (0, 0), "fidentity takes 1 argument, but 2 fields are reduced"),
        (lambda x, y: (x[1], x[1]), lambda t, u: (0, 0), "fcombine gives int32 for field 0, whose values are float32"),
    ],
)
def test_bad_tuple_reducers(A, k, combine, identity, message):
    with pytest.raises(te.BadReducer, match=message):
        te.comm_reducer(combine, identity, name="bad")((A[0, k], k), axis=k)
