"""`show()`: the script in colours where the screen has them, plain text elsewhere."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.script.printer import script_text

# Our style names → Pygments' own. "ansi" keeps to the sixteen colours that every terminal has.
STYLES: Final = {"light": "default", "dark": "monokai", "ansi": "bw"}


class UnknownStyle(LoopwrightError, ValueError):
    """A style for `show()` that neither Loopwright nor Pygments knows."""

    code = "LW0390"

    def __init__(self, style: str) -> None:
        super().__init__(
            f"show: unknown style {style!r}",
            hint=f"use one of {', '.join(STYLES)}, or the name of a Pygments style",
            fields={"style": style},
        )


def script_show(obj: Any, style: str | None = None, **options: Any) -> None:
    """Write the script of `obj` to the screen."""
    show_text(script_text(obj, **options), style)


def show_text(text: str, style: str | None = None) -> None:
    """Write Python text to the screen: HTML in a notebook, colours in a terminal, else plain text."""
    display = _notebook_display()
    if display is not None:
        display(highlight(text, style or "light", html=True))
        return
    # NO_COLOR: https://no-color.org
    coloured = style is not None or (sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    sys.stdout.write(highlight(text, style or "ansi") if coloured else text + "\n")


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
