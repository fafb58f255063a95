"""Tensors: indexing, equality, use as numbers."""

from __future__ import annotations

import pytest

from loopwright import ir, te
from loopwright.runtime.dtype import UnknownDataType
from loopwright.runtime.errors import NotBuilt


@pytest.fixture
def A():
    return te.placeholder((4, 5), name="A")


def test_attributes(A):
    assert (A.name, A.dtype, A.ndim, A.value_index) == ("A", "float32", 2, 0)
    assert [int(size) for size in A.shape] == [4, 5]
    assert isinstance(A.op, te.PlaceholderOp)
    assert A.op.output(0) is A
    assert (A.op.name, A.op.num_outputs, A.op.input_tensors) == ("A", 1, [])
    assert repr(A) == "Tensor(A, shape=(4, 5), dtype='float32')"


def test_all_ways_to_index_read_the_same_element(A):
    i, j = te.var("i"), te.var("j")
    for load in (A[i, j].as_expr(), A[i][j].as_expr(), A(i, j), A[[i, j]].as_expr(), A[i, j].asobject()):
        assert isinstance(load, ir.ProducerLoad)
        assert load.producer is A
        assert load.indices[0] is i
        assert load.indices[1] is j
        assert load.dtype == "float32"


def test_iteration_variables_index(A):
    k = te.reduce_axis((0, 5), name="k")
    assert A[0, k].as_expr().indices[1] is k.var


def test_rank_0():
    z = te.placeholder((), name="z")
    for load in (z(), z[()].as_expr(), z.as_expr()):
        assert isinstance(load, ir.ProducerLoad)
        assert load.indices == ()
    assert isinstance(z + 1, ir.Add)
    assert isinstance(1 - z, ir.Sub)
    assert isinstance(z == 1.0, ir.EQ)
    assert isinstance(z != 1.0, ir.NE)


def test_slices_act_as_numbers(A):
    i = te.var("i")
    assert isinstance(A[i, 0] * 2 + A[i, 1], ir.Add)
    assert isinstance(2.0 / A[i, 0], ir.Div)
    assert isinstance(-A[i, 0], ir.Mul)
    assert isinstance(A[i, 0] < A[i, 1], ir.LT)
    assert isinstance(A[i, 0] == A[i, 1], ir.EQ)
    assert A[i, 0].astype("float64").dtype == "float64"
    assert te.exp(A[i, 0]).dtype == "float32"
    assert isinstance(i.astype("float32") + A[i, 0], ir.Add)


def test_equality_is_that_of_operation_and_output(A):
    B = te.placeholder((4, 5), name="A")
    assert A == A.op.output(0)
    assert A != B
    assert len({A, B, A.op.output(0)}) == 2
    assert A != 3
    p, q = te.compute((4,), lambda i: (A[i, 0], A[i, 1]), name="p")
    assert p != q
    assert (p.name, q.name) == ("p.v0", "p.v1")


def test_equality_of_rank_0_is_ambiguous():
    y, z = te.placeholder((), name="y"), te.placeholder((), name="z")
    assert y == y
    with pytest.raises(te.AmbiguousEquality, match=r"y == z: both have rank 0.*\n.*\n.*y\.same_as\(z\)"):
        y == z


@pytest.mark.parametrize("use", [lambda A: te.power(A, 2), lambda A: te.max(A, 1), lambda A: ir.as_expr(A)])
def test_a_whole_tensor_is_not_a_number(A, use):
    with pytest.raises(te.WholeTensor, match=r"tensor A of shape \(4, 5\) is used as one number") as caught:
        use(A)
    assert "A[i, j]" in str(caught.value)


def test_wrong_number_of_indices(A):
    with pytest.raises(ir.WrongIndexCount, match="A has 2 dimensions, but 3 indices were given"):
        A[0, 1, 2]
    with pytest.raises(ir.WrongIndexCount, match="A has 2 dimensions, but 3 indices were given"):
        A[0][1][2]
    with pytest.raises(ir.WrongIndexCount, match=r"A has 2 dimensions, but 1 index was given(.|\n)*A\[i, j\]"):
        A[0] + 1
    with pytest.raises(ValueError, match="A has 2 dimensions, but 1 index was given"):
        A(0)


def test_indices_are_integers(A):
    with pytest.raises(te.BadIndex, match=r"A: index 1 is float 1\.5, not an integer"):
        A[0, 1.5]
    with pytest.raises(te.BadIndex, match="A: index 0 is of type float32, not an integer"):
        A[A[0, 0], 0]
    with pytest.raises(te.BadIndex, match="A: index 1 is of type bool"):
        A[0][te.var("i") < 3]
    with pytest.raises(te.BadIndex, match="A: index 0 is NoneType None"):
        A[None, 0]
    with pytest.raises(NotBuilt, match="a range in the indices of te tensor A, except for a tensor intrinsic, is not"):
        A[0:2, 0] + 1
    with pytest.raises(ValueError, match="A has 2 dimensions, but 1 index was given"):
        A[0:2]


def test_shapes():
    n = te.size_var("n")
    assert te.placeholder(n).shape[0] is n
    assert te.placeholder([n, 3]).ndim == 2
    assert te.placeholder((0, 3)).ndim == 2
    assert te.placeholder((n, te.const(2, "int64"))).shape[1].dtype == "int64"
    assert te.placeholder((3,), "int8").dtype == "int8"


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (4, r"te\.placeholder A: the shape is the bare number 4(.|\n)*write \(4,\)"),
        ("ab", "the shape is str 'ab'"),
        (None, "the shape is NoneType None"),
        ((4, 2.5), r"dimension 1 of the shape is float 2\.5(.|\n)*use // to divide"),
        ((4, -1), "dimension 1 of the shape is -1(.|\n)*0 makes an empty tensor"),
        ((True,), "dimension 0 of the shape is bool True"),
        ((te.var("x", "float32"),), "dimension 0 of the shape has type float32"),
        ((te.placeholder((3,), "int32", name="S")(0),), "dimension 0 of the shape reads a tensor"),
    ],
)
def test_bad_shapes(shape, message):
    with pytest.raises(te.BadShape, match=message):
        te.placeholder(shape, name="A")


def test_bare_integer_shape_is_a_type_error():
    with pytest.raises(TypeError):
        te.placeholder(4)


def test_unknown_dtype():
    with pytest.raises(UnknownDataType, match="unknown data type 'float33'"):
        te.placeholder((4,), "float33")


def test_errors_show_the_users_line():
    with pytest.raises(te.BadShape, match=r"call: te\.placeholder\(7\) at test_tensor\.py:\d+"):
        te.placeholder(7)
