"""Kernels as tutorials write them, emulated: in every order of threads they compute what numpy does."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from tests.cuda_programs import PROGRAMS, vector_add

EMULATED = "cuda -model=emulated"
ORDERS = ("forwards", "backwards", "random")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_numpy_does(name):
    inputs, args, given, wanted = PROGRAMS[name]()
    module = lw.build(inputs, args, target=EMULATED)
    for order in ORDERS:
        module.set_thread_order(order, seed=5)
        outputs = [np.full_like(one, -1) for one in wanted]
        module(*given, *outputs)
        for output, one in zip(outputs, wanted):
            np.testing.assert_allclose(output, one, rtol=2e-3 if one.dtype == "float16" else 2e-5, atol=1e-5)


def test_tails_of_every_length():
    schedule, args = vector_add()
    module = lw.build(schedule, args, target=EMULATED)
    for n in (0, 1, 255, 256, 257, 1000):
        a, b = np.arange(n, dtype="float32"), np.full(n, 0.5, "float32")
        c = np.full(n + 3, -1, "float32")
        module(a, b, c[:n])
        np.testing.assert_array_equal(c, [*(a + b), -1, -1, -1])
