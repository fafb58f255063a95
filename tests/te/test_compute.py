"""te.compute: axes, outputs, and the rules a body follows."""

from __future__ import annotations

import functools

import pytest

from loopwright import ir, te


@pytest.fixture
def A():
    return te.placeholder((4, 8), name="A")


@pytest.fixture
def k():
    return te.reduce_axis((0, 8), name="k")


def _names(tensor):
    return [axis.var.name for axis in tensor.op.axis]


def test_attributes(A, k):
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C", tag="t", attrs={"x": 1})
    op = C.op
    assert isinstance(op, te.ComputeOp)
    assert (op.name, op.tag, op.attrs, op.num_outputs) == ("C", "t", {"x": 1}, 1)
    assert C.axis is op.axis
    assert [axis.var.name for axis in op.axis] == ["i"]
    assert op.reduce_axis == (k,)
    assert isinstance(op.body[0], ir.Reduce)
    assert op.input_tensors == [A]
    assert (C.name, C.dtype, [int(size) for size in C.shape]) == ("C", "float32", [4])


def test_axes_are_named_after_the_arguments(A):
    assert _names(te.compute((4, 8), lambda row, col: A[row, col])) == ["row", "col"]
    assert _names(te.compute((4, 8), lambda *ax: A(*ax))) == ["i0", "i1"]
    assert _names(te.compute((4, 8), lambda row, *ax: A(row, *ax))) == ["row", "i0"]
    assert _names(te.compute((4, 8), lambda *ax: A(*ax), varargs_names=["x", "y"])) == ["x", "y"]
    assert _names(te.compute((4, 8), lambda: 1.0)) == ["i0", "i1"]


def test_callables_other_than_lambdas(A):
    def shifted(by, i, j):
        return A[i, j] + by

    class Body:
        def __call__(self, i, j):
            return A[i, j]

        def method(self, i, j):
            return A[i, j]

    assert _names(te.compute((4, 8), functools.partial(shifted, 2.0))) == ["i", "j"]
    assert _names(te.compute((4, 8), Body())) == ["i", "j"]
    assert _names(te.compute((4, 8), Body().method)) == ["i", "j"]


def test_fewer_arguments_than_dimensions_give_a_lower_rank(A):
    assert te.compute((4, 8), lambda i: A[i, 0]).ndim == 1


def test_a_bare_expression_is_rank_1_and_floats_lose_their_fraction():
    n = te.var("n")
    assert te.compute(n, lambda i: i).shape[0] is n
    assert int(te.compute((7 / 2,), lambda i: i).shape[0]) == 3


def test_several_outputs(A):
    p, q = te.compute((4,), lambda i: (A[i, 0], i), name="p")
    assert p.op is q.op
    assert (p.dtype, q.dtype, p.value_index, q.value_index) == ("float32", "int32", 0, 1)
    assert isinstance(te.compute((4,), lambda i: [A[i, 0]]), te.Tensor)


def test_input_tensors_in_order_of_appearance(A):
    B = te.placeholder((4, 8), name="B")
    C = te.compute((4,), lambda i: B[i, 0] + A[i, 0] + B[i, 1])
    assert C.op.input_tensors == [B, A]


def test_python_numbers_are_bodies():
    assert te.compute((4,), lambda i: 1).dtype == "int32"
    assert te.compute((4,), lambda i: 1.5).dtype == "float32"
    assert te.compute((4,), lambda i: True).dtype == "bool"


def test_too_many_arguments(A):
    message = r"te\.compute B: the function takes 3 indices \(i, j, k\), but the shape \(4, 8\) has 2 dimensions"
    with pytest.raises(te.TooManyAxes, match=message):
        te.compute((4, 8), lambda i, j, k: A[i, j], name="B")
    with pytest.raises(TypeError):
        te.compute((), lambda i: 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda i, **rest: 1, r"argument \*\*rest of the function collects keywords"),
        (lambda i, *, j: 1, "argument j of the function can be given by keyword only"),
        (lambda i, j=0: 1, "argument j of the function has a default value"),
    ],
)
def test_arguments_that_are_no_axes(function, message):
    with pytest.raises(te.BadComputeFunction, match=message):
        te.compute((4, 8), function)
    with pytest.raises(AssertionError):
        te.compute((4, 8), function)


def test_varargs_names_must_fit(A):
    with pytest.raises(te.WrongVarargsNames, match=r"varargs_names gives 1 names \['x'\] for 2 remaining dimensions"):
        te.compute((4, 8), lambda *ax: A(*ax), varargs_names=["x"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"te\.compute B: the function gives None for the element(.|\n)*is a return missing"),
        ("text", "the element has type handle"),
        ([], "the function returned no value"),
        ((1, (2, 3)), "output 1 is a tuple"),
    ],
)
def test_bad_bodies(value, message):
    with pytest.raises(te.BadComputeBody, match=message):
        te.compute((4,), lambda i: value, name="B")


def test_a_whole_tensor_is_no_body(A):
    with pytest.raises(te.WholeTensor, match="tensor A of shape"):
        te.compute((4, 8), lambda i, j: A)


def test_bad_shape():
    with pytest.raises(te.BadShape, match=r"te\.compute B: the shape is the bare number 4"):
        te.compute(4, lambda i: i, name="B")


def test_a_reduction_is_the_outermost_part(A, k):
    with pytest.raises(te.ReductionInside, match="B: the reduction over k stands inside a larger expression"):
        te.compute((4,), lambda i: te.sum(A[i, k], axis=k) + 1, name="B")


def test_reductions_do_not_nest(A, k):
    l = te.reduce_axis((0, 4), name="l")
    message = r"te\.compute B: the reduction over k stands inside another reduction(.|\n)*axis=\[…\]"
    with pytest.raises(te.ReductionInside, match=message):
        te.compute((), lambda: te.sum(te.max(A[l, k], axis=k), axis=l), name="B")


def test_a_reduce_axis_outside_its_reduction(A, k):
    message = r"te\.compute B: the reduce axis k is used outside a reduction over it(.|\n)*te\.sum\(…, axis=k\)"
    with pytest.raises(te.AxisOutOfPlace, match=message):
        te.compute((4,), lambda i: A[i, k] + 1, name="B")


def test_a_reduce_axis_that_is_not_reduced(A, k):
    l = te.reduce_axis((0, 4), name="l")
    with pytest.raises(te.AxisOutOfPlace, match=r"the reduce axis l is used here(.|\n)*axis=\[k, l\]"):
        te.compute((4,), lambda i: te.sum(A[l, k], axis=k), name="B")
    with pytest.raises(te.AxisOutOfPlace, match="the reduce axis l is used here"):
        te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=l > 0), name="B")


def test_a_start_value_does_not_use_the_reduce_axis(A, k):
    with pytest.raises(te.AxisOutOfPlace, match="the reduce axis k is used in a start value"):
        te.compute((4,), lambda i: te.sum(A[i, k], axis=k, init=A[i, k]), name="B")


def test_an_axis_of_another_compute(A):
    B = te.compute((4,), lambda i: A[i, 0], name="B")
    with pytest.raises(te.AxisOutOfPlace, match=r"te\.compute C: i is an axis of another compute"):
        te.compute((4,), lambda j: A[B.op.axis[0], j], name="C")


def test_outputs_do_not_mix_kinds(A, k):
    message = "its outputs mix reductions and plain values: output 0 is a reduction, output 1 is no reduction"
    with pytest.raises(te.ReductionsDiffer, match=message):
        te.compute((4,), lambda i: (te.sum(A[i, k], axis=k), A[i, 0]))


def _pair_reducer():
    return te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda s, t: (0, 1), name="pair")


def test_fields_of_separate_but_equal_calls_are_one_reduction(A, k):
    pair = _pair_reducer()
    outputs = te.compute((4,), lambda i: (pair((A[i, k], A[i, k]), k)[0], pair((A[i, k], A[i, k]), k)[1]))
    assert len(outputs) == 2


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ("combiner", "combiner", "differ in combiner: output 1 combines by another reducer"),
        ("axis", "axis", "differ in axis: output 1 reduces over l, output 0 over k"),
        ("source", "source", "differ in source: output 1 reduces other values than output 0"),
        ("where", "condition", "differ in condition: the where= of output 1 is not that of output 0"),
        ("init", "init", "differ in init: the init= of output 1 is not that of output 0"),
    ],
)
def test_fields_that_differ_are_named(A, k, change, field, message):
    l = te.reduce_axis((0, 8), name="l")
    pair, other = _pair_reducer(), _pair_reducer()

    def body(i):
        first = pair((A[i, k], A[i, k]), axis=k, where=k > 1, init=[0, 1])
        axis = l if change == "axis" else k
        reducer = other if change == "combiner" else pair
        value = A[i, axis] * 2 if change == "source" else A[i, axis]
        where = axis > (2 if change == "where" else 1)
        second = reducer((value, value), axis=axis, where=where, init=[0, 2 if change == "init" else 1])
        return first[0], second[1]

    with pytest.raises(te.ReductionsDiffer, match=message) as caught:
        te.compute((4,), body)
    assert caught.value.fields["field"] == field
    assert "one te.comm_reducer over the tuple" in str(caught.value)


def test_all_fields_are_returned(A, k):
    pair = _pair_reducer()
    with pytest.raises(te.ReductionsDiffer, match=r"the reduction has 2 fields, .* but the outputs are field 0"):
        te.compute((4,), lambda i: pair((A[i, k], A[i, k]), axis=k)[0])
    with pytest.raises(te.ReductionsDiffer, match="the outputs are fields 0, 0"):
        te.compute((4,), lambda i: (pair((A[i, k], A[i, k]), axis=k)[0],) * 2)


def test_deep_and_shared_bodies(A):
    def deep(i):
        value = A[i, 0].as_expr()
        for _ in range(10_000):
            value = value + A[i, 1]
        return value

    def shared(i):
        value = A[i, 0].as_expr()
        for _ in range(60):  # 2**60 paths
            value = value + value
        return value

    assert te.compute((4,), deep).op.input_tensors == [A]
    assert te.compute((4,), shared).op.input_tensors == [A]
