"""The random programs of ragged loops: they run, differ, and every smaller one runs as well."""

from __future__ import annotations

import pytest

from tests.schedule.harness.ragged import ragged_program, runs


@pytest.mark.long
def test_programs_run_and_have_what_they_are_for():
    texts = [program.source.text(program.sizes) for program in map(ragged_program, range(150))]
    assert len(set(texts)) > 145
    for part in ("T.where", "if ", "range(i - 1)", "T.min(N[", "T.axis.reduce", "alloc_buffer", " + j)", " * 2)"):
        assert sum(part in text for text in texts) > 3, part


def test_smaller_programs_run():
    program = ragged_program(3)
    smaller = list(program.smaller())
    assert len(smaller) > 5
    assert all(runs(each.source.text(each.sizes)) for each in smaller)
