"""rules/moved_rows.py: rows that come out in another order arrive whole, and only large work is blocked for it."""

from __future__ import annotations

import pytest

from loopwright import te
from tests.autosched.same_results import check_same_bits, function, numbers, planned

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"
NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=1"


def moved(order, *shape, dtype="float32"):
    A = te.placeholder(shape, dtype, name="A")
    back = [order.index(axis) for axis in range(len(order))]
    new = tuple(shape[axis] for axis in order)
    return function(A, te.compute(new, lambda *at: A(*[at[axis] for axis in back]), name="C")), new


@pytest.mark.parametrize(
    "order, shape",
    [
        ((1, 0, 2), (64, 48, 64)),
        ((1, 0, 2), (97, 89, 16)),  # the last blocks are not whole
        ((1, 0, 2), (65, 33, 72)),  # nor do vectors of 16 fill a row
        ((0, 2, 1, 3), (3, 31, 33, 48)),
        ((2, 0, 1, 3), (14, 23, 29, 32)),
        ((2, 1, 0, 3), (15, 16, 17, 34)),
        ((2, 0, 3, 1), (61, 1, 35, 64)),
    ],
)
def test_shapes(order, shape):
    func, new = moved(order, *shape)
    plan = check_same_bits(func, [numbers(*shape), numbers(*new)])
    assert "row gather" in plan.explain() and "rows are contiguous" in plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "dtype, cells", [("float64", 16), ("int8", 64), ("uint16", 96), ("float16", 128), ("bool", 128)]
)
def test_types(dtype, cells):
    func, new = moved((1, 0, 2), 83, 101, cells, dtype=dtype)
    arrays = [numbers(83, 101, cells, dtype=dtype), numbers(*new, dtype=dtype)]
    assert "row gather" in check_same_bits(func, arrays).explain()


def test_work_on_the_way():
    A, B = te.placeholder((60, 70, 64), name="A"), te.placeholder((70, 60, 64), name="B")
    b = te.placeholder((64,), name="b")
    value = te.compute((70, 60, 64), lambda i, j, k: A[j, i, k] * B[i, j, k] + b[k], name="C")
    arrays = [numbers(60, 70, 64), numbers(70, 60, 64), numbers(64), numbers(70, 60, 64)]
    assert "row gather" in check_same_bits(function(A, B, b, value), arrays).explain()


@pytest.mark.parametrize("order, shape", [((2, 0, 3, 1), (331, 1, 3, 300)), ((1, 0, 2, 3), (331, 3, 300, 1))])
def test_a_row_is_moved_whole_where_axes_of_one_element_stand_behind_it(order, shape):
    func, _ = moved(order, *shape)
    plan = planned(func, NEON)
    assert "row gather" in plan.explain()
    lines = plan.mod["main"].script().splitlines()
    (vectorized,) = [k for k, line in enumerate(lines) if "T.vectorized" in line]
    assert "T.block" in lines[vectorized + 1]


def test_two_cores_give_the_same_bits():
    func, new = moved((1, 0, 2), 120, 100, 64)
    plan = check_same_bits(func, [numbers(120, 100, 64), numbers(*new)], "llvm -num-cores=2")
    assert "row gather" in plan.explain() and "parallel tasks" in plan.explain()


@pytest.mark.parametrize(
    "order, shape",
    [
        ((1, 0, 2), (20, 30, 16)),  # all of it is near
        ((1, 0, 2), (2000, 1000, 3)),  # rows shorter than a cache line
        ((1, 0, 2), (300, 20, 1000)),  # rows of almost a page
        ((0, 1, 2), (100, 100, 64)),  # rows in order
        ((2, 1, 0), (64, 100, 64)),  # rows become columns
        ((1, 0, 2), (0, 100, 64)),
        ((1, 0, 2), (1, 10000, 64)),  # one row after the other
    ],
)
def test_others_are_left_to_other_rules(order, shape):
    func, _ = moved(order, *shape)
    assert "row gather" not in planned(func).explain()


def test_unknown_sizes_are_left_to_other_rules():
    n = te.var("n")
    A = te.placeholder((n, 300, 64), name="A")
    func = function(A, te.compute((300, n, 64), lambda i, j, k: A[j, i, k], name="C"))
    plan = check_same_bits(func, [numbers(50, 300, 64), numbers(300, 50, 64)], may_refuse=True)
    assert "row gather" not in plan.explain()


def test_reasons():
    told = planned(moved((1, 0, 2), 256, 384, 64)[0], AVX512).explain()
    assert "vectors of 16, 4 at once: v_i2 is contiguous" in told
    assert "blocks of 16 × 16 rows: rows are contiguous along v_i1 in the result, along v_i0 in A" in told
    assert "rows of the result prefetched 4 ahead: a store needs ownership of its cache line" in told
    assert "vectors of 4, 4 at once" in planned(moved((1, 0, 2), 256, 384, 64)[0], NEON).explain()
    # What L2 holds, more or less, need not be prefetched.
    assert "prefetched" not in planned(moved((1, 0, 2), 64, 48, 64)[0], AVX512).explain()
