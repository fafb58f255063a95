"""What a plan shows: decisions as a table, and the loops."""

from __future__ import annotations

from loopwright import autosched, te
from loopwright.ir import IRModule
from tests.html_check import check_html


def plan():
    A = te.placeholder((64, 32), name="A")
    B = te.placeholder((32, 48), name="B")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((64, 48), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return autosched.apply(te.create_prim_func([A, B, C]), "llvm")


def test_every_choice_and_the_loops(capsys):
    made = plan()
    made.show()
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "Plan for main  1 decision"
    assert lines[1].split() == ["blocks", "rule", "choice", "why"]
    for decision in made.decisions:
        assert decision.rule in out
        for choice in decision.choices:
            assert any(choice.what in line and choice.why in line for line in lines)
    begin = lines.index("Loops of main")
    assert any("block C · reduction" in line for line in lines[begin:])
    assert any("vectorized" in line for line in lines[begin:])


def test_html():
    made = plan()
    told = check_html(made._repr_html_())
    assert "Loops of main" in told and made.decisions[0].choices[0].why in told


def test_a_plan_of_nothing(capsys):
    autosched.apply(IRModule(), "llvm").show()
    assert capsys.readouterr().out.startswith("Plan for ")
