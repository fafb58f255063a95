"""Vectors of which each element is there several times: loaded once, and spread."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.llvm.repeated_lanes import repeated_lanes
from loopwright.ir import Broadcast, Ramp, Var, const
from loopwright.schedule import Schedule

pytestmark = pytest.mark.optimized


@pytest.mark.one_in(3)
@pytest.mark.parametrize("times", [2, 4, 8, 3])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool"])
def test_a_vector_of_repeated_elements(times, dtype):
    a = te.placeholder((48,), name="a", dtype=dtype)
    b = te.compute((48 * times,), lambda i: a[i // times], name="b")
    sch = Schedule(te.create_prim_func([a, b]))
    sch.vectorize(sch.split(sch.get_loops("b")[0], [None, 16])[1])
    built = lw.build(sch.mod)
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, 48).astype(dtype)
    out = np.zeros(48 * times, dtype)
    built(x, out)
    assert np.array_equal(out, np.repeat(x, times))
    assert ("shufflevector <" in built.get_source("ll")) or times == 3


def index(base, times=2, lanes=16, stride=1):
    return Ramp(base, const(stride, "int64"), lanes) // Broadcast(const(times, "int64"), lanes)


def test_which_indices_repeat():
    i = Var("i", "int64")
    found = repeated_lanes(index(i * 16))
    assert (found.times, found.lanes, found.elements) == (2, 16, 8)
    offset = Broadcast(i, 16)
    assert repeated_lanes(offset + index(i * 4)) is not None
    assert repeated_lanes(index(i * 4) + offset) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        index(Var("i", "int64") * 3),  # may start in the midst of a pair
        index(Var("i", "int64") * 12, times=3),  # 16 lanes hold no whole number of threes
        index(Var("i", "int64") * 16, stride=2),
        index(Var("i", "int64") * 16, times=16),  # one element: a broadcast
        Ramp(Var("i", "int64"), const(1, "int64"), 16),
    ],
)
def test_which_do_not(wrong):
    assert repeated_lanes(wrong) is None
