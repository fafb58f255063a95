"""Data movement: symbolic sizes, stages as schedules find them, what is refused. (Values: test_operators.py.)"""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.ir import IntImm, substitute
from loopwright.topi.errors import BadWindow, InvalidShapeError, UnsupportedLayout
from loopwright.topi.movement.joining import CannotSplit
from loopwright.topi.movement.scatter import UnknownReduction
from loopwright.topi.movement.slicing import BadSlice
from loopwright.topi.parts.axes import BadAxis
from loopwright.topi.parts.choices import UnknownChoice, UnsuitableType
from loopwright.topi.parts.sizes import known
from loopwright.topi.registry import OPERATORS

N = 5  # what the symbolic size is when the programs run


def tensor(*shape, dtype="float32", name="data"):
    return te.placeholder(shape, dtype, name)


def values(*shape, dtype="float32"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def sized(n, size):
    """A size with the symbol `n` as a number."""
    return known(substitute(size, {n: IntImm("int32", N)}))


n = te.size_var("n")
AT = np.array([3, 0, 4], "int64")

# Operator, its arguments with the symbol n, and the arrays at n = 5, in the order of the tensors.
SYMBOLIC = {
    "reshape": lambda: ("reshape", (tensor(n, 4), (2, n * 2)), [values(N, 4)], (values(N, 4), (2, N * 2))),
    "reshape_one_group": lambda: ("reshape", (tensor(3, n), (n, 3)), [values(3, N)], (values(3, N), (N, 3))),
    "squeeze": lambda: ("squeeze", (tensor(n, 1),), [values(N, 1)], (values(N, 1),)),
    "transpose": lambda: ("transpose", (tensor(n, 3),), [values(N, 3)], (values(N, 3),)),
    "concatenate": lambda: (
        "concatenate",
        ([tensor(n, 2), tensor(3, 2, name="more")],),
        [values(N, 2), values(3, 2)],
        ([values(N, 2), values(3, 2)],),
    ),
    "strided_slice": lambda: (
        "strided_slice",
        (tensor(n, 3), [1, 2], [-1, -9], [2, -1]),
        [values(N, 3)],
        (values(N, 3), [1, 2], [-1, -9], [2, -1]),
    ),
    "strided_slice_far": lambda: (
        "strided_slice",
        (tensor(n), [-2], [2**31 - 1]),
        [values(N)],
        (values(N), [-2], [2**31 - 1]),
    ),
    "take": lambda: (
        "take",
        (tensor(n, 3), tensor(3, dtype="int64", name="at"), 0),
        [values(N, 3), AT],
        (values(N, 3), AT, 0),
    ),
    "scatter_elements": lambda: (
        "scatter_elements",
        (tensor(n, 3), tensor(n, 1, dtype="int64", name="at"), tensor(n, 1, name="new"), 1),
        [values(N, 3), np.array([[2]] * N, "int64"), -values(N, 1)],
        (values(N, 3), np.array([[2]] * N, "int64"), -values(N, 1), 1),
    ),
    "scatter_nd": lambda: (
        "scatter_nd",
        (tensor(4, n), tensor(1, 2, dtype="int64", name="at"), tensor(2, n, name="new"), "add"),
        [values(4, N), np.array([[3, 3]], "int64"), values(2, N)],
        (values(4, N), np.array([[3, 3]], "int64"), values(2, N), "add"),
    ),
    "tile": lambda: ("tile", (tensor(n, 2), (2, 3)), [values(N, 2)], (values(N, 2), (2, 3))),
    "one_hot": lambda: (
        "one_hot",
        (tensor(n, dtype="int32"), 1, 0, 4, -1, "float32"),
        [values(N, dtype="int32")],
        (values(N, dtype="int32"), 1, 0, 4, -1, "float32"),
    ),
    "shape": lambda: ("shape", (tensor(n, 3),), [values(N, 3)], (values(N, 3),)),
    "ndarray_size": lambda: ("ndarray_size", (tensor(n, 3),), [values(N, 3)], (values(N, 3),)),
    "sequence_mask": lambda: (
        "sequence_mask",
        (tensor(n, 3), tensor(3, dtype="int64", name="lengths")),
        [values(N, 3), AT],
        (values(N, 3), AT),
    ),
    "layout_transform": lambda: (
        "layout_transform",
        (tensor(n, 5), "NC", "NC4c"),
        [values(N, 5)],
        (values(N, 5), "NC", "NC4c"),
    ),
    "matrix_set_diag": lambda: (
        "matrix_set_diag",
        (tensor(n, 3, 3), tensor(n, 3, name="diagonal")),
        [values(N, 3, 3), -values(N, 3)],
        (values(N, 3, 3), -values(N, 3)),
    ),
    "sparse_to_dense": lambda: (
        "sparse_to_dense",
        (tensor(n, dtype="int64", name="at"), (8,), tensor(n, name="new")),
        [values(N, dtype="int64"), values(N)],
        (values(N, dtype="int64"), (8,), values(N)),
    ),
    "nn.depth_to_space": lambda: (
        "nn.depth_to_space",
        (tensor(1, 4, n, 2), 2),
        [values(1, 4, N, 2)],
        (values(1, 4, N, 2), 2),
    ),
    "nn.space_to_batch_nd": lambda: (
        "nn.space_to_batch_nd",
        (tensor(n, 4), [2], [0], [0]),
        [values(N, 4)],
        (values(N, 4), [2], [0], [0]),
    ),
    "nn.fifo_buffer": lambda: (
        "nn.fifo_buffer",
        (tensor(n, 1), tensor(n, 4, name="buffer"), 1),
        [values(N, 1), -values(N, 4)],
        (values(N, 1), -values(N, 4), 1),
    ),
}


def placeholders(value):
    if isinstance(value, te.Tensor):
        return [value]
    return [one for item in value for one in placeholders(item)] if isinstance(value, (list, tuple)) else []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", SYMBOLIC)
def test_sizes_may_be_symbols(case):
    name, arguments, arrays, given = SYMBOLIC[case]()
    output = OPERATORS[name].compute(*arguments)
    expected = OPERATORS[name].reference(*given)
    assert [sized(n, size) for size in output.shape] == list(expected.shape)
    result = np.zeros(expected.shape, str(output.dtype))
    lw.build([*placeholders(arguments), output], target="llvm")(*arrays, result)
    assert np.array_equal(result, expected)


def test_a_slice_whose_bounds_are_tensors():
    data = tensor(7, 3)
    begin, end, strides = (te.placeholder((1,), "int32", name) for name in ("begin", "end", "strides"))
    part = topi.strided_slice(data, begin, end, strides)
    program = lw.build([data, begin, end, strides, part], target="llvm")
    x = values(7, 3)
    for low, high, step in [(1, 6, 2), (6, 0, -3), (2, 3, 1)]:
        expected = x[low:high:step]
        result = np.zeros_like(expected)
        program(x, *[np.array([bound], "int32") for bound in (low, high, step)], result)
        assert np.array_equal(result, expected)


def test_a_range_whose_bounds_are_tensors():
    start, step = te.placeholder((), "int64", "start"), te.placeholder((), "int64", "step")
    counted = topi.arange(start, te.placeholder((), "int64", "stop"), step, "int64")
    result = np.zeros(4, "int64")
    lw.build([start, step, counted], target="llvm")(np.array(3), np.array(-2), result)
    assert result.tolist() == [3, 1, -1, -3]


def test_a_range_of_symbols():
    counted = topi.arange(1, n * 2, 3, "int32")
    assert sized(n, counted.shape[0]) == len(range(1, N * 2, 3))


@pytest.mark.parametrize(
    ("made", "name", "tag"),
    [
        (lambda: topi.reshape(tensor(2, 3), (6,)), "T_reshape", "injective"),
        (lambda: topi.expand_dims(tensor(3), 0), "T_expand_dims", "broadcast"),
        (lambda: topi.squeeze(tensor(3, 1)), "T_squeeze", "injective"),
        (lambda: topi.transpose(tensor(2, 3)), "T_transpose", "injective"),
        (lambda: topi.concatenate([tensor(2), tensor(3)]), "T_concat", "injective"),
        (lambda: topi.stack([tensor(2), tensor(2)], 0), "T_stack", "injective"),
        (lambda: topi.split(tensor(4), 2)[1], "T_split", "injective"),
        (lambda: topi.strided_slice(tensor(4), [1], [3]), "T_strided_slice", "injective"),
        (lambda: topi.take(tensor(4), tensor(2, dtype="int32")), "T_take", "injective"),
        (lambda: topi.repeat(tensor(4), 2, 0), "T_repeat", "broadcast"),
        (lambda: topi.tile(tensor(4), (2,)), "T_tile", "broadcast"),
        (lambda: topi.layout_transform(tensor(2, 3), "NC", "CN"), "T_layout_trans", "injective"),
    ],
)
def test_one_stage_found_by_name_and_tag(made, name, tag):
    stage = made()
    assert (stage.op.name, stage.op.tag) == (name, tag)
    assert all(isinstance(source.op, te.PlaceholderOp) for source in stage.op.input_tensors)


def test_a_reshape_passes_equal_dimensions_through():
    data = tensor(8, 12, 64, name="A")
    script = te.create_prim_func([data, topi.reshape(data, (8, 3, 4, 64))]).script()
    assert "A[v_i0, v_i1 * 4 + v_i2, v_i3]" in script


def test_many_tensors_are_joined_without_a_branch_a_element():
    tensors = [tensor(4, k + 1, name=f"x{k}") for k in range(5)]
    arrays = [np.full((4, k + 1), k, "float32") for k in range(5)]
    result = np.zeros((4, 15), "float32")
    lw.build([*tensors, topi.concatenate(tensors, 1)], target="llvm", autosched=True)(*arrays, result)
    assert np.array_equal(result, np.concatenate(arrays, 1))


def test_movement_fuses_and_is_scheduled():
    data, at = tensor(6, 8), tensor(4, dtype="int64", name="at")
    rows = topi.take(topi.transpose(data), at, 0)
    out = topi.reshape(topi.strided_slice(rows, [0, 1], [4, 5]), (2, 8)) * 2
    x, where = values(6, 8), np.array([7, 0, 3, 3])
    result = np.zeros((2, 8), "float32")
    lw.build([data, at, out], target="llvm", autosched=True)(x, where, result)
    assert np.array_equal(result, x.T[where][:, 1:5].reshape(2, 8) * 2)


REFUSED = {
    "elements": (lambda: topi.reshape(tensor(2, 3), (7,)), InvalidShapeError, r"shape \(2, 3\) has 6 .* \(7,\) has 7"),
    "new axis": (lambda: topi.expand_dims(tensor(2, 3), 3 + 1), BadAxis, "axis 4 is not one of a tensor with 3 dim"),
    "no axis": (lambda: topi.flip(tensor(), 0), BadAxis, "axis 0 is not one of a tensor with 0 dimensions"),
    "no integer": (lambda: topi.flip(tensor(3), 0.5), BadAxis, "axis is float 0.5, not an integer"),
    "twice": (lambda: topi.transpose(tensor(2, 3), (0, -2)), BadAxis, r"axes 0 is named twice in \(0, -2\)"),
    "too few": (lambda: topi.transpose(tensor(2, 3), (0,)), BadAxis, r"axes \(0,\) do not name all 2 of data"),
    "not 1": (lambda: topi.squeeze(tensor(2, 3), 1), InvalidShapeError, r"axis 1 of data, of shape \(2, 3\), is 3"),
    "join": (
        lambda: topi.concatenate([tensor(2, 3), tensor(2, 4, name="b")], 0),
        InvalidShapeError,
        r"data has shape \(2, 3\) and b \(2, 4\): they differ in dimension 1",
    ),
    "join types": (
        lambda: topi.stack([tensor(2), tensor(2, dtype="int8", name="b")], 0),
        InvalidShapeError,
        r"float32 data of shape \(2,\) does not go with int8 b",
    ),
    "nothing": (lambda: topi.concatenate([]), InvalidShapeError, "there are no tensors"),
    "sections": (lambda: topi.split(tensor(7), 3), CannotSplit, "size 7, which 3 sections do not divide"),
    "cuts": (lambda: topi.split(tensor(7), [5, 2]), CannotSplit, r"cut points \(5, 2\) of axis 0, of size 7"),
    "stride": (lambda: topi.strided_slice(tensor(7), [0], [7], [0]), BadSlice, "the stride of axis 0 is 0"),
    "bounds": (lambda: topi.strided_slice(tensor(7), [0, 0], [7]), BadSlice, "begin has 2 entries for 1 axes"),
    "mode": (lambda: topi.strided_slice(tensor(7), [0], [7], slice_mode="x"), UnknownChoice, "slice_mode is 'x'"),
    "set": (
        lambda: topi.strided_set(tensor(7), tensor(2), tensor(1, dtype="int64"), tensor(1, dtype="int32")),
        BadSlice,
        "begin is int64 of 1 dimensions, not a vector of int32",
    ),
    "take type": (lambda: topi.take(tensor(4), tensor(2, name="at"), 0), UnsuitableType, "indices at are float32"),
    "take mode": (lambda: topi.take(tensor(4), tensor(2, dtype="int8"), mode="x"), UnknownChoice, "mode is 'x'"),
    "take batch": (
        lambda: topi.take(tensor(4, 2), tensor(2, dtype="int8", name="at"), 0, batch_dims=1),
        BadAxis,
        "batch_dims 1 reaches past axis 0 of data",
    ),
    "take nothing": (
        lambda: topi.take(tensor(0, 2), tensor(2, dtype="int32"), 0),
        InvalidShapeError,
        r"nothing to take from data, of shape \(0, 2\)",
    ),
    "gather": (lambda: topi.gather(tensor(4, 2), 0, tensor(2, dtype="int8")), InvalidShapeError, "1 dim.*, data 2"),
    "gather_nd": (
        lambda: topi.gather_nd(tensor(4), tensor(2, 3, dtype="int8", name="at")),
        InvalidShapeError,
        r"at of shape \(2, 3\) does not index data of shape \(4,\)",
    ),
    "scatter": (
        lambda: topi.scatter_elements(tensor(4), tensor(2, dtype="int8"), tensor(3)),
        InvalidShapeError,
        r"data float32 \(4,\), indices int8 \(2,\), updates float32 \(3,\) do not fit",
    ),
    "scatter mode": (
        lambda: topi.scatter_nd(tensor(4), tensor(1, 2, dtype="int8"), tensor(2), "or"),
        UnknownReduction,
        "mode is 'or'",
    ),
    "repeat": (lambda: topi.repeat(tensor(4), 0, 0), InvalidShapeError, "repeats is 0"),
    "tile": (lambda: topi.tile(tensor(4), (-1,)), InvalidShapeError, r"reps \(-1,\) holds -1"),
    "arange": (lambda: topi.arange(1, 2, 0), InvalidShapeError, "step is 0"),
    "meshgrid": (lambda: topi.meshgrid([tensor(2, 2)], "ij"), InvalidShapeError, r"data has shape \(2, 2\)"),
    "mask axis": (lambda: topi.sequence_mask(tensor(2, 3), tensor(3), axis=2), BadAxis, "axis is 2"),
    "lengths": (
        lambda: topi.reverse_sequence(tensor(4, 6), tensor(5, dtype="int32", name="lengths")),
        InvalidShapeError,
        "dimension 0 of data, the batch, has size 4, and the lengths lengths have size 5",
    ),
    "sparse": (
        lambda: topi.sparse_to_dense(tensor(3, 2, dtype="int32"), (4,), tensor(3)),
        InvalidShapeError,
        r"indices \(3, 2\) and values \(3,\) do not make elements of a tensor of shape \(4,\)",
    ),
    "diagonal": (
        lambda: topi.matrix_set_diag(tensor(3, 3), tensor(2, name="d"), 0),
        InvalidShapeError,
        r"diagonals 0 to 0 of float32 data, of shape \(3, 3\), cannot be float32 d, of shape \(2,\)",
    ),
    "window": (lambda: topi.sliding_window(tensor(3), 0, (4,), (1,)), BadWindow, "a window of 4 does not fit into 3"),
    "depth": (lambda: topi.nn.depth_to_space(tensor(1, 3, 2, 2), 2), InvalidShapeError, "3 channels, which 4 does not"),
    "layout": (lambda: topi.nn.space_to_depth(tensor(1, 4, 2, 2), 2, "CHWN"), UnsupportedLayout, "layout CHWN"),
    "blocks": (lambda: topi.nn.space_to_batch_nd(tensor(1, 5), [2], [0], [0]), BadWindow, "size 5, padding included"),
    "batches": (lambda: topi.nn.batch_to_space_nd(tensor(3, 5), [2], [0], [0]), InvalidShapeError, "3 batches do not"),
    "fifo": (lambda: topi.nn.fifo_buffer(tensor(5), tensor(4, name="b"), 0), InvalidShapeError, "does not go into"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    make, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        make()


def test_errors_are_what_scripts_catch():
    assert issubclass(UnknownReduction, NotImplementedError)
    assert issubclass(BadSlice, (TypeError, ValueError))
    assert issubclass(BadAxis, IndexError)
