"""Padding: the forms in which operators take it, and what pad, mirror_pad and dilate make of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te, topi
from loopwright.evaluator import evaluate
from loopwright.topi.testing import dilate_python


def run(tensor: te.Tensor, inputs: list[te.Tensor], *arrays: np.ndarray) -> np.ndarray:
    out = np.zeros([int(size) for size in tensor.shape], str(tensor.dtype))
    evaluate(te.create_prim_func([*inputs, tensor]), *arrays, out)
    return out


@pytest.mark.parametrize(
    ("padding", "kernel", "expected"),
    [
        (1, (3, 3), (1, 1, 1, 1)),
        ((1, 2), (3, 3), (1, 2, 1, 2)),
        ((1, 2, 3, 4), (3, 3), (1, 2, 3, 4)),
        ([2], (3, 3), (2, 2, 2, 2)),
        ("VALID", (3, 3), (0, 0, 0, 0)),
        ("SAME", (3, 5), (1, 2, 1, 2)),
        ("SAME", (4, 2), (2, 1, 1, 0)),  # the larger half first
    ],
)
def test_get_pad_tuple(padding, kernel, expected):
    assert topi.nn.get_pad_tuple(padding, kernel) == expected


def test_get_pad_tuple_of_other_ranks():
    assert topi.nn.get_pad_tuple1d(2, (3,)) == (2, 2)
    assert topi.nn.get_pad_tuple1d((1, 0), (3,)) == (1, 0)
    assert topi.nn.get_pad_tuple1d("SAME", 4) == (2, 1)
    assert topi.nn.get_pad_tuple3d((1, 2, 3), (3, 3, 3)) == (1, 2, 3, 1, 2, 3)
    assert topi.nn.get_pad_tuple_generic((1, 2, 3, 4), (3, 3)) == ([1, 2], [3, 4])


@pytest.mark.parametrize(
    ("padding", "message"),
    [
        ((1, 2, 3), r"\(1, 2, 3\) has 3 entries for a window of 2 dimensions"),
        ("FULL", "'FULL' is not known"),
        (-1, "-1 is less than 0"),
        (0.5, "float 0.5 is not a number of cells"),
        (None, "NoneType None is not a number of cells"),
    ],
)
def test_other_paddings_are_refused(padding, message):
    with pytest.raises(topi.BadPadding, match=message):
        topi.nn.get_pad_tuple(padding, (3, 3))


def test_pad():
    a = te.placeholder((2, 3), name="a", dtype="int32")
    array = np.arange(6, dtype="int32").reshape(2, 3)
    padded = topi.nn.pad(a, (1, 0), (0, 2), 7)
    assert padded.op.name == "PadInput"
    assert padded.op.tag == "injective,pad"
    expected = np.pad(array, [(1, 0), (0, 2)], constant_values=7)
    assert np.array_equal(run(padded, [a], array), expected)


def test_pad_after_is_pad_before_unless_given():
    a = te.placeholder((2,), name="a", dtype="int8")
    assert np.array_equal(run(topi.nn.pad(a, (1,)), [a], np.ones(2, "int8")), [0, 1, 1, 0])


def test_no_padding_asks_nothing():
    a = te.placeholder((2, 3), name="a")
    assert "if_then_else" not in te.create_prim_func([a, topi.nn.pad(a, (0, 0))]).script()


def test_a_dimension_without_padding_is_not_tested():
    a = te.placeholder((te.var("n"), 3), name="a")
    padded = topi.nn.pad(a, (0, 1))
    assert "v_i1 >= 1 and v_i1 < 4" in te.create_prim_func([a, padded]).script()


def test_pad_wants_one_number_a_dimension():
    a = te.placeholder((2, 3), name="a")
    with pytest.raises(topi.BadPadding, match=r"PadInput: pad_before has 1 entries, and a 2 dimensions"):
        topi.nn.pad(a, (1,))
    with pytest.raises(topi.BadPadding, match=r"PadInput: pad_after has 3 entries, and a 2 dimensions"):
        topi.nn.pad(a, (1, 1), (1, 1, 1))


@pytest.mark.parametrize(("mode", "name"), [("SYMMETRIC", "symmetric"), ("REFLECT", "reflect")])
def test_mirror_pad(mode, name):
    a = te.placeholder((3, 4), name="a", dtype="int32")
    array = np.arange(12, dtype="int32").reshape(3, 4)
    expected = np.pad(array, [(2, 1), (0, 3)], mode=name)
    assert np.array_equal(run(topi.nn.mirror_pad(a, (2, 0), (1, 3), mode), [a], array), expected)


def test_mirror_pad_knows_two_modes():
    with pytest.raises(topi.BadPadding, match="mode 'WRAP' is not known"):
        topi.nn.mirror_pad(te.placeholder((3,), name="a"), (1,), mode="WRAP")


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (0, 4)])
def test_dilate(shape):
    a = te.placeholder(shape, name="a", dtype="int32")
    array = np.arange(np.prod(shape), dtype="int32").reshape(shape) + 1
    assert np.array_equal(run(topi.nn.dilate(a, (2, 3), 9), [a], array), dilate_python(array, (2, 3), 9))
