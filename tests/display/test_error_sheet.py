"""Errors in colours, in a notebook, and in place of IPython's traceback."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from loopwright import te
from loopwright.display.colours import unpainted
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import Schedule, ScheduleError
from loopwright.target import Target, UnknownTargetKind
from tests.html_check import check_html


def caught() -> LoopwrightError:
    with pytest.raises(UnknownTargetKind) as found:
        Target("lvm")
    return found.value


def refused() -> ScheduleError:
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    with pytest.raises(ScheduleError) as found:
        sch.parallel(sch.get_loops("C")[1])
    return found.value


def test_show_says_what_str_says(capsys):
    error = caught()
    error.show()
    assert capsys.readouterr().out == f"UnknownTargetKind: {error}\n  more: loopwright explain LW0601\n"


def test_notes_are_shown(capsys):
    error = caught()
    error.add_note("while reading <the settings>")
    error.show()
    assert "  while reading <the settings>\n" in capsys.readouterr().out
    assert "while reading <the settings>" in check_html(error._repr_html_())


def test_colours_set_the_parts_apart(capsys):
    error = caught()
    error.show("ansi")
    out = capsys.readouterr().out
    assert "\x1b[31mUnknownTargetKind\x1b[0m" in out and "\x1b[32mhint\x1b[0m: " in out
    assert unpainted(out) == f"UnknownTargetKind: {error}\n  more: loopwright explain LW0601\n"


def test_html_of_an_error():
    error = caught()
    told = check_html(error._repr_html_())
    assert str(error) in told and "<svg" not in error._repr_html_()


def test_html_of_a_refused_step_draws_the_witness():
    error = refused()
    markup = error._repr_html_()
    told = check_html(markup)
    assert "<svg" in markup and 'class="point"' in markup
    assert "C[0]" in told and "what would work" in told


def test_ipython_gets_the_users_lines_and_the_message():
    error = caught()
    lines = [unpainted(line) for line in error._render_traceback_()]
    assert lines[0].startswith("File ") and lines[0].endswith(", in caught")
    assert lines[1] == '    Target("lvm")'
    assert lines[2] == "UnknownTargetKind: unknown target kind 'lvm' [LW0601]"
    assert lines[-1] == "  more: loopwright explain LW0601"
    assert not [line for line in lines if "loopwright/target" in line]  # nothing of our own insides


def test_no_colours_in_a_traceback_that_is_to_stay_plain(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "\n".join(caught()._render_traceback_())


def test_a_cell_has_the_name_that_the_user_knows(monkeypatch):
    error = caught()
    line = error.user_line
    assert line is not None
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=lambda file: ("Cell", "In[3]")))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    lines = [unpainted(text) for text in error._render_traceback_()]
    assert lines[0] == f"Cell In[3], line {line.line}, in caught"
    assert [text for text in lines if text.startswith("  call:")] == [
        f'  call: Target("lvm") at Cell In[3], line {line.line}'
    ]


def test_an_ordinary_file_in_ipython_keeps_its_name(monkeypatch):
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=lambda file: None))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert unpainted(caught()._render_traceback_()[0]).startswith("File ")


def test_every_line_of_a_long_message_is_there():
    error = LoopwrightError("first\nsecond", why="because\nof this", hint="try <that> & more")
    told = check_html(error._repr_html_())
    assert "first\nsecond [LW0001]" in told and "of this" in told and "try <that> & more" in told
