"""rules/repeated_rows.py: axes whose remainders find the cells are split."""

from __future__ import annotations

import pytest

from loopwright import te, topi
from tests.autosched.same_results import check_same_bits, function, numbers

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=4"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
@pytest.mark.parametrize(
    ("shape", "reps"),
    [((100,), (7,)), ((13, 7), (1, 5)), ((13, 7), (3, 1)), ((5, 3), (2, 9)), ((4, 1), (1, 6)), ((3, 17), (6,))],
)
def test_tiles(shape, reps, dtype):
    X = te.placeholder(shape, dtype, name="X")
    Y = topi.tile(X, reps)
    out = [int(n) for n in Y.shape]
    plan = check_same_bits(function(X, Y), [numbers(*shape, dtype=dtype), numbers(*out, dtype=dtype)])
    assert len(plan.decisions) == 1


def test_a_tile_is_two_axes():
    X = te.placeholder((1000,), name="X")
    plan = check_same_bits(function(X, topi.tile(X, (6,))), [numbers(1000), numbers(6000)])
    assert plan.decisions[0].rule == "repeated rows"
    assert "6 × 1000" in plan.explain()
    assert "%" not in plan.mod["main"].script()


def test_quotients_and_remainders_of_one_axis():
    X = te.placeholder((6, 50), name="X")
    Y = te.compute((600,), lambda i: X[i // 100, i % 50] + 1.0, name="Y")
    plan = check_same_bits(function(X, Y), [numbers(6, 50), numbers(600)])
    assert "6 × 2 × 50" in plan.explain()


def test_divisors_that_do_not_divide_are_left_alone():
    X = te.placeholder((20, 70), name="X")
    Y = te.compute((600,), lambda i: X[i // 32, i % 70] + 1.0, name="Y")
    plan = check_same_bits(function(X, Y), [numbers(20, 70), numbers(600)])
    assert plan.decisions[0].rule != "repeated rows"
