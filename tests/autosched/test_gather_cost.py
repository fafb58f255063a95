"""picking.py: vectors whose cells lie apart have a price, and small numbers are left to the compiler."""

from __future__ import annotations

import pytest

import loopwright as lw
from loopwright import te
from tests.autosched.same_results import check_same_bits, function, numbers, planned

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"
H, W = 6, 70


def chroma():
    """2 × 2 pixels of an image of bytes, weighted and added up."""
    image = te.placeholder((2 * H, 2 * W, 3), "uint8", name="image")
    pixel = lambda y, x, c: image[y, x, c].astype("int32")
    u = te.compute(
        (2 * H, 2 * W), lambda y, x: (-38 * pixel(y, x, 0) - 74 * pixel(y, x, 1) + 112 * pixel(y, x, 2) >> 8) + 128
    )
    dy, dx = te.reduce_axis((0, 2), name="dy"), te.reduce_axis((0, 2), name="dx")
    return function(image, te.compute((H, W), lambda y, x: te.sum(u[2 * y + dy, 2 * x + dx], axis=[dy, dx]), name="C"))


def test_a_chroma_sum_is_picked_from_whole_vectors_and_says_so():
    plan = check_same_bits(chroma(), [numbers(2 * H, 2 * W, 3, dtype="uint8"), numbers(H, W, dtype="int32")])
    told = plan.explain()
    assert "lanes of image shuffled out of vector loads: their stride is 6 elements" in told
    assert plan.decisions[-1].roofline.share < 0.9
    assert "insertelement" not in lw.build(plan.mod).get_source("ll")  # no lane comes by itself


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_small_whole_numbers_stay_a_loop(dtype):
    A, B = te.placeholder((300,), dtype, name="A"), te.placeholder((300,), dtype, name="B")
    blend = lambda i: (A[i].astype("int32") * 77 + B[i].astype("int32") * 179 >> 8).astype(dtype)
    func = function(A, B, te.compute((300,), blend, name="C"))
    plan = check_same_bits(func, [numbers(300, dtype=dtype, seed=seed) for seed in range(3)])
    assert "a row stays one loop: 8- and 16-bit integers are left to LLVM's vectorizer" in plan.explain()
    assert "roofline" not in plan.explain()


def test_other_work_on_bytes_gets_vectors():
    A = te.placeholder((300,), "uint8", name="A")
    for body in (lambda i: A[i], lambda i: te.exp(A[i].astype("float32")), lambda i: A[i].astype("int32") * 3):
        assert "a row stays" not in planned(function(A, te.compute((300,), body, name="C")), AVX512).explain()


def test_bytes_far_apart_stay_a_loop_where_there_are_several():
    A = te.placeholder((3000,), "uint8", name="A")
    cells = lambda *offsets: sum([A[offset].astype("int32") for offset in offsets[1:]], A[offsets[0]].astype("int32"))
    one = function(A, te.compute((300,), lambda i: cells(10 * i) * 3, name="C"))
    three = function(A, te.compute((300,), lambda i: cells(10 * i, 10 * i + 1, 10 * i + 2), name="C"))
    assert "lanes of A loaded one by one" in planned(one, AVX512).explain()
    assert "cells of A are strided" in planned(three, AVX512).explain()


def test_an_index_that_is_held_between_bounds_is_no_row():
    A = te.placeholder((8, 320), name="A")
    dx = te.reduce_axis((-2, 3), name="dx")
    held = lambda x, size: te.max(te.min(x, size - 1), 0)
    across = te.compute((8, 320), lambda i, j: te.sum(A[i, held(j + dx, 320)], axis=dx), name="S")
    plan = planned(function(A, across), AVX512)
    told = plan.explain()
    assert "lanes of A loaded one by one: the index is clamped" in told
    assert "4 steps of dx × 64 of j at a time: an accumulator is loaded and stored once for 4 additions" in told
    assert "for 4 additions; of 5 steps" in told
    assert plan.decisions[-1].roofline.share < 0.5
    down = te.compute((8, 320), lambda i, j: te.sum(A[held(i + dx, 8), j], axis=dx), name="S")  # whole rows
    assert "one by one" not in planned(function(A, down), AVX512).explain()


def test_a_table_costs_a_load_for_each_lane():
    I, T = te.placeholder((4096,), "int32", name="I"), te.placeholder((256,), name="T")
    plan = planned(function(I, T, te.compute((4096,), lambda i: T[I[i]] * 2.0, name="C")), AVX512)
    assert "lanes of T loaded one by one" in plan.explain()
    assert plan.decisions[0].roofline.share < 0.7


def test_a_window_that_moves_by_its_own_width_shares_nothing():
    X = te.placeholder((300,), name="X")
    k = te.reduce_axis((0, 3), name="k")
    plan = planned(function(X, te.compute((100,), lambda i: te.sum(X[3 * i + k], axis=k), name="C")), AVX512)
    assert "their windows have stride 3: the lanes of each tap are shuffled out of 3 vectors" in plan.explain()
