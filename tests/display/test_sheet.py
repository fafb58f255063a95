"""Sheets: the same parts as plain text, in a terminal of some width, and as HTML that stands alone."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest

from loopwright.display import colours, screen
from loopwright.display.colours import UnknownStyle, unpainted
from loopwright.display.sheet import Code, Lines, Markup, Sheet, Span, Table, heading, words
from tests.html_check import check_html

TABLE = Table(("name", "what"), (("a", "one"), ("bb", "two words")), ("", "bad"))
CODE = Code("for i in range(4):\n    f(i)", marks=(" ", "+"))
SHEET = Sheet(heading("Title", "a note"), TABLE, heading("Code"), CODE)


def terminal(monkeypatch, columns=80):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))


def test_plain_text():
    assert SHEET.text() == (
        "Title  a note\nname  what\na     one\nbb    two words\n\nCode\n  for i in range(4):\n+     f(i)"
    )


def test_no_colours_in_a_pipe(capsys):
    SHEET.show()
    assert capsys.readouterr().out == SHEET.text() + "\n"


def test_colours_in_a_terminal(capsys, monkeypatch):
    terminal(monkeypatch)
    SHEET.show()
    out = capsys.readouterr().out
    assert "\x1b[1mTitle\x1b[0m" in out and "\x1b[30;42m+\x1b[0m" in out
    assert "two words" in unpainted(out)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_is_to_stay_plain(capsys, monkeypatch, name, value):
    terminal(monkeypatch)
    monkeypatch.setenv(name, value)
    SHEET.show()
    assert "\x1b" not in capsys.readouterr().out


def test_an_empty_no_color_says_nothing(monkeypatch):
    terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "")
    assert screen.has_colours()


@pytest.mark.parametrize("columns", [20, 40, 41, 79, 200])
@pytest.mark.parametrize("style", [None, "ansi", "dark"])
def test_tables_keep_to_the_width(columns, style):
    table = Table(("step", "why"), (("split", "word " * 30), ("a" * 50, "")))
    sheet = Sheet(table)
    text = sheet.text(columns) if style is None else unpainted(sheet.coloured(style, columns))
    assert max(len(line) for line in text.split("\n")) <= columns
    assert re.sub(r"\s", "", text).count("a" * 15) >= 1  # folded, not cut
    assert text.count("word") == 30


def test_plain_text_in_a_file_has_whole_lines():
    assert "x" * 500 in Sheet(Table(("long",), (("x" * 500,),))).text()


def test_an_empty_table_and_an_empty_sheet():
    assert Sheet(Table(("a", "b"), ())).text() == "a  b"
    assert Sheet().text() == ""
    check_html(Sheet().html())
    check_html(Sheet(Table(("a", "b"), ())).html())


def test_html_is_well_formed_and_stands_alone():
    markup = SHEET.html()
    check_html(markup)
    assert '<span class="added">+' in markup
    assert '<tr class="bad">' in markup


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a & b", "</pre>", '"quoted"', "naïve → ✗"])
def test_html_escapes_everything(text):
    parts = (heading(text, text), words(text, tone="bad"), Table((text,), ((text,),)), Code(text), Code(text, "text"))
    markup = Sheet(*parts).html()
    check_html(markup)
    assert "<script" not in markup


def test_html_follows_the_theme_of_the_page():
    markup = SHEET.html()
    assert "light-dark(" in markup and "color-scheme:light dark" in markup
    for theme in ('[data-jp-theme-light="false"]', ".vscode-dark"):
        assert f"{theme} .loopwright.auto" in markup


@pytest.mark.parametrize("style", ["light", "dark", "vim"])
def test_a_style_fixes_the_colours(style):
    markup = SHEET.html(style)
    check_html(markup)
    assert "light-dark(" not in markup and f'class="loopwright style-{style}"' in markup


def test_every_colour_can_be_read_on_its_background():
    """Text and background come from one style, so a dark page never has light text on a light block."""
    for style, is_dark in (("light", False), ("dark", True)):
        background, text = colours.page_colours(style)
        brightness = [sum(bytes.fromhex(colour[1:])) for colour in (background, text)]
        assert (brightness[0] < brightness[1]) == is_dark == colours.is_dark(style)
        assert abs(brightness[0] - brightness[1]) > 300


def test_a_style_that_is_not_there():
    with pytest.raises(UnknownStyle, match="unknown style 'neon'"):
        SHEET.html("neon")
    with pytest.raises(UnknownStyle, match="unknown style 'neon'"):
        SHEET.coloured("neon")


def test_a_notebook_gets_html(monkeypatch, capsys):
    shown = []
    module = type(sys)("IPython.display")
    module.display = lambda data, raw: shown.append(data)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(screen, "notebook", object)
    SHEET.show()
    assert shown == [{"text/html": SHEET.html(), "text/plain": SHEET.text()}]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("kind", "is_notebook"), [("ZMQInteractiveShell", True), ("Shell", True), ("TerminalInteractiveShell", False)]
)
def test_which_shells_are_notebooks(monkeypatch, kind, is_notebook):
    shell = type(kind, (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert (screen.notebook() is shell) == is_notebook
    assert screen.interactive_shell() is shell


def test_without_ipython_there_is_no_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert screen.notebook() is None and screen.notebook_display() is None


def test_a_drawing_shows_in_notebooks_alone():
    sheet = Sheet(Lines(((Span("see"),),)), Markup("<svg></svg>", (".x{color:red}",)))
    assert sheet.text() == "see"
    assert "<svg></svg>" in sheet.html() and ".x{color:red}" in sheet.html()


@pytest.mark.parametrize(
    ("language", "text"),
    [("llvm", "define i32 @f() {\n  ret i32 0\n}"), ("gas", "mov %eax, %ebx"), ("c", "int f(void) { return 0; }")],
)
def test_other_languages(language, text):
    sheet = Sheet(Code(text, language))
    assert unpainted(sheet.coloured("ansi")) == text
    assert "\x1b[" in sheet.coloured("ansi")
    check_html(sheet.html())
