"""show(): plain text where nobody sees colours, escape codes or HTML where somebody does."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest

from loopwright import ir
from loopwright.display.colours import UnknownStyle, highlight
from loopwright.script.highlight import NoFormatter, cprint

LOOP = ir.For(ir.Var("i"), 0, 4, ir.ForKind.SERIAL, ir.Evaluate(ir.const(0)))
TEXT = "for i in range(4):\n    T.evaluate(0)\n"


def test_plain_when_the_output_is_no_terminal(capsys):
    LOOP.show()
    assert capsys.readouterr().out == TEXT


def test_modules_show_too(capsys):
    ir.IRModule().show()
    assert capsys.readouterr().out.endswith("class Module:\n    pass\n")


@pytest.mark.parametrize("style", ["light", "dark", "ansi", "vim"])
def test_a_style_asks_for_colours(capsys, style):
    LOOP.show(style)
    shown = capsys.readouterr().out
    assert "\x1b[" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == TEXT


def test_html():
    assert "<div" in highlight(TEXT, "light", html=True)


def test_unknown_style_names_the_known_ones():
    with pytest.raises(UnknownStyle, match=r"unknown style 'neon'(.|\n)*light, dark, ansi"):
        LOOP.show("neon")


def test_notebooks_show_html():
    func = ir.PrimFunc([], LOOP, attrs={"global_symbol": "main"})
    for shown in (func, ir.IRModule({"main": func})):
        assert "<div" in shown._repr_html_() and "prim_func" in shown._repr_html_()
    assert "import" not in LOOP._repr_html_()


def test_the_environment_chooses_a_style_but_never_changes_script(capsys, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_STYLE", "neon")
    monkeypatch.setenv("LOOPWRIGHT_BLACK_FORMAT", "1")
    monkeypatch.setitem(sys.modules, "black", None)
    assert LOOP.script() + "\n" == TEXT
    with pytest.raises(UnknownStyle, match="neon"):
        LOOP._repr_html_()
    with pytest.raises(NoFormatter, match="black_format needs the package black"):
        LOOP.show()
    LOOP.show(black_format=False)
    assert capsys.readouterr().out == TEXT  # no terminal: no colours, whatever the style


def test_black_breaks_lines(capsys, monkeypatch):
    class Mode:
        pass

    def format_str(text, mode):
        assert isinstance(mode, Mode)
        return text.upper() + "\n"

    monkeypatch.setitem(sys.modules, "black", SimpleNamespace(Mode=Mode, format_str=format_str))
    LOOP.show(black_format=True)
    assert capsys.readouterr().out == TEXT.upper()


def test_cprint_takes_texts_and_parts_of_programs(capsys):
    cprint("a + 1")
    cprint(ir.Var("v") + 1)
    assert [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()] == ["a + 1", "v + 1"]
    with pytest.raises(TypeError, match="a dict has no script"):
        cprint({})
