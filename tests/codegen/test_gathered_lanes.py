"""Vectors of elements from anywhere: what is the same for all lanes goes into the address."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.codegen.llvm.gathered_lanes import gathered_lanes
from loopwright.codegen.llvm.neighbouring_lanes import neighbouring_lanes
from loopwright.ir import Broadcast, Cast, Ramp, Var, const, structural_equal
from loopwright.ir.intrinsics import if_then_else
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


def _interpolated(target=None, gap=1, kind="float32"):
    a, at = te.placeholder((3, 60), kind, name="a"), te.placeholder((44,), "int32", name="at")
    inside = lambda i: te.max(te.min(at[i], 58), 0).astype("int64")
    b = te.compute((3, 44), lambda c, i: a[c, inside(i)] * 3 + a[c, inside(i) + gap], name="b")
    sch = Schedule(te.create_prim_func([a, at, b]))
    sch.vectorize(sch.split(sch.get_loops("b")[1], [None, 16])[1])
    return lw.build(sch.mod, target=target)


@pytest.mark.parametrize("kind", ["float32", "int32", "float64"])
def test_neighbours_from_anywhere(kind):
    rng = np.random.default_rng(0)
    x, at = rng.integers(0, 99, (3, 60)).astype(kind), rng.integers(-9, 70, 44).astype("int32")
    out = np.zeros((3, 44), kind)
    _interpolated(kind=kind)(x, at, out)
    inside = np.clip(at, 0, 58)
    assert np.array_equal(out, x[:, inside] * 3 + x[:, inside + 1])


def test_two_neighbours_are_one_load():
    assert "vmovhps" in _interpolated(SLOW_GATHER).get_source("asm")
    assert "vpgatherdq" in _interpolated(X86).get_source("asm")
    assert "vgatherdps" in _interpolated(X86, gap=0).get_source("asm")


def test_neighbours_are_those_that_are_always_read():
    a, at = ir.decl_buffer((60,), "float32", "a"), ir.decl_buffer((16,), "int32", "at")
    lanes = Cast(DataType("int64x16"), ir.BufferLoad(at, (Ramp(const(0, "int64"), const(1, "int64"), 16),)))
    x = Var("x", "int64")
    one, two, far = (ir.BufferLoad(a, (Broadcast(x + k, 16) + lanes,)) for k in (3, 4, 6))
    pairs = neighbouring_lanes(two * one + far, lambda load: load.buffer is a)
    assert {load: number for load, (_, number) in pairs.items()} == {one: 0, two: 1}
    condition = Var("is_there", "bool")
    assert not neighbouring_lanes(one + if_then_else(condition, two, far), lambda load: load.buffer is a)
