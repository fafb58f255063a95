"""Vectors of elements a few places apart: whole vectors are loaded, and the lanes picked from them."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.llvm.strided_lanes import LONGEST_STRIDE, strided_lanes
from loopwright.ir import Ramp, Var, const
from loopwright.ir.buffer import decl_buffer
from loopwright.schedule import Schedule

pytestmark = pytest.mark.optimized

I = Var("i", "int64")


def picked(size, base, stride, lanes, register_bytes=64, dtype="float32", steps=None):
    index = Ramp(base, const(stride, "int64"), lanes)
    return strided_lanes(decl_buffer((size,), dtype), index, register_bytes, steps)


@pytest.mark.parametrize("lanes", [4, 16, 64])
@pytest.mark.parametrize("stride", [-1, *range(2, LONGEST_STRIDE + 1)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("whole", [True, False])
def test_every_lane_is_found_once_and_nothing_outside_is_read(lanes, stride, dtype, whole):
    size = abs(stride) * lanes + (0 if whole else 1)
    found = picked(size, const((lanes - 1) if stride == -1 else 0, "int64"), stride, lanes, dtype=dtype)
    end = size if whole and stride > 0 else (lanes - 1) * abs(stride) + 1
    for number in range(len(found.starts)):
        assert 0 <= found.starts[number] <= end - found.width
    places = [None] * lanes
    for number in range(0, len(found.starts), 2):
        for lane, pick in enumerate(found.picks(number)):
            if pick is not None:
                assert places[lane] is None
                places[lane] = found.starts[number + pick // found.width] + pick % found.width
    assert places == list(found.lanes)
    assert [place - found.before for place in places] == [lane * stride for lane in range(lanes)]


def test_which_loads_share_their_vectors():
    red, green = picked(96, I * 48, 3, 16), picked(96, I * 48 + 1, 3, 16)
    assert (red.before, green.before) == (0, 1) and red.starts == green.starts == (0, 16, 32)
    k = Var("k", "int64")
    assert picked(96, I * 48 + k, 3, 16).before == 0  # it may begin anywhere
    assert picked(96, I * 48 + k, 3, 16, steps={k: 2}).before == 2
    assert picked(95, I * 48 + 1, 3, 16).before == 0  # the last one is not whole


def test_which_are_loaded_one_by_one():
    assert picked(96, I, 9, 4) is None
    assert picked(96, I, 2, 2) is None
    assert picked(96, I, -2, 4) is None
    assert picked(96, I, 1, 4) is None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "bool"])
@pytest.mark.parametrize("stride", [3, 6, 9])
def test_channels(dtype, stride):
    """The last elements are those of the buffer: reading beyond would be seen by the guard after it."""
    pixels = 37
    a = te.placeholder((pixels * stride,), dtype, name="a")
    b = te.compute((2, pixels), lambda c, i: a[i * stride + c], name="b")
    sch = Schedule(te.create_prim_func([a, b]))
    c, i = sch.get_loops("b")
    _, lane = sch.split(i, [None, 16])
    sch.unroll(c)
    sch.vectorize(lane)
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, pixels * stride).astype(dtype)
    out = np.zeros((2, pixels), dtype)
    built = lw.build(sch.mod)
    built(x, out)
    assert np.array_equal(out, x.reshape(pixels, stride)[:, :2].T)


def test_a_table_is_gathered():
    n = 35
    table, at = te.placeholder((10,), name="table"), te.placeholder((n,), "int32", name="at")
    b = te.compute((n,), lambda i: table[at[i]] + 1.0, name="b")
    sch = Schedule(te.create_prim_func([table, at, b]))
    sch.vectorize(sch.split(sch.get_loops("b")[0], [None, 8])[1])
    built = lw.build(sch.mod)
    x, where = np.arange(10, dtype="float32"), np.random.default_rng(0).integers(0, 10, n).astype("int32")
    out = np.zeros(n, "float32")
    built(x, where, out)
    assert np.array_equal(out, x[where] + 1)
    has_gather = lw.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    assert "llvm.masked.gather.v8f32" in lw.build(sch.mod, target=has_gather).get_source("ll")
