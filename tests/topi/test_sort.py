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


@pytest.mark.one_in(3)
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


def hard_rows(shape, dtype):
    """Rows with ties, every special value, and numbers that differ in all their digits."""
    random = np.random.default_rng(sum(shape))
    kind = np.dtype(dtype)
    x = random.integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8).view(kind).reshape(shape)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    x[..., ::3] = random.integers(0, 5, x[..., ::3].shape).astype(dtype)
    if kind.kind == "f":
        for k, special in enumerate([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf]):
            x[..., k + 1 :: 17] = special
    return x


def in_order(x, is_ascend):
    """The places of a stable sort in which NaN is the greatest; descending, equal elements keep their order too."""
    if is_ascend:
        return np.argsort(x, -1, kind="stable")
    return x.shape[-1] - 1 - np.flip(np.argsort(np.flip(x, -1), -1, kind="stable"), -1)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("is_ascend", [True, False])
@pytest.mark.parametrize(
    "dtype", "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
)
def test_rows_are_sorted_by_their_digits(dtype, is_ascend):
    for shape in [(1, 256), (4099,)]:
        data = te.placeholder(shape, dtype, name="data")
        x = hard_rows(shape, dtype)
        outputs = [topi.sort(data, is_ascend=is_ascend), topi.argsort(data, is_ascend=is_ascend, dtype="int64")]
        values, places = run([data], outputs, [x], [shape] * 2)
        order = in_order(x, is_ascend)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))
        if np.dtype(dtype).kind == "f":  # -0.0 stays what it is, where it stands
            numbers = ~np.isnan(values)
            np.testing.assert_array_equal(
                np.signbit(values[numbers]), np.signbit(np.take_along_axis(x, order, -1)[numbers])
            )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [0, 1, 2, 255, 1023, 1024, 1025, 5000])
def test_a_row_whose_length_is_open(size):
    data = te.placeholder((n,), name="data")
    x = hard_rows((size,), "float32")
    (places,) = run([data], [topi.argsort(data, dtype="int64")], [x], [(size,)])
    np.testing.assert_array_equal(places, in_order(x, True))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("is_ascend", [True, False])
@pytest.mark.parametrize(
    "dtype", "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
)
def test_short_rows_are_sorted_side_by_side(dtype, is_ascend):
    shape = (65, 19)
    data = te.placeholder(shape, dtype, name="data")
    x = hard_rows(shape, dtype)
    order = in_order(x, is_ascend)
    greatest = topi.topk(data, 3, is_ascend=is_ascend)
    outputs = [topi.sort(data, is_ascend=is_ascend), topi.argsort(data, is_ascend=is_ascend, dtype="int64"), *greatest]
    values, places, first, first_places = run([data], outputs, [x], [shape, shape, (65, 3), (65, 3)])
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))
    np.testing.assert_array_equal(first_places, order[:, :3])
    np.testing.assert_array_equal(first, np.take_along_axis(x, order[:, :3], -1))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", [(8, 2), (15, 3), (16, 16), (17, 17), (31, 100), (33, 255), (9, 256)])
def test_sizes_of_short_rows(shape):
    data = te.placeholder(shape, name="data")
    x = hard_rows(shape, "float32")
    values, places = run([data], [topi.sort(data), topi.argsort(data, dtype="int64")], [x], [shape] * 2)
    np.testing.assert_array_equal(places, in_order(x, True))
    np.testing.assert_array_equal(values, np.sort(x))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("rows", [3, 16])
def test_longer_rows_side_by_side_where_lanes_are_full(rows, dtype):
    data = te.placeholder((rows, 4790), dtype, name="data")
    x = (np.random.default_rng(rows).standard_normal((rows, 4790)) * 1e6).astype(dtype)
    (result,) = run([data], [topi.sort(data, 1)], [x], [x.shape])
    assert np.array_equal(result, np.sort(x, 1))


@pytest.mark.parametrize("axis", [0, 1])
def test_short_rows_along_any_axis(axis):
    data = te.placeholder((12, 9, 11), "int32", name="data")
    x = hard_rows((12, 9, 11), "int32")
    outputs = [topi.sort(data, axis), topi.argsort(data, axis=axis, dtype="int32")]
    values, places = run([data], outputs, [x], [x.shape] * 2)
    np.testing.assert_array_equal(places, np.argsort(x, axis, kind="stable"))
    np.testing.assert_array_equal(values, np.sort(x, axis))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("is_ascend", [True, False])
@pytest.mark.parametrize(
    ("dtype", "k"), [("float32", 300), ("int64", 90), ("uint8", 500), ("float64", 700), ("int32", 65)]
)
def test_the_first_of_a_long_row_are_selected_by_their_digits(dtype, k, is_ascend):
    data = te.placeholder((2, 3000), dtype, name="data")
    x = hard_rows((2, 3000), dtype)
    values, places = run([data], topi.topk(data, k, is_ascend=is_ascend), [x], [(2, k)] * 2)
    order = in_order(x, is_ascend)[:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


def test_selecting_among_equal_elements():
    data = te.placeholder((3, 2500), name="data")
    x = np.zeros((3, 2500), "float32")
    x[1, ::2] = 1
    x[2] = np.random.default_rng(0).random(2500) / 1024 + 1  # all with the same first digit
    values, places = run([data], topi.topk(data, 600), [x], [(3, 600)] * 2)
    np.testing.assert_array_equal(places, in_order(x, False)[:, :600])
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, -1))


def test_digits_that_all_share_move_nothing():
    data = te.placeholder((3, 300), "int64", name="data")
    x = np.stack([np.full(300, 7), np.arange(300)[::-1] % 5, np.full(300, -1)]).astype("int64")
    (values,) = run([data], [topi.sort(data)], [x], [(3, 300)])
    np.testing.assert_array_equal(values, np.sort(x))


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


@pytest.mark.parametrize("is_ascend", [True, False])
@pytest.mark.parametrize(("size", "k"), [(100, 3), (515, 10), (2000, 17)])
def test_the_first_few_of_a_long_row_in_blocks(size, k, is_ascend):
    x = hard_rows((2, size), "float32")
    data = te.placeholder(x.shape, "float32", name="data")
    values, places = run([data], topi.topk(data, k, 1, "both", is_ascend, "int64"), [x], [(2, k)] * 2)
    order = in_order(x, is_ascend)[:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


def _unique_values(x, length=None, return_counts=False):
    data = te.placeholder((len(x) if length is None else length,), str(x.dtype), name="data")
    outs = topi.unique_values(data, return_counts)
    results = [np.full([1 if k == 1 else len(x)], 77, str(out.dtype)) for k, out in enumerate(outs)]
    lw.build([data, *outs], target="llvm")(x, *results)
    return results


@pytest.mark.parametrize("return_counts", [False, True])
@pytest.mark.parametrize(
    ("kinds", "dtype"),
    [(1, "float32"), (70, "float16"), (2, "bool"), (200, "uint8"),  # a vector at a time
     # a table that grows, and all sorted
     (1500, "int64"), (3000, "float32"), (3000, "float64"), (9000, "int32")],
)  # fmt: skip
def test_unique_values_of_a_long_row(kinds, dtype, return_counts):
    rng = np.random.default_rng(kinds)
    x = (rng.integers(0, kinds, 9013) * 3 - kinds).astype(dtype)
    values, number, *counts = _unique_values(x, None, return_counts)
    expected, often = np.unique(x, return_counts=True)
    assert number[0] == len(expected)
    assert np.array_equal(values[: number[0]], expected)
    assert not values[number[0] :].any()
    if return_counts:
        assert np.array_equal(counts[0][: number[0]], often)


@pytest.mark.parametrize("kinds", [5, 2000])
def test_unique_values_counts_zeros_as_one_value_and_nans_as_one(kinds):
    rng = np.random.default_rng(0)
    x = rng.integers(0, kinds, 6000).astype("float32")
    x[rng.permutation(6000)[:900]] = -0.0
    x[rng.permutation(6000)[:900]] = np.nan
    x.view("uint32")[77] = 0xFFC12345  # another NaN
    values, number, counts = _unique_values(x, None, True)
    expected, often = np.unique(x, return_counts=True)
    assert np.array_equal(values[: number[0]], expected, equal_nan=True)
    assert np.array_equal(counts[: number[0]], often)


@pytest.mark.parametrize("count", [0, 1, 300, 511, 512, 527, 5000])
def test_unique_values_of_an_open_length(count):
    x = np.random.default_rng(count).integers(0, 99, count).astype("int32")
    values, number = _unique_values(x, te.size_var("n"))
    assert np.array_equal(values[: number[0]], np.unique(x))
