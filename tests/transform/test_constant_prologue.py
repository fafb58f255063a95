"""constant_prologue: a function in two, of which one depends on constant parameters alone."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright.ir.annotations import CONSTANT_PARAMS
from loopwright.script import tir as T
from loopwright.transform.parts.constant_prologue import constant_params, part_function


@T.prim_func
def scaled(A: T.Buffer((8,), "float32"), W: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    twice = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("twice"):
            v = T.axis.spatial(8, i)
            twice[v] = W[v] + W[v]
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] * twice[v]


@T.prim_func
def both(A: T.Buffer((8,), "float32"), W: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    twice = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("twice"):
            v = T.axis.spatial(8, i)
            twice[v] = W[v] + W[v]
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] * twice[v] + W[v]


def run(func, *arrays):
    lw.build(func)(*arrays)


def test_two_functions_compute_what_one_did():
    parted = part_function(scaled.with_attr(CONSTANT_PARAMS, (1,)), exact=True)
    assert parted.reads == (1,) and parted.keeps == (0, 2)
    a, w = np.arange(8, dtype="float32"), np.full(8, 1.5, "float32")
    made, c = np.zeros(8, "float32"), np.zeros(8, "float32")
    run(parted.early, w, made)
    np.testing.assert_array_equal(made, 2 * w)
    run(parted.rest, a, c, made)
    np.testing.assert_array_equal(c, a * 3)


def test_a_constant_that_is_read_again_stays_a_parameter():
    parted = part_function(both.with_attr(CONSTANT_PARAMS, (1,)), exact=True)
    assert parted.keeps == (0, 1, 2) and len(parted.rest.params) == 4


def test_without_constants_there_is_no_early_part():
    assert part_function(scaled, exact=True) is None
    assert part_function(scaled.with_attr(CONSTANT_PARAMS, (0,)), exact=True) is None
    assert constant_params(scaled) == {}
