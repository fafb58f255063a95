"""Random programs that nobody scheduled: what the rules make of them is right in every order of threads.

`benchmarks/fuzz_gpu.py --rules` is the campaign.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from tests.campaign import programs
from tests.check_rules import check
from tests.random_unscheduled import random_unscheduled


@pytest.mark.parametrize("seed", range(100, 100 + programs(6, 200)))
def test_programs_that_rules_schedule(seed):
    verdict = check(seed)
    assert verdict.kind == "right", verdict.why


def test_a_seed_is_a_program():
    one, other = random_unscheduled(7), random_unscheduled(7)
    assert one.steps == other.steps
    assert all([np.array_equal(a, b) for a, b in zip(one.inputs, other.inputs, strict=True)])


@pytest.mark.long
def test_a_sum_over_axes_without_a_common_factor():
    """Its proof takes isl quotients of one fused loop by 221 and by 13: this took minutes."""
    A = te.placeholder((3, 16, 17, 13), name="A")
    B = topi.sum(A, axis=[1, 2, 3])
    module = lw.build([A, B], target="cuda -model=emulated", autosched=True)
    a, b = np.ones((3, 16, 17, 13), "float32"), np.zeros(3, "float32")
    module(a, b)
    assert b.tolist() == [16 * 17 * 13] * 3
