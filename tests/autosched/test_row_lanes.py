"""row_lanes.py: short rows are done several at a time, each in a lane of its own, with the values they always had."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched
from loopwright.transform import lower
from tests.autosched.test_row_group import ONE, TWO, UNIT, exact_softmax, softmax, softmax_bound

WIDE = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", [(64, 3), (50, 1), (61, 2), (3, 97, 4), (2, 2, 33, 5), (49, 9), (48, 17), (200, 11)])
@pytest.mark.parametrize("target", [ONE, TWO])
def test_short_rows(shape, target):
    plan = autosched.apply(softmax(*shape), target)
    assert plan.schedule.is_proved
    a = np.random.default_rng(0).uniform(-20, 20, shape).astype("float32")
    a[0] = np.inf if len(shape) == 2 else 1  # all of a row: inf - inf
    out = np.full(shape, 7, "float32")
    lw.build(plan.mod, target=target)(a, out)
    start = int(len(shape) == 2)
    assert np.isnan(out[:start]).all()
    out, a = out[start:], a[start:]
    assert (np.abs(out - exact_softmax(a)) <= softmax_bound(a)).all()


@pytest.mark.parametrize(("rows", "length"), [(1003, 4), (129, 13)])
def test_logarithms_of_short_rows(rows, length):
    a = np.random.default_rng(1).uniform(-5, 5, (rows, length)).astype("float32")
    out = np.zeros_like(a)
    lw.build(autosched.apply(softmax(rows, length, log=True), ONE).mod, target=ONE)(a, out)
    assert np.abs(out - np.log(exact_softmax(a))).max() <= UNIT * 2 * (40 + length)


def test_who_is_in_the_lanes():
    def is_in_lanes(*shape, target=WIDE, dtype="float32"):
        return "each in a lane of its own" in autosched.apply(softmax(*shape, dtype=dtype), target).explain()

    assert is_in_lanes(1000, 3) and is_in_lanes(1000, 16) and is_in_lanes(5, 300, 17)
    assert not is_in_lanes(1000, 25) and not is_in_lanes(30, 3)  # long rows; rows that fill few vectors
    assert is_in_lanes(100, 8, dtype="float64") and not is_in_lanes(100, 16, dtype="float64")


def test_a_value_of_a_row_is_next_to_that_of_the_next_row():
    text = lower(autosched.apply(softmax(1024, 5), WIDE).mod, target=WIDE)["main"].script()
    assert "e[i1 * T.int64(64):i1 * T.int64(64) + T.int64(64)]" in text
