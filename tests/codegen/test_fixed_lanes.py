"""Vectors whose lanes are a known distance from each other: loaded as vectors, and shuffled."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.llvm.fixed_lanes import fixed_lanes
from loopwright.ir import Broadcast, Ramp, Var, const
from loopwright.schedule import Schedule
from tests.guarded_arrays import guarded

pytestmark = pytest.mark.optimized


def number(value, lanes=4):
    return Broadcast(const(value, "int64"), lanes)


def ramp(base, stride=1, lanes=4):
    return Ramp(base, const(stride, "int64"), lanes)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("by", "lanes"), [(2, 4), (3, 4), (3, 16), (5, 8), (7, 4)])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64", "bool"])
@pytest.mark.parametrize("kind", ["quotient", "remainder"])
def test_vectors_with_quotients_and_remainders(by, lanes, dtype, kind):
    """Nothing outside of the array is read: it ends where its memory does."""
    size, rows = (by * lanes * 3, by * 3) if kind == "quotient" else (by * lanes * 3, by)
    count = size // by if kind == "quotient" else rows
    X = te.placeholder((count,), dtype, name="X")
    Y = te.compute((size,), lambda i: X[i // by] if kind == "quotient" else X[i % by], name="Y")
    sch = Schedule(te.create_prim_func([X, Y]))
    _, some, lane = sch.split(sch.get_loops("Y")[0], [None, by, lanes])
    sch.unroll(some)
    sch.vectorize(lane)
    built = lw.build(sch.mod)
    x = guarded(np.random.default_rng(by).integers(0, 2 if dtype == "bool" else 99, count).astype(dtype))
    y = np.zeros(size, dtype)
    built(x, y)
    at = np.arange(size)
    assert (y == x[at // by if kind == "quotient" else at % by]).all()
    assert "masked.gather" not in built.get_source("ll")


def test_where_lanes_are():
    i = Var("i", "int64")
    base, offsets = fixed_lanes(Broadcast(i, 4) + ramp(i * 12) // number(3), 4, {})
    assert offsets == (0, 0, 0, 1)
    assert fixed_lanes(ramp(i * 4) % number(7), 4, {i: 1}).offsets == (4, 5, 6, 0)
    assert fixed_lanes(ramp(i * 8, 3) // number(2) * number(2), 8, {}).offsets == (0, 2, 6, 8)
    assert fixed_lanes(number(9) - ramp(i), 4, {}).offsets == (3, 2, 1, 0)


@pytest.mark.parametrize("wrong", [
    ramp(Var("i", "int64")) // number(3),  # where it starts is not known
    ramp(Var("i", "int64") * 4, 100),  # too far from each other
    ramp(Var("i", "int64") * 3) // Broadcast(Var("n", "int64"), 4),
])  # fmt: skip
def test_where_they_are_not_known(wrong):
    assert fixed_lanes(wrong, 4, {}) is None
