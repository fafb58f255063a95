"""Short rows on a GPU: a thread reduces a row of a block's piece of memory; right for all types and tails."""

from __future__ import annotations

import numpy as np

from loopwright import autosched, te, topi
from tests.autosched.gpu.emulated import EMULATED, Program, check

RNG = np.random.default_rng(0)


def total(A, make=te.sum):
    k = te.reduce_axis((0, A.shape[-1]), "k")
    return te.compute(A.shape[:-1], lambda *at: make(A[(*at, k)], axis=k), name="S")


def test_means_sums_and_maxima():
    P, B = te.placeholder((293, 7, 3, 5), name="P"), te.placeholder((2048, 9), "int8", name="B")
    H = te.placeholder((42, 51, 13), "float16", name="H")
    p, b, h = [
        RNG.integers(-3, 4, [int(n) for n in tensor.shape]).astype(str(tensor.dtype)) for tensor in (P, B, H)
    ]
    made = check(
        Program([P, topi.nn.global_pool(P, "avg")], [p], [p.sum((2, 3), keepdims=True) / np.float32(15)]),
        Program([H, total(H, te.max)], [h], [h.max(2)]),
        Program([B, total(B)], [b], [b.sum(1, dtype="int8")]),
        orders=True,
    )
    for plan in made.plans:
        assert "rows of" in plan.explain() and "a thread each: they are one piece of memory" in plan.explain(), plan


def test_other_rows_are_left_to_other_rules():
    for shape in ((2048, 8), (2048, 48), (2047, 9), (4096, 105)):
        A = te.placeholder(shape, name="A")
        assert "one piece of memory" not in autosched.apply([A, total(A)], EMULATED).explain()
    A = te.placeholder((49, 4096), name="A")
    k = te.reduce_axis((0, 49), "k")
    columns = te.compute((4096,), lambda i: te.sum(A[k, i], axis=k), name="S")
    assert "one piece of memory" not in autosched.apply([A, columns], EMULATED).explain()
