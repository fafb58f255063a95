"""Programs in which memory goes by two names: whatever step is accepted keeps every value."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.view import View
from tests.schedule.harness.cases import moves_of
from tests.schedule.harness.programs import NAMES

KINDS = (
    "Fuse Reorder Fission Merge ComputeAt ReverseComputeAt UnrollAndJam CacheRead CacheWrite ReIndex ReadAt WriteAt "
    "AddGuard DecomposeReduction Parallel Vectorize ReindexCacheWrite Unroll AddUnitLoop"
).split()


def result_of(function: PrimFunc) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [[int(extent) for extent in buffer.shape] for buffer in function.argument_buffers()]
    arrays = [rng.integers(-50, 50, shape).astype("int32") for shape in shapes]
    evaluate(function, *arrays)
    return arrays


@pytest.mark.one_in(2)
@pytest.mark.parametrize("template", NAMES, ids=lambda template: template.name)
def test_what_is_accepted_keeps_every_value(template):
    (program,) = template.programs((3,))
    expected = result_of(program.function)
    accepted = refused = 0
    for moves in moves_of(View(program.function), KINDS).values():
        for move in moves:
            sch = Schedule(program.function)
            try:
                move.apply(sch)
            except ScheduleError:
                refused += 1
                continue
            accepted += 1
            for array, wanted in zip(result_of(sch.mod["main"]), expected, strict=True):
                np.testing.assert_array_equal(array, wanted, err_msg=str(move))
    assert accepted >= 2
    assert refused >= 3
