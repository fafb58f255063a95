"""The benchmark of searches: its programs exist, and its figures say what the final races said."""

from __future__ import annotations

import pytest

from benchmarks.search.cli import at, mean
from benchmarks.search.tasks import tasks


def test_there_are_programs_of_every_kind():
    found = list(tasks())
    assert len(found) >= 40
    assert len({(one.family, one.name) for one in found}) == len(found)


@pytest.mark.parametrize("name", ["LSTM cell", "attention", "pooling", "inception"])
def test_programs_that_no_other_benchmark_has_can_be_made(name):
    from loopwright import te

    for one in tasks():
        if one.family == name:
            te.create_prim_func(one.program())


def test_a_final_race_that_takes_gains_back_is_believed():
    row = {"ratios": [1.0, 1.1, 1.2], "final": 1.1}
    assert [at(row, k) for k in (0, 1, 2, 9)] == pytest.approx([1.0, 1.05, 1.1, 1.1])
    row = {"ratios": [1.0, 1.1], "final": 1.0}
    assert at(row, 5) == 1.0
    assert at({"ratios": [1.0, 1.1], "final": 1.3}, 1) == 1.1
    assert mean([2.0, 8.0]) == pytest.approx(4.0)
