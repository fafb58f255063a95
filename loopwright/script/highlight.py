"""`show()`: the script in colours where the screen has them, plain text elsewhere; HTML for notebooks and files.

Two environment variables choose defaults for `show()`: LOOPWRIGHT_STYLE (light, dark, ansi or a Pygments style) and
LOOPWRIGHT_BLACK_FORMAT (1: lines are broken by the formatter `black`). `script()` depends on neither.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from loopwright.ir import IRModule, PrimFunc
from loopwright.runtime.errors import LoopwrightError
from loopwright.script.printer import render, script_text

# Our style names → Pygments' own. "ansi" keeps to the sixteen colours that every terminal has.
STYLES: Final = {"light": "default", "dark": "monokai", "ansi": "bw"}


class UnknownStyle(LoopwrightError, ValueError):
    """A style for `show()` that neither Loopwright nor Pygments knows.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(n: T.int32):\\n    T.evaluate(n)").show("neon")
    """

    code = "LW0390"

    def __init__(self, style: str) -> None:
        super().__init__(
            f"show: unknown style {style!r}",
            hint=f"use one of {', '.join(STYLES)}, or the name of a Pygments style",
            fields={"style": style},
        )


class NoFormatter(LoopwrightError, ImportError):
    """`show(black_format=True)` needs the formatter `black`, which is not installed.

    For example:

        # needs a process of its own
        import sys
        from loopwright.script.highlight import black_formatted

        sys.modules["black"] = None  # as if it were not installed
        black_formatted("x=1")
    """

    code = "LW0328"

    def __init__(self) -> None:
        super().__init__("show: black_format needs the package black", hint="pip install black, or leave it out")


def script_show(obj: Any, style: str | None = None, black_format: bool | None = None, **options: Any) -> None:
    """Write the script of `obj` to the screen."""
    show_text(show_script(script_text(obj, **options), black_format), style)


def show_script(text: str, black_format: bool | None) -> str:
    """The script as it is to be shown: with its lines broken by `black`, where that is asked for or usual."""
    if black_format is None:
        black_format = os.environ.get("LOOPWRIGHT_BLACK_FORMAT", "0") not in ("", "0")
    return black_formatted(text) if black_format else text


def black_formatted(text: str) -> str:
    """`text` with its lines broken by the formatter `black`."""
    try:
        import black  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise NoFormatter from None
    formatted: str = black.format_str(text, mode=black.Mode())
    return formatted.rstrip("\n")


def script_html(obj: Any) -> str:
    """The script of `obj` as HTML; a part of a program shows as it does in `repr`."""
    text = script_text(obj) if isinstance(obj, (PrimFunc, IRModule)) else render(obj)
    return highlight(text, os.environ.get("LOOPWRIGHT_STYLE") or "light", html=True)


def show_text(text: str, style: str | None = None, marks: Sequence[str] = ()) -> None:
    """Write Python text to the screen: HTML in a notebook, colours in a terminal, else plain text.

    `marks`, one a line, stand before the lines; a line with a mark stands out: "+" in green, "-" in red.
    """
    usual = os.environ.get("LOOPWRIGHT_STYLE")
    display = _notebook_display()
    lines = text.split("\n")
    if display is not None:
        chosen = [number for number, mark in enumerate(marks, 1) if mark.strip()]
        shown = "\n".join([f"{mark} {line}" for mark, line in zip(marks, lines, strict=True)]) if marks else text
        display(highlight(shown, style or usual or "light", html=True, stand_out=chosen))
        return
    coloured = style is not None or has_colours()
    if not marks:
        sys.stdout.write(highlight(text, style or usual or "ansi") if coloured else text + "\n")
        return
    if coloured:
        lines = highlight(text, style or usual or "ansi").rstrip("\n").split("\n")
        marks = [f"{_MARK_COLOURS[mark]}{mark}\x1b[0m" if mark in _MARK_COLOURS else mark for mark in marks]
    sys.stdout.write("".join([f"{mark} {line}".rstrip() + "\n" for mark, line in zip(marks, lines, strict=True)]))


_MARK_COLOURS: Final = {"+": "\x1b[30;42m", "-": "\x1b[30;41m"}


def has_colours() -> bool:
    """Whether the screen is a terminal, and nobody wants it plain (NO_COLOR: https://no-color.org)."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def highlight(text: str, style: str = "ansi", html: bool = False, stand_out: Sequence[int] = ()) -> str:
    """`text` with the escape codes (or the HTML) that colour it; in HTML, the lines with these numbers stand out."""
    import pygments  # type: ignore[import-untyped,unused-ignore]
    from pygments.formatters import HtmlFormatter, Terminal256Formatter, TerminalFormatter  # type: ignore[import-untyped,unused-ignore]
    from pygments.lexers.python import Python3Lexer  # type: ignore[import-untyped,unused-ignore]
    from pygments.styles import get_style_by_name  # type: ignore[import-untyped,unused-ignore]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped,unused-ignore]

    formatter: Any
    if style == "ansi" and not html:
        formatter = TerminalFormatter()
    else:
        try:
            chosen = get_style_by_name(STYLES.get(style, style))
        except ClassNotFound:
            raise UnknownStyle(style) from None
        if html:
            formatter = HtmlFormatter(style=chosen, noclasses=True, hl_lines=list(stand_out))
        else:
            formatter = Terminal256Formatter(style=chosen)
    coloured: str = pygments.highlight(text, Python3Lexer(stripnl=False), formatter)
    return coloured


def html_lines(lines: Sequence[str]) -> list[str]:
    """Each line as HTML whose classes `style_rules` gives colours, so that a page can change them."""
    import pygments
    from pygments.formatters import HtmlFormatter
    from pygments.lexers.python import Python3Lexer

    lexer, formatter = Python3Lexer(stripnl=False), HtmlFormatter(nowrap=True)
    return [pygments.highlight(line, lexer, formatter).rstrip("\n") for line in lines]


def style_rules(style: str, inside: str) -> str:
    """The CSS rules for `html_lines` in elements that `inside` selects."""
    from pygments.formatters import HtmlFormatter
    from pygments.styles import get_style_by_name

    formatter = HtmlFormatter(style=get_style_by_name(STYLES.get(style, style)))
    rules: list[str] = formatter.get_token_style_defs(inside)
    return "\n".join(rules)


def _notebook_display() -> Any:
    """How to show HTML, when the program runs in a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

    return lambda markup: display(HTML(markup))
