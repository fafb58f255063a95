"""wrapped_indices.py: indices that wrap around are choices of cells, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.autosched.wrapped_indices import wrapped_as_choices
from loopwright.evaluator import evaluate
from loopwright.transform import lower
from tests.autosched.same_results import check_same_bits, function, numbers, planned


def rolled(shape, axis, by, dtype="float32"):
    X = te.placeholder(shape, dtype, name="X")

    def cell(*at):
        return X(*at[:axis], (at[axis] + by) % shape[axis], *at[axis + 1 :])

    return function(X, te.compute(shape, cell, name="Y"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
@pytest.mark.parametrize(
    ("shape", "axis", "by"),
    [((100,), 0, 3), ((100,), 0, -3), ((7, 17), 1, 16), ((7, 17), 0, 2), ((5, 6, 2), 1, 4), ((3, 5), 1, 0)],
)
def test_rolls(shape, axis, by, dtype):
    x, y = numbers(*shape, dtype=dtype), np.zeros(shape, dtype)
    plan = check_same_bits(rolled(shape, axis, by, dtype), [x, y])
    lw.build(plan.mod)(x, y)
    assert (y == np.roll(x, -by, axis)).all()
    assert "%" not in lower(plan.mod)["main"].script()


@pytest.mark.parametrize(("step", "start", "extent"), [(1, 5, 30), (-1, 3, 25), (2, -7, 12), (3, 0, 4), (1, 0, 9)])
def test_other_walks_have_the_same_values(step, start, extent):
    X = te.placeholder((10,), name="X")
    func = function(X, te.compute((extent,), lambda i: X[(i * step + start) % 10] * 2.0, name="Y"))
    chosen = wrapped_as_choices(func)
    x, found, wanted = numbers(10), np.zeros(extent, "float32"), np.zeros(extent, "float32")
    evaluate(func, x, wanted)
    evaluate(chosen, x, found)
    assert found.tobytes() == wanted.tobytes()
    check_same_bits(func, [x, found])


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize(
    ("shape", "before", "after"), [((40,), [7], [2]), ((3, 9), [1, 0], [2, 8]), ((5, 4), [0, 3], [0, 0])]
)
def test_an_index_that_is_a_choice(shape, before, after, mode):
    X = te.placeholder(shape, name="X")
    Y = topi.nn.mirror_pad(X, before, after, mode)
    x, y = numbers(*shape), np.zeros([int(size) for size in Y.shape], "float32")
    plan = check_same_bits(function(X, Y), [x, y])
    lw.build(plan.mod)(x, y)
    wanted = np.pad(x, list(zip(before, after, strict=True)), mode=mode.lower())
    assert (y == wanted).all()
    assert "if_then_else" not in lower(plan.mod)["main"].script().split("MirrorPadInput")[-1]


def test_a_choice_by_data_stays_in_the_index():
    X, at = te.placeholder((40,), name="X"), te.placeholder((30,), "int32", name="at")
    Y = te.compute((30,), lambda i: X[te.if_then_else(at[i] < 5, i, i + 1)], name="Y")
    func = function(X, at, Y)
    assert wrapped_as_choices(func) is func


def test_a_stencil_on_a_ring():
    X = te.placeholder((100,), name="X")
    Y = te.compute((100,), lambda i: X[(i - 1) % 100] + X[(i + 1) % 100] * 0.5 - X[i], name="Y")
    plan = check_same_bits(function(X, Y), [numbers(100), numbers(100)])
    assert "if_then_else" not in lower(plan.mod)["main"].script()


def test_what_does_not_wrap_stays_the_same_object():
    func = rolled((10,), 0, 0)
    assert wrapped_as_choices(func) is func
    module = lw.IRModule({"main": func})
    assert wrapped_as_choices(module) is module


def test_an_index_of_data_is_left_alone():
    X, I = te.placeholder((10,), name="X"), te.placeholder((10,), "int32", name="I")
    func = function(X, I, te.compute((10,), lambda i: X[(I[(i + 3) % 10] + i) % 10], name="Y"))
    indices = np.arange(10, dtype="int32")[::-1].copy()
    check_same_bits(func, [numbers(10), indices, numbers(10)])


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("shape", [(5, 40), (1, 1), (3, 7)])
def test_edges_that_are_repeated(shape, dtype):
    rows, columns = shape
    X = te.placeholder(shape, dtype, name="X")

    def cell(i, j):
        return X[te.max(te.min(i - 2, rows - 1), 0), te.max(te.min(j - 3, columns - 1), 0)]

    x, y = numbers(*shape, dtype=dtype), np.zeros((rows + 3, columns + 7), dtype)
    plan = check_same_bits(function(X, te.compute(y.shape, cell, name="Y")), [x, y])
    lw.build(plan.mod)(x, y)
    assert (y == np.pad(x, ((2, 1), (3, 4)), mode="edge")).all()


PADS = (1, 2)  # cells before and after


def padded(mode, m):
    """Where a cell of a padded row of m cells lies in it."""
    before, last = PADS[0], m - 1
    if mode == "edge":
        return lambda j: te.max(te.min(j - before, last), 0)
    if mode == "wrap":
        return lambda j: (j - before) % m
    return lambda j: te.if_then_else(j < before, before - j, te.if_then_else(j - before >= m, 2 * last - j + 1, j - 1))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", ["llvm", "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"])
@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_padded_rows_of_open_sizes(mode, target):
    n, m = te.size_var("n"), te.size_var("m")
    X, at = te.placeholder((n, m), name="X"), padded(mode, m)
    plan = planned(function(X, te.compute((n, m + sum(PADS)), lambda i, j: X[i, at(j)], name="Y")), target)
    with lw.Target(target):
        lowered = lower(plan.mod)["main"]
    for rows, columns in [(1, 1), (2, 2), (1, 3), (2, 13), (1, 14), (1, 29), (2, 33), (0, 4), (1, 64)]:
        if mode == "reflect" and columns <= max(PADS):
            continue  # there are no such cells
        x, y = numbers(rows, columns), np.zeros((rows, columns + sum(PADS)), "float32")
        evaluate(lowered, x, y)
        assert (y == np.pad(x, ((0, 0), PADS), mode=mode)).all()


def test_limits_of_what_a_scalar_says():
    X, S = te.placeholder((10,), name="X"), te.placeholder((), "int32", name="S")
    func = function(X, S, te.compute((10,), lambda i: X[te.max(te.min(i - S(), 9), 0)], name="Y"))
    for by in (-12, -1, 0, 3, 10):
        x, y = numbers(10), np.zeros(10, "float32")
        plan = check_same_bits(func, [x, np.array(by, "int32"), y])
        lw.build(plan.mod)(x, np.array(by, "int32"), y)
        assert (y == x[np.clip(np.arange(10) - by, 0, 9)]).all()
    moved = function(S, te.compute((10,), lambda i: S(), name="Y"))
    assert wrapped_as_choices(moved) is moved


def test_limits_of_many_places_are_left_alone():
    X = te.placeholder((100,), name="X")
    func = function(X, te.compute((20,), lambda i: X[sum([te.max(i - k, k) for k in range(1, 7)])], name="Y"))
    assert wrapped_as_choices(func) is func
    check_same_bits(func, [numbers(100), numbers(20)])
