"""`show()`: the script in colours where the screen has them, plain text elsewhere; HTML for notebooks and files.

Two environment variables choose defaults for `show()`: LOOPWRIGHT_STYLE (light, dark, ansi or a Pygments style) and
LOOPWRIGHT_BLACK_FORMAT (1: lines are broken by the formatter `black`). `script()` depends on neither.
"""

from __future__ import annotations

import os
import sys
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
    text = script_text(obj, **options)
    if black_format is None:
        black_format = os.environ.get("LOOPWRIGHT_BLACK_FORMAT", "0") not in ("", "0")
    show_text(black_formatted(text) if black_format else text, style)


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


def show_text(text: str, style: str | None = None) -> None:
    """Write Python text to the screen: HTML in a notebook, colours in a terminal, else plain text."""
    usual = os.environ.get("LOOPWRIGHT_STYLE")
    display = _notebook_display()
    if display is not None:
        display(highlight(text, style or usual or "light", html=True))
        return
    # NO_COLOR: https://no-color.org
    coloured = style is not None or (sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    sys.stdout.write(highlight(text, style or usual or "ansi") if coloured else text + "\n")


def highlight(text: str, style: str = "ansi", html: bool = False) -> str:
    """`text` with the escape codes (or the HTML) that colour it."""
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
        formatter = HtmlFormatter(style=chosen, noclasses=True) if html else Terminal256Formatter(style=chosen)
    coloured: str = pygments.highlight(text, Python3Lexer(), formatter)
    return coloured


def _notebook_display() -> Any:
    """How to show HTML, when the program runs in a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

    return lambda markup: display(HTML(markup))
