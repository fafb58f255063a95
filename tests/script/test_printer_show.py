"""show(): plain text where nobody sees colours, escape codes or HTML where somebody does."""

from __future__ import annotations

import re

import pytest

from loopwright import ir
from loopwright.script.highlight import UnknownStyle, highlight

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
