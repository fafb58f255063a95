"""diff: what a step changed, as a unified diff."""

from __future__ import annotations

import sys
from difflib import unified_diff

import pytest

from loopwright.schedule import Schedule
from loopwright.schedule.errors import BadStepArgument, WrongType
from loopwright.schedule.page.diff import changed_words, line_changes
from tests.schedule.page.ladder import watched
from tests.schedule.steps import chain, matmul


def test_the_last_step():
    assert str(watched().diff()) == "\n".join(
        [
            "--- after step 1",
            "+++ after step 2",
            "@@ -3,7 +3,8 @@",
            '     T.func_attr({"tir.noalias": True})',
            '     # with T.block("root"):',
            "     B = T.alloc_buffer((8,))",
            "-    for i_0, i_1 in T.grid(2, 4):",
            "+    for i_0 in T.parallel(2):",
            "+        for i_1 in range(4):",
            '             with T.block("B"):',
            "                 v_i = T.axis.spatial(8, i_0 * 4 + i_1)",
            "                 T.reads(A[v_i])",
        ]
    )


def test_numbers_of_steps_and_versions():
    sch = watched()
    assert sch.diff(1).title == "step 1: split(i, [None, 4])"
    assert str(sch.diff(-2)) == str(sch.diff(1)) == str(sch.diff(0, 1))
    whole = sch.diff(0, 2)
    assert whole.title == "at the start → after step 2"
    assert "+    for i_0 in T.parallel(2):" in whole.lines()
    assert str(sch.diff(2, 0)).startswith("--- after step 2\n+++ at the start")
    assert sch.diff(1, 1).is_empty and str(sch.diff(1, 1)) == ""


@pytest.mark.parametrize("numbers", [(0,), (3,), (-3,), (0, 3), (-4, 1)])
def test_numbers_that_there_are_not(numbers):
    with pytest.raises(BadStepArgument, match=r"diff: -?\d is no step; there are 2 steps"):
        watched().diff(*numbers)


def test_no_steps_and_no_numbers():
    with pytest.raises(BadStepArgument, match="diff: -1 is no step; there are 0 steps"):
        Schedule(matmul()).diff()
    with pytest.raises(WrongType, match="diff: a step must be a number, got str"):
        watched().diff("1")
    with pytest.raises(WrongType, match="diff: a step must be a number, got bool"):
        watched().diff(True)


def test_colours_are_for_the_screen(monkeypatch, capsys):
    diff = watched().diff()
    assert "\x1b[32m+    for i_0 in T.parallel(2):\x1b[0m" in diff.coloured()
    diff.show()
    assert capsys.readouterr().out == f"step 2: parallel(i_0)\n{diff}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31m-    for i_0, i_1 in T.grid(2, 4):\x1b[0m" in repr(diff)
    assert "\x1b" not in str(diff)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in repr(diff)


def test_html_is_escaped():
    sch = Schedule(matmul())
    sch.annotate(sch.get_loops("C")[0], "note", "<b>&")
    assert "&lt;b&gt;&amp;" in sch.diff()._repr_html_()
    assert "<b>&" not in sch.diff()._repr_html_()


def test_lines_that_only_moved_are_neither_new_nor_gone():
    before = ["a", "  b", "  c"]
    after = ["x", "  a", "    b", "    d"]
    assert list(line_changes(before, after)) == [("+", "x"), (">", "  a"), (">", "    b"), ("-", "  c"), ("+", "    d")]
    assert list(line_changes([], [])) == []


def test_hunks_are_as_in_any_unified_diff():
    """Where no line moves in or out, the text is what difflib makes of it."""
    sch = Schedule(chain())
    for block in ("D", "F"):
        sch.unroll(sch.get_loops(block)[2])
    sch.set_scope("E", 0, "local")
    for first, last in [(0, 1), (1, 2), (2, 3), (0, 3), (3, 0)]:
        diff = sch.diff(first, last)
        same = [line.replace("    ", "") for line in diff.lines()]
        wanted = [[line.replace("    ", "") for line in text] for text in (diff.before, diff.after)]
        assert same == list(unified_diff(*wanted, *diff.names, lineterm=""))


def test_words_that_changed():
    rows = [(" ", "x"), ("-", "for i in range(2):"), ("+", "for i in T.parallel(2):"), ("-", "abc"), ("+", "1 2 3 4")]
    assert changed_words(rows) == {1: [[9, 14]], 2: [[9, 19]]}
    assert changed_words([("-", "a = 1"), ("+", "    a = 1 + 2")]) == {0: [], 1: [[9, 13]]}
