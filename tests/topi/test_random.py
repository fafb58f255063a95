"""Random numbers: the published vector of the cipher, how numbers are spread, sizes that are variables, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.testing.drawing import cipher


def draw(make, count, dtype, *arrays):
    """The state and the numbers that `make(state, size)` gives for seed 42."""
    n = te.size_var("n")
    state = te.placeholder((10,), "uint64", name="state")
    others = [te.placeholder(a.shape, str(a.dtype), f"x{k}") for k, a in enumerate(arrays)]
    outputs = make(state, n, *others)
    results = [np.zeros(10, "uint64"), np.zeros(count, dtype)]
    lw.build([state, *others, *outputs], target="llvm", autosched=True)(topi.random.threefry_key(42), *arrays, *results)
    return results


def test_the_published_vector():
    # Random123, kat_vectors: threefry4x64 of 20 rounds, key and counter 0.
    words = (0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B)
    assert tuple(cipher([0] * 4, [0] * 4)) == words


def test_uniform_numbers_are_spread_evenly():
    state, x = draw(lambda s, n: topi.random.uniform(s, 2.0, 6.0, (n,), "float32"), 40_000, "float32")
    assert x.min() >= 2 and x.max() <= 6
    # A bin has a tenth of them, give or take five deviations.
    counts = np.histogram(x, 10, (2, 6))[0]
    assert np.abs(counts - 4000).max() <= 5 * np.sqrt(40_000 * 0.1 * 0.9)
    assert state[4] == 10_000


def test_normal_numbers_have_mean_and_deviation():
    _, x = draw(lambda s, n: topi.random.normal(s, 3.0, 0.5, (n,), "float64"), 40_000, "float64")
    assert abs(x.mean() - 3) <= 5 * 0.5 / 200
    assert abs(x.std() - 0.5) <= 5 * 0.5 / np.sqrt(2 * 40_000)
    assert abs(((x - 3) / 0.5 < 1).mean() - 0.8413) <= 5 * np.sqrt(0.8413 * 0.1587 / 40_000)


def test_indices_are_as_likely_as_they_should():
    probs = np.array([1, 0, 3], "float32")
    _, x = draw(lambda s, n, p: topi.random.multinomial(s, p, n), 20_000, "int32", probs)
    counts = np.bincount(x, minlength=3)
    assert counts[1] == 0 and counts.sum() == 20_000
    assert abs(counts[0] - 5000) <= 5 * np.sqrt(20_000 * 0.25 * 0.75)


def test_wrapping():
    assert topi.random.threefry_test_wrapping("llvm")


STATE = te.placeholder((10,), "uint64", name="state")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: topi.random.threefry_split(te.placeholder((9,), "uint64")), InvalidShapeError, "9 in gen, 10 in"),
        (lambda: topi.random.threefry_split(te.placeholder((10,), "int64")), UnsuitableType, "made of int64"),
        (lambda: topi.random.threefry_generate(STATE, 5), InvalidShapeError, "out_shape is 5"),
        (lambda: topi.random.uniform(STATE, 0, 1, (2,), "int32"), UnsuitableType, "no numbers of type int32"),
        (lambda: topi.random.multinomial(STATE, te.placeholder((), "float32"), 2), InvalidShapeError, "no dimension"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()
