"""The random programs of scalar parameters: they mean something, differ, and what is wrong with them is seen."""

from __future__ import annotations

from loopwright.ir import substitute
from tests.schedule.harness.parametric import VALUES, ParametricProgram, meant, parametric_program


def test_programs_mean_something_and_have_what_they_are_for():
    texts = [program.source.text(()) for program in map(parametric_program, range(40))]
    assert len(set(texts)) == len(texts)
    for part in ("T.where", "range(T.min(n", "T.axis.reduce", "1500000000", " // m", "* n"):
        assert any(part in text for text in texts), part
    assert all(3 <= len(meant(text)) <= len(VALUES) for text in texts)


def test_another_program_is_found_to_be_another():
    program = parametric_program(1)
    assert isinstance(program, ParametricProgram)
    assert program.wrong_after(program.function) is None
    scalar = program.function.params[-1]
    other = program.function.with_(body=substitute(program.function.body, {scalar: scalar + 1}))
    assert "n, m = " in str(program.wrong_after(other))
