"""Random contractions, convolutions, pooling and reductions through autosched: proved, replayed, right to the bound.

`benchmarks/fuzz_autosched.py` tries thousands; here are a few dozen, and the machinery itself.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import loopwright as lw
from tests.autosched.fuzz.approx import UNIT, Approx, extreme, sum_of_products
from tests.autosched.fuzz.check import KINDS, Mistake, _compare, check, random_program, random_target
from tests.autosched.fuzz.images import Layout, Windows, taken
from tests.campaign import programs


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(programs(5, 14)))
def test_random_programs_are_right_when_scheduled(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", [460])
def test_programs_that_no_rule_could_schedule_once(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(100, 100 + programs(2, 5)))
def test_what_is_expected_is_what_the_program_computes_as_written(seed: int) -> None:
    program = random_program(seed)
    _compare(program, lw.build(program.func))


def test_a_seed_is_one_program() -> None:
    one, two = random_program(3), random_program(3)
    assert one.text == two.text and random_target(3) == random_target(3)
    assert all(np.array_equal(a, b) for a, b in zip(one.inputs, two.inputs, strict=True))


def test_every_kind_of_program_is_tried() -> None:
    programs = [random_program(seed) for seed in range(300)]
    assert {program.kind for program in programs} == set(KINDS)
    texts = " ".join(program.text for program in programs)
    for word in ("1-D", "2-D", "3-D", "transposed", "constant", "requantized", "narrowed", "global", "chained", "relu"):
        assert word in texts, word
    assert {"float32", "float64", "float16", "int32"} <= {program.expected.dtype for program in programs}


def test_a_wrong_result_is_a_mistake() -> None:
    program = random_program(1)
    at = tuple([0] * program.expected.value.ndim)
    program.expected.value[at] += 2 * program.expected.error[at] + 1
    with pytest.raises(Mistake, match=r"element \[0.*\(1 of \d+ are off\)"):
        _compare(program, lw.build(program.func))


# The bounds: they hold, and mean something.


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_sums_in_any_order_are_within_the_bound(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.random((7, 200)) * 2 - 1).astype(dtype), (rng.random((200, 5)) * 2 - 1).astype(dtype)
    approx = sum_of_products("ik,kj->ij", [Approx.exactly(a), Approx.exactly(b)], dtype)
    for order in (np.arange(200), np.arange(200)[::-1], rng.permutation(200)):
        total = np.zeros((7, 5), dtype)
        for k in order:
            total += a[:, k, None] * b[None, k, :]
        assert (np.abs(total.astype("float64") - approx.value) <= approx.error).all()
    assert (approx.error <= 300 * UNIT[dtype] * 100).all()


def test_errors_grow_with_each_step() -> None:
    x = Approx(np.array([1.0, -2.0]), np.array([0.5, 0.0]), "float32")
    assert (x.scaled(2, 1).error >= [1.0, 0.0]).all() and x.scaled(2, 1).value.tolist() == [3.0, -3.0]
    assert x.clipped(0, None).value.tolist() == [1.0, 0.0]
    assert (x.plus(x).error >= [1.0, 0.0]).all()
    assert (x.cast("bfloat16").error > x.error).all() and (x.cast("float64").error == x.error).all()
    assert extreme(x, (0,), greatest=True).error == 0.5


def test_integers_wrap_and_have_no_error() -> None:
    x = Approx.exactly(np.array([2**31 - 1], "int32"))
    assert x.scaled(1, 1).value.tolist() == [-(2**31)] and x.scaled(1, 1).error.tolist() == [0.0]
    bytes_ = Approx.exactly(np.array([[200, 200]], "uint8"))
    assert sum_of_products("ik,ik->i", [bytes_, bytes_], "int32").value.tolist() == [80000]


# Layouts and windows.


@pytest.mark.parametrize("layout", [Layout("nc01"), Layout("n01c"), Layout("1cn0"), Layout("nc01", 2)])
def test_a_layout_and_back(layout: Layout) -> None:
    plain = np.arange(2 * 4 * 3 * 5).reshape(2, 4, 3, 5)
    stored = layout.stored(plain, 2)
    assert list(stored.shape) == layout.shape({"n": 2, "c": 4, "0": 3, "1": 5})
    assert np.array_equal(layout.plain(stored, 2), plain)
    rng = random.Random(0)
    for _ in range(5):
        n, c, i, j = (rng.randrange(size) for size in plain.shape)
        assert stored[tuple(layout.index({"n": n, "c": c, "0": i, "1": j}))] == plain[n, c, i, j]


def test_windows_are_taken_from_the_padded_image() -> None:
    windows = Windows([5], [3], [2], [1], [1], [1])
    x = Approx.exactly(np.array([[[1, 2, 3, 4, 5]]], "int32"))
    assert taken(x, windows, 9).value.tolist() == [[[[9, 1, 2], [2, 3, 4], [4, 5, 9]]]]
    assert windows.count == [3] and windows.padded == [7]
