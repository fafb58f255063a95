"""`show()` of programs: their script, as the screen can show it (`display/sheet.py`).

Two environment variables choose defaults for `show()`: LOOPWRIGHT_STYLE (light, dark, ansi or a Pygments style) and
LOOPWRIGHT_BLACK_FORMAT (1: lines are broken by the formatter `black`). `script()` depends on neither.
"""

from __future__ import annotations

import os

from loopwright.display.sheet import Code, Sheet
from loopwright.ir import IRModule, Node, PrimFunc
from loopwright.runtime.errors import LoopwrightError
from loopwright.script.printer import render, script_text


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


def script_show(obj: object, style: str | None = None, black_format: bool | None = None, **options: object) -> None:
    """Write the script of `obj` to the screen."""
    Sheet(Code(show_script(script_text(obj, **options), black_format))).show(style)


def cprint(printable: object, style: str | None = None, black_format: bool | None = None) -> None:
    """Write a text in Python, or the script of a program or a part of one, to the screen."""
    if isinstance(printable, str):
        Sheet(Code(show_script(printable, black_format))).show(style)
    elif isinstance(printable, (Node, IRModule)) and type(printable).__module__.startswith("loopwright.ir."):
        script_show(printable, style, black_format)
    else:
        raise TypeError(f"cprint: a {type(printable).__name__} has no script; give a text or a part of a program")


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


def script_html(obj: object) -> str:
    """The script of `obj` as HTML; a part of a program shows as it does in `repr`."""
    return Sheet(Code(script_text(obj) if isinstance(obj, (PrimFunc, IRModule)) else render(obj))).html()
