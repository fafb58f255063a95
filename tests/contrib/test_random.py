"""contrib.random: tensors of random numbers in te programs."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.contrib import random
from loopwright.contrib.random import BadRandomRange
from loopwright.runtime import get_global_func


def test_numbers_are_drawn_at_every_run_and_repeat_with_the_seed():
    numbers = random.randint(-3, 4, (200,), "int64")
    run, seed = lw.build(te.create_schedule(numbers.op), [numbers], "llvm"), get_global_func("tvm.contrib.random.seed")
    seed(3)
    first, second, again = [np.zeros(200, "int64") for _ in range(3)]
    run(first)
    run(second)
    seed(3)
    run(again)
    assert first.min() == -3 and first.max() == 3
    assert (first == again).all() and (first != second).any()


def test_distributions():
    shape = (1000,)
    out = lw.nd.empty(shape)
    get_global_func("tvm.contrib.random.uniform")(2.0, 3.0, out)
    assert 2 <= out.numpy().min() < out.numpy().max() <= 3
    get_global_func("tvm.contrib.random.normal")(5.0, 0.5, out)
    assert abs(out.numpy().mean() - 5) < 0.2 and 0.3 < out.numpy().std() < 0.7
    assert str(random.uniform(0, 1, shape).dtype) == str(random.normal(0, 1, shape).dtype) == "float32"


def test_an_empty_range_is_refused():
    with pytest.raises(BadRandomRange, match="randint: integers from 4 below 4 in int32"):
        random.randint(4, 4, (2,))
