"""Random kernels whose warps have roles compute, in every order of threads, what the text says in its order."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.evaluator import evaluate
from tests.campaign import programs
from tests.random_roles import Argument, random_roles

ORDERS = ("forwards", "backwards", "random", "random")


def copied(arguments: list[Argument]) -> list[Argument]:
    return [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]


@pytest.mark.parametrize("seed", range(programs(4, 80)))
def test_random_roles(seed):
    program = random_roles(seed)
    function = program.function()
    module = lw.build(function, target="cuda -model=emulated -arch=sm_90")
    for arguments in program.calls:
        wanted = copied(arguments)
        evaluate(function, *wanted)
        for k, order in enumerate(ORDERS):
            module.set_thread_order(order, seed=seed + k)
            got = copied(arguments)
            module(*got)
            for one, other in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{order}\n{program}")
