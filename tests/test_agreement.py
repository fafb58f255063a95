"""Random programs agree bit for bit between the evaluator at every stage of lowering and the native code."""

from __future__ import annotations

import pytest

from tests.agreement import assert_agreement
from tests.campaign import programs
from tests.random_limits import limit_arguments, limit_function, runs
from tests.random_programs import random_arguments, random_function

pytestmark = pytest.mark.optimized

PROGRAMS = programs(20, 240)
CHUNK = 10  # programs a test, so that two workers share the time evenly


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs_agree(first):
    for seed in range(first, first + CHUNK):
        function = random_function(seed)
        assert_agreement(function, random_arguments(function, seed))


LIMIT_PROGRAMS = programs(10, 200)


@pytest.mark.parametrize("first", range(0, LIMIT_PROGRAMS, CHUNK))
def test_random_programs_near_the_limits_of_integers_agree(first):
    for seed in range(first, first + CHUNK):
        function = limit_function(seed)
        arguments = limit_arguments(function, seed)
        if runs(function, arguments):
            assert_agreement(function, arguments)
