"""The lets that are added to programs: they stand everywhere, are used everywhere, and a smaller program has fewer."""

from __future__ import annotations

import random
import re

import pytest

from tests.schedule.harness.fuzz import ONLY, random_program
from tests.schedule.harness.lets import WithLets
from tests.schedule.harness.parametric import parametric_program
from tests.schedule.harness.programs import TEMPLATES
from tests.schedule.harness.ragged import ragged_program, runs, with_lets_that_run

LET = re.compile(r"x\d: T\.\w+ = |as x\d:")


def text_of(program):
    return program.source.text(program.sizes)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("family", [*ONLY, "all"])
def test_a_fair_share_of_the_programs_has_lets(family):
    make = ONLY.get(family) or (lambda seed: random_program(random.Random(seed), seed))
    programs = [make(seed) for seed in range(30)]
    share = sum(bool(LET.search(text_of(program))) for program in programs) / len(programs)
    assert 0.2 < share < 0.8


USES = {
    "the bound of a loop": r"range\([^\n]*\bx\d",
    "a binding": r"T\.axis\.\w+\([^\n]*\bx\d",
    "a guard": r"(T\.where\(|if )[^\n]*\bx\d",
    "an index": r"[ABN]\d?\[[^]\n]*\bx\d",
    "a stored value": r"\] = [^\n]*\bx\d",
    "another let": r"x\d: T\.\w+ = [^\n]*\bx\d",
    "an init": r"T\.init\(\):\n[^\n]*\] = [^\n]*\bx\d",
}
VALUES = {
    "a loop": r"x\d: T\.\w+ = [^\n]*\b[ijk]\b",
    "an axis": r"x\d: T\.\w+ = [^\n]*\bv\d\b",
    "an input": r"x\d: T\.\w+ = [^\n]*\b[AN]\[",
    "a buffer that is written": r"x\d: T\.\w+ = [^\n]*\bB\d\[",
    "a condition": r"x\d: T\.bool",
    "a parameter": r"x\d: T\.\w+ = [^\n]*\b[nm]\b",
}


def test_lets_name_everything_and_are_used_everywhere():
    missing = USES | VALUES | {"between two loops": r"for (\w) in [^\n]*\n *x\d: T\.\w+ = [^\n]*\n *for "}
    for seed in range(250):
        for program in (ragged_program, parametric_program):
            text = text_of(program(seed))
            missing = {title: pattern for title, pattern in missing.items() if not re.search(pattern, text)}
        if not missing:
            return
    assert not missing


def test_smaller_programs_have_fewer_lets_and_run():
    program = next(program for program in map(ragged_program, range(100)) if isinstance(program.source, WithLets))
    while LET.search(text_of(program)):
        smaller = list(program.smaller())
        assert all(runs(text_of(each)) for each in smaller)
        program = smaller[0]


def test_a_program_that_means_nothing_with_lets_stays_as_it_is():
    rng = random.Random(0)
    for template in TEMPLATES[:20]:
        program = next(iter(template.programs((3,))))
        assert runs(text_of(with_lets_that_run(program, rng, share=1.0)))
