"""show: the program with what the last step changed marked."""

from __future__ import annotations

import sys

from loopwright import te
from loopwright.display import screen
from loopwright.schedule import Schedule
from tests.schedule.page.ladder import watched
from tests.schedule.steps import matmul


def test_plain_markers_where_there_is_no_terminal(capsys):
    watched().show()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "  # step 2: parallel(i_0) · marked +: new with it"
    assert "+         for i_0 in T.parallel(2):" in lines
    assert [line for line in lines if line.startswith("+")] == [
        "+         for i_0 in T.parallel(2):",
        "+             for i_1 in range(4):",
    ]
    assert "  class Module:" in lines
    begin = lines.index("2 steps  each proved, 1 refused")
    assert [line.split()[0] for line in lines[begin + 1 :]] == ["step", "✗", "1", "2"]
    assert "refused: WouldChangeValues" in lines[begin + 2] and "order kept, no races" in lines[-1]


def test_colours_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    watched().show()
    marked = [line for line in capsys.readouterr().out.splitlines() if "\x1b[30;42m+\x1b[0m" in line]
    assert len(marked) == 2 and "parallel" in marked[0]


def test_no_steps_no_marks(capsys):
    Schedule(matmul()).show()
    out = capsys.readouterr().out
    assert out.startswith("# from loopwright.script import ir as I\n") and "marked" not in out


def test_lines_that_went_are_counted(capsys):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    sch.compute_inline("B")
    sch.show()
    out = capsys.readouterr().out
    assert "- # 7 lines went here" in out.splitlines()
    assert "+                 C[v_i] = (A[v_i] + T.float32(1)) * T.float32(2)" in out.splitlines()


def test_a_step_that_changes_no_line(capsys):
    sch = Schedule(matmul())
    sch.reorder(*sch.get_loops("C"))
    sch.show()
    assert capsys.readouterr().out.startswith("  # step 1: reorder(i, j, k) · no line changed\n")


def test_options_of_the_printer(capsys):
    watched().show(style="ansi", tir_prefix="X")
    out = capsys.readouterr().out
    assert "X" in out and "\x1b[" in out


def test_a_notebook_gets_html_with_lines_that_stand_out(monkeypatch):
    shown = []
    monkeypatch.setattr(screen, "notebook_display", lambda: lambda markup, text: shown.append(markup))
    watched().show()
    (markup,) = shown
    assert '<span class="added">+' in markup and "each proved, 1 refused" in markup
