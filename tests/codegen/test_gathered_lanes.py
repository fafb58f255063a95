"""Vectors of elements from anywhere: what is the same for all lanes goes into the address."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.llvm.gathered_lanes import gathered_lanes
from loopwright.ir import Broadcast, Cast, Ramp, Var, const, structural_equal
from loopwright.runtime.dtype import DataType
from loopwright.schedule import Schedule

pytestmark = pytest.mark.optimized
X86 = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=1"
SLOW_GATHER = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def test_the_parts_of_an_index():
    x, y = Var("x", "int64"), Var("y", "int32")
    lanes = Ramp(y, const(3, "int32"), 8)
    wide = Cast(DataType("int64x8"), lanes)
    parts = gathered_lanes(Broadcast(x, 8) + wide + Broadcast(const(35, "int64"), 8))
    assert parts.base is not None and structural_equal(parts.base, x + 35) and parts.lanes is lanes
    assert gathered_lanes(wide).base is None and gathered_lanes(wide).lanes is lanes
    unsigned = Cast(DataType("int64x8"), Cast(DataType("uint32x8"), lanes))
    assert gathered_lanes(unsigned).lanes is unsigned  # a gather would extend its sign
    assert gathered_lanes(Broadcast(x, 8)).lanes.dtype.lanes == 8
    steps = gathered_lanes(Ramp(x, const(9, "int64"), 8) + Broadcast(x, 8))
    assert steps.base is not None and structural_equal(steps.base, x + x)
    assert structural_equal(steps.lanes, Ramp(const(0, "int32"), const(9, "int32"), 8))
    far = Ramp(x, const(2**31, "int64"), 8)
    assert gathered_lanes(far).lanes is far


def _picked(target=None, kind="int32"):
    a = te.placeholder((3, 60), name="a")
    at = te.placeholder((40,), kind, name="at")
    inside = te.compute((40,), lambda i: te.max(te.min(at[i], 50), 5), name="inside")
    b = te.compute((3, 40), lambda c, i: a[c, inside[i] - 5] + a[c, inside[i] + 4], name="b")
    sch = Schedule(te.create_prim_func([a, at, b]))
    sch.compute_inline("inside")
    sch.vectorize(sch.split(sch.get_loops("b")[1], [None, 16])[1])
    return lw.build(sch.mod, target=target)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
def test_elements_from_anywhere(kind):
    rng = np.random.default_rng(0)
    x, at, out = rng.random((3, 60), "float32"), rng.integers(0, 60, 40).astype(kind), np.zeros((3, 40), "float32")
    _picked(kind=kind)(x, at, out)
    inside = np.clip(at.astype(int), 5, 50)
    assert np.array_equal(out, x[:, inside - 5] + x[:, inside + 4])


def test_narrow_indices_stay_narrow():
    assert "vgatherdps" in _picked(X86).get_source("asm")


def _looked_up(index):
    a, at = te.placeholder((60,), name="a"), te.placeholder((48,), "int64", name="at")
    sch = Schedule(te.create_prim_func([a, at, te.compute((48,), lambda i: a[index(at[i], i)], name="b")]))
    sch.vectorize(sch.split(sch.get_loops("b")[0], [None, 16])[1])
    return lw.build(sch.mod, target=SLOW_GATHER).get_source("asm")


@pytest.mark.parametrize("index", [lambda at, i: at, lambda at, i: te.max(te.min(at, 59), 0), lambda at, i: i * i % 60])
def test_lanes_come_one_by_one_where_a_gather_takes_longer(index):
    assert "gather" not in _looked_up(index)


def test_indices_that_are_computed_of_loaded_ones_stay_in_their_vector():
    assert "gather" in _looked_up(lambda at, i: at // 2)
