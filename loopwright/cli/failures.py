"""failures: how an error of the user's program is shown by a command.

Our own errors are complete without a traceback: what was asked, where, why, what would work. Any other error keeps
the lines of its traceback that are the user's. A command under --json writes an error as JSON too, to the standard
output, where whoever asked for JSON reads.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import typer

from loopwright.display.error_sheet import message
from loopwright.display.screen import has_colours
from loopwright.display.sheet import Sheet
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.json_text import JsonObject

_PACKAGE: Final = str(Path(__file__).resolve().parent.parent)
_NOT_THE_USER: Final = (_PACKAGE, "<frozen", str(Path(runpy.__file__)))

_FRAMEWORKS: Final = ("onnx", "torch")
_MISSING_FRAMEWORK: Final = 5
_COMMAND_LINE: Final = str(Path(typer.__file__).parent)


@contextlib.contextmanager
def shown(as_json: bool = False) -> Iterator[None]:
    """Show an error that ends the command, and end it with status 1; with 5 where only a framework is missing."""
    usual = warnings.showwarning
    warnings.showwarning = _warning_of_a_command(usual)
    try:
        yield
    except (typer.Exit, typer.Abort, SystemExit, KeyboardInterrupt):
        raise
    except Exception as error:
        if as_json:
            typer.echo(json.dumps({"error": error_data(error)}, indent=2))
        else:
            typer.echo(text_of(error) if isinstance(error, LoopwrightError) else _foreign_text(error), err=True)
        raise typer.Exit(_MISSING_FRAMEWORK if _misses_a_framework(error) else 1) from None
    finally:
        warnings.showwarning = usual


def _warning_of_a_command(usual: Callable[..., None]) -> Callable[..., None]:
    """A warning that names the line which calls commands is its text alone: the user wrote no line of Python."""

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *more: Any) -> None:
        if filename.startswith(_COMMAND_LINE):
            typer.echo(f"warning: {message}", err=True)
        else:
            usual(message, category, filename, lineno, *more)

    return show


def _misses_a_framework(error: Exception) -> bool:
    """Whether the error is that of a front end whose framework is not installed."""
    return isinstance(error, ImportError) and error.name in _FRAMEWORKS and "pip install" in str(error)


def text_of(error: LoopwrightError) -> str:
    """The message of one of our errors, with its notes and where to read more; in colours where errors go."""
    _forget_the_command(error)
    sheet = Sheet(message(error))
    return sheet.coloured() if has_colours(sys.stderr) else sheet.text()


def error_data(error: Exception) -> JsonObject:
    """An error as plain data; an error that is not ours has no code, why or hint."""
    if not isinstance(error, LoopwrightError):
        text = _foreign_text(error)
        return {"type": type(error).__name__, "code": None, "problem": str(error), "message": text}
    _forget_the_command(error)
    line = error.user_line
    return {
        "type": type(error).__name__,
        "code": error.code,
        "problem": error.problem,
        "why": error.why,
        "hint": error.hint,
        "where": None if line is None else {"file": line.file, "line": line.line},
        "message": str(error),
    }


def _forget_the_command(error: LoopwrightError) -> None:
    if error.user_line is not None and error.user_line.file.startswith(_COMMAND_LINE):
        error.user_line = None  # the user wrote a command, not a line of Python


def _foreign_text(error: Exception) -> str:
    if _misses_a_framework(error):
        return str(error)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_NOT_THE_USER)
    ]
    lines = ["Traceback (of your files, most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return "".join([*lines, *traceback.format_exception_only(error)]).rstrip("\n")
