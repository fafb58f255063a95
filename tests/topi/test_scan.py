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


def test_mistakes():
    with pytest.raises(BadAxis, match="axis 2 is not one of a tensor with 2 dimensions"):
        topi.cumsum(te.placeholder((3, 4)), 2)
    with pytest.raises(InvalidShapeError, match="data is int 5, not a tensor"):
        topi.cumprod(5)
