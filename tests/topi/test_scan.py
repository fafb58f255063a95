"""Running sums of sizes that are variables, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.axes import BadAxis


@pytest.mark.parametrize(("shape", "axis"), [(("n", "m", 3), 1), ((1, "n", "m"), 1), (("n", "m"), None)])
def test_sizes_that_are_variables(shape, axis):
    sizes = {"n": te.size_var("n"), "m": te.size_var("m")}
    data = te.placeholder([sizes.get(size, size) for size in shape], "int32", name="data")
    out = topi.cumsum(data, axis)
    x = np.random.default_rng(0).integers(-9, 9, [{"n": 4, "m": 5}.get(size, size) for size in shape]).astype("int32")
    expected = np.cumsum(x, axis).astype("int32")
    result = np.zeros_like(expected)
    lw.build([data, out], target="llvm")(x, result)
    assert np.array_equal(result, expected)


@pytest.mark.parametrize(("shape", "axis"), [(("n", "m", "k"), 0), (("n", 3, "k"), 0), (("n", 3, "m", 3), 1)])
def test_strips_of_open_sizes_are_proved_to_be_apart(shape, axis):
    sizes = {name: te.size_var(name) for name in "nmk"}
    data = te.placeholder([sizes.get(size, size) for size in shape], "int32", name="data")
    out = topi.cumsum(data, axis, exclusive=True)
    x = np.arange(np.prod(real := [{"n": 4, "m": 5, "k": 7}.get(size, size) for size in shape])).astype("int32")
    x = x.reshape(real)
    result = np.zeros_like(x)
    lw.build([data, out], target="llvm", autosched=True)(x, result)
    assert np.array_equal(result, np.cumsum(x, axis) - x)


def test_mistakes():
    with pytest.raises(BadAxis, match="axis 2 is not one of a tensor with 2 dimensions"):
        topi.cumsum(te.placeholder((3, 4)), 2)
    with pytest.raises(InvalidShapeError, match="data is int 5, not a tensor"):
        topi.cumprod(5)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    "shape", [(7, 1), (5, 2, 1), (6, 3), (4, 13), (2, 3, 2, 9), (3, 131, 2), (3, 2300), (0, 5), (4, 0)]
)
def test_rows_side_by_side_in_lanes(shape, exclusive):
    axis = len(shape) - 2 if len(shape) < 4 else 1
    data = te.placeholder(shape, "float32", name="data")
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    if exclusive:
        x = np.round(x * 8)  # sums of integers, in whatever order
        expected = np.cumsum(x, axis) - x
    else:
        expected = np.cumsum(x, axis)
    result = np.zeros_like(x)
    lw.build([data, topi.cumsum(data, axis, exclusive=exclusive)], target="llvm")(x, result)
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64"])
def test_types_side_by_side(dtype):
    data = te.placeholder((9, 21), dtype, name="data")
    x = np.random.default_rng(1).integers(0, 2, (9, 21)).astype(dtype)
    out = topi.cumsum(data, 0)
    result = np.zeros((9, 21), str(out.dtype))
    lw.build([data, out], target="llvm")(x, result)
    assert np.array_equal(result, np.cumsum(x, 0, dtype=str(out.dtype)))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("shape", [(3, 6), (4, 9), (7, 2), (9, 5), (2, 5, 33), (6, 1), (5, 0), (0, 5), (11, 70, 1)])
def test_rows_walked_a_few_at_once(shape, exclusive):
    axis = 1 if shape == (11, 70, 1) else len(shape) - 1
    data = te.placeholder(shape, "float64", name="data")
    x = np.random.default_rng(0).integers(-9, 9, shape).astype("float64")
    expected = np.cumsum(x, axis) - (x if exclusive else 0)
    result = np.zeros_like(x)
    lw.build([data, topi.cumsum(data, axis, exclusive=exclusive)], target="llvm")(x, result)
    assert np.array_equal(result, expected)
