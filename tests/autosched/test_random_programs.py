"""Whatever it is given, autosched gives a proved program that computes the same: random products, random programs."""

from __future__ import annotations

import random

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.ir import PrimFunc
from tests.agreement import assert_same, evaluated
from tests.campaign import programs
from tests.random_programs import random_arguments, random_function

SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 65)


def random_product(seed: int) -> PrimFunc:
    """A sum of products of two int32 tensors, of any ranks and layouts, perhaps shifted, strided, with work around."""
    rng = random.Random(seed)
    extents = {name: rng.choice(SIZES) for name in "bijklm"}
    rows, columns = rng.sample("ij", rng.randint(1, 2)), rng.sample("lm", rng.randint(1, 2))
    batch, summed = rng.sample("b", rng.randint(0, 1)), ["k"]
    left = rng.sample([*batch, *rows, *summed], len([*batch, *rows, *summed]))
    right = rng.sample([*batch, *columns, *summed], len([*batch, *columns, *summed]))
    result = rng.sample([*batch, *rows, *columns], len([*batch, *rows, *columns]))
    is_plain = rng.random() < 0.6
    scale = {name: 1 if is_plain else rng.choice([1, 1, 1, 2]) for name in extents}
    shift = {name: 0 if is_plain else rng.choice([0, 0, 0, 1]) for name in extents}

    def shape(axes: list[str]) -> list[int]:
        return [(extents[axis] - 1) * scale[axis] + shift[axis] + 1 for axis in axes]

    a, b = te.placeholder(shape(left), "int32", name="A"), te.placeholder(shape(right), "int32", name="B")
    k = {axis: te.reduce_axis((0, extents[axis]), axis) for axis in summed}
    inner = a
    if rng.random() < 0.2:
        inner = te.compute(a.shape, lambda *at: a[at] * 3 - 1, name="A2")
    other = b
    if rng.random() < 0.3:
        other = te.compute(b.shape, lambda *at: b[at] + 2, name="B2")

    def cell(*at: te.Var) -> te.PrimExpr:
        values = {**dict(zip(result, at, strict=True)), **k}
        index = {name: value * scale[name] + shift[name] for name, value in values.items()}
        factors = inner[[index[axis] for axis in left]] * other[[index[axis] for axis in right]]
        return te.sum(factors, axis=list(k.values()))

    c = te.compute([extents[axis] for axis in result], cell, name="C")
    d = te.compute(c.shape, lambda *at: te.max(c[at], 0) + 1, name="D") if rng.random() < 0.4 else c
    return te.create_prim_func([a, b, d])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(programs(5, 14)))
def test_random_products(seed: int) -> None:
    check_product(seed)


def check_product(seed: int) -> None:
    """The scheduled product gives the integers that the loops as written give."""
    func = random_product(seed)
    plan = autosched.apply(func, f"llvm -num-cores={1 + seed % 3}")
    assert plan.schedule.is_proved
    rng = np.random.default_rng(seed)
    shapes = [[int(size) for size in buffer.shape] for buffer in func.buffer_map.values()]
    inputs = [rng.integers(-50, 50, shape).astype("int32") for shape in shapes[:-1]]
    wanted, got = np.full(shapes[-1], 7, "int32"), np.full(shapes[-1], 9, "int32")
    lw.build(func)(*inputs, wanted)
    lw.build(plan.mod)(*inputs, got)
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("seed", range(programs(4, 10)))
def test_random_programs(seed: int) -> None:
    func = random_function(seed, math=False)
    plan = autosched.apply(func, "llvm -num-cores=2")
    arguments = random_arguments(func, seed)
    assert_same(func, evaluated(plan.mod["main"], arguments), evaluated(func, arguments), "autosched", "the program")
