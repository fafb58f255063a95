"""Sorting and searching beyond the samples of the registry: sizes that are variables, large rows, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.axes import BadAxis
from loopwright.topi.parts.choices import UnknownChoice, UnsuitableType

n, m = te.size_var("n"), te.size_var("m")


def run(inputs, outputs, arrays, shapes, **options):
    """The outputs of a program of `inputs`, which are variables in size, on `arrays`."""
    results = [np.zeros(shape, str(out.dtype)) for shape, out in zip(shapes, outputs, strict=True)]
    lw.build([*inputs, *outputs], target="llvm", **options)(*arrays, *results)
    return results


@pytest.mark.parametrize("autosched", [False, True])
def test_rows_of_any_size(autosched):
    data = te.placeholder((n, m, 3), name="data")
    outputs = [topi.sort(data, 1), topi.argsort(data, axis=1, is_ascend=0, dtype="int32")]
    x = np.random.default_rng(0).standard_normal((2, 1000, 3)).astype("float32")
    sort, order = run([data], outputs, [x], [x.shape] * 2, autosched=autosched)
    assert np.array_equal(sort, np.sort(x, 1))
    assert np.array_equal(order, np.argsort(-x, 1, kind="stable"))


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_topk_of_rows_of_any_size(size):
    data = te.placeholder((m, n), name="data")
    few = topi.topk(data, 5)
    count = te.placeholder((1,), "int32", name="count")
    some = topi.topk(data, count, ret_type="values", is_ascend=True)
    x = np.random.default_rng(0).integers(-9, 9, (3, size)).astype("float32")
    k = min(5, size)
    found, places, least = run(
        [data, count], [*few, some], [x, np.array([2], "int32")], [(3, 5), (3, 5), (3, min(2, size))]
    )
    order = np.argsort(-x, 1, kind="stable")[:, :k]
    assert np.array_equal(places[:, :k], order)
    assert np.array_equal(found[:, :k], np.take_along_axis(x, order, 1))
    assert np.array_equal(least, np.sort(x, 1)[:, :2])


def test_places_and_sets_of_any_size():
    data, line = te.placeholder((n, m), name="data"), te.placeholder((n,), "int32", name="line")
    found = topi.searchsorted(topi.sort(line, 0), line)
    rows, count = topi.argwhere_padded(data)
    exact = topi.argwhere((te.size_var("found"), 2), data)
    x = np.random.default_rng(0).integers(0, 2, (4, 7)).astype("float32")
    y = np.array([3, 1, 3, 0], "int32")
    nonzero = np.argwhere(x)
    outputs = [found, *topi.unique(line), rows, count, exact]
    shapes = [(4,), (4,), (4,), (4,), (1,), (28, 2), (1,), nonzero.shape]
    place, values, first, inverse, number, padded, filled, only = run([data, line], outputs, [x, y], shapes)
    assert place.tolist() == [2, 1, 2, 0]
    assert (values[:3].tolist(), first[:3].tolist(), inverse.tolist(), number.tolist()) == (
        [0, 1, 3], [3, 1, 0], [2, 1, 2, 0], [3],
    )  # fmt: skip
    assert filled[0] == len(nonzero)
    assert np.array_equal(padded[: filled[0]], nonzero)
    assert np.array_equal(only, nonzero)


def test_stages_are_found_by_name():
    data = te.placeholder((3, 4), name="data")
    assert topi.sort(data).op.name == "sort_cpu"
    assert topi.argsort(data).op.tag == "argsort_cpu"
    assert topi.argsort(data).dtype == "float32"
    assert [out.dtype for out in topi.topk(data)] == ["float32", "int64"]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: topi.sort(x, 2), BadAxis, "axis 2 is not one of a tensor with 2 dimensions"),
        (lambda x: topi.sort(5), InvalidShapeError, "the data is int 5, not a tensor"),
        (lambda x: topi.topk(x, 5), InvalidShapeError, "k is 5, but a row has 4 elements"),
        (lambda x: topi.topk(x, 1, ret_type="all"), UnknownChoice, "ret_type is 'all'"),
        (lambda x: topi.argsort(x, x), InvalidShapeError, "does not have one number for each row"),
        (lambda x: topi.searchsorted(x, x, out_dtype="float32"), UnsuitableType, "float32 holds no places"),
        (lambda x: topi.searchsorted(x, x.astype("int32")), UnsuitableType, "made of float32, the values of int32"),
        (lambda x: topi.searchsorted(x, te.placeholder((3,))), InvalidShapeError, "has 2 dimensions, the values 1"),
        (lambda x: topi.searchsorted(x, te.placeholder((2, 4))), InvalidShapeError, "dimension 0: 3 in the seq"),
        (lambda x: topi.unique(x), InvalidShapeError, "give a vector"),
        (lambda x: topi.argwhere((5,), x), InvalidShapeError, "has 2 dimensions, the output 1"),
        (lambda x: topi.argwhere((5, 3), x), InvalidShapeError, "3 in the output, 2 in the condition"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call(te.placeholder((3, 4), name="x"))
