"""Random schedules of random programs keep every value; `benchmarks/fuzz_schedules.py` runs more."""

from __future__ import annotations

import pytest

from tests.schedule.harness.fuzz import STEPS, fuzz
from tests.schedule.harness.programs import Program, random_sketch

PROGRAMS = 320
CHUNK = 20  # programs a test, so that two workers share the time evenly
NATIVE_EVERY = 4  # building takes longer than all the rest


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_schedules_keep_every_value(first):
    found = fuzz(range(first, first + CHUNK), NATIVE_EVERY)
    if found.failing:
        pytest.fail("\n\n".join([failing.report() for failing in found.failing[:3]]))
    assert found.steps >= CHUNK * STEPS * 3 // 4, "too many steps were refused: the schedules are too short"


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_sketches_get_smaller(seed):
    sketch = random_sketch(seed)
    program = Program(sketch, (3, 5, 2))
    assert program.function.script() == Program(random_sketch(seed), (3, 5, 2)).function.script()
    for smaller in program.smaller():
        assert smaller.function.body is not None  # it parses, so it is well formed
        assert smaller != program
