"""Short rows on a GPU: a thread reduces a row of a block's piece of memory; right for all types and tails."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.codegen.source.cuda.emulate import ORDERS

EMULATED = "cuda -model=emulated"
RNG = np.random.default_rng(0)


def total(A, make=te.sum):
    k = te.reduce_axis((0, A.shape[-1]), "k")
    return te.compute(A.shape[:-1], lambda *at: make(A[(*at, k)], axis=k), name="S")


def test_means_sums_and_maxima():
    P, B = te.placeholder((293, 7, 3, 5), name="P"), te.placeholder((2048, 9), "int8", name="B")
    H = te.placeholder((42, 51, 13), "float16", name="H")
    programs = [[P, topi.nn.global_pool(P, "avg")], [H, total(H, te.max)], [B, total(B)]]
    for args in programs:
        plan = autosched.apply(args, EMULATED).explain()
        assert "rows of" in plan and "a thread each: they are one piece of memory" in plan, plan
    shapes = [[int(n) for n in args[0].shape] for args in programs]
    types = [str(args[0].dtype) for args in programs]
    given = [RNG.integers(-3, 4, shape).astype(dtype) for shape, dtype in zip(shapes, types, strict=True)]
    p, h, b = given
    wanted = [p.sum((2, 3), keepdims=True) / np.float32(15), h.max(2), b.sum(1, dtype="int8")]
    module = lw.build([*[args[0] for args in programs], *[args[1] for args in programs]], EMULATED, autosched=True)
    for order in ORDERS:
        module.set_thread_order(order)
        results = [np.full_like(want, 1) for want in wanted]
        module(*given, *results)
        for result, want in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(result, want)


def test_other_rows_are_left_to_other_rules():
    for shape in ((2048, 8), (2048, 48), (2047, 9), (4096, 105)):
        A = te.placeholder(shape, name="A")
        assert "one piece of memory" not in autosched.apply([A, total(A)], EMULATED).explain()
    A = te.placeholder((49, 4096), name="A")
    k = te.reduce_axis((0, 49), "k")
    columns = te.compute((4096,), lambda i: te.sum(A[k, i], axis=k), name="S")
    assert "one piece of memory" not in autosched.apply([A, columns], EMULATED).explain()
