"""failures: how an error of the user's program is shown by a command.

Our own errors are complete without a traceback: what was asked, where, why, what would work. Any other error keeps
the lines of its traceback that are the user's.
"""

from __future__ import annotations

import contextlib
import runpy
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer

from loopwright.runtime.errors import LoopwrightError

_PACKAGE: Final = str(Path(__file__).resolve().parent.parent)
_NOT_THE_USER: Final = (_PACKAGE, "<frozen", str(Path(runpy.__file__)))

_COMMAND_LINE: Final = str(Path(typer.__file__).parent)


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Show an error that ends the command, and end it with status 1."""
    try:
        yield
    except LoopwrightError as error:
        typer.echo(text_of(error), err=True)
        raise typer.Exit(1) from None
    except (typer.Exit, typer.Abort, SystemExit, KeyboardInterrupt):
        raise
    except Exception as error:
        typer.echo(_foreign_text(error), err=True)
        raise typer.Exit(1) from None


def text_of(error: LoopwrightError) -> str:
    """The message of one of our errors, with its notes and where to read more."""
    if error.user_line is not None and error.user_line.file.startswith(_COMMAND_LINE):
        error.user_line = None  # the user wrote a command, not a line of Python
    notes = "".join([f"\n  {note}" for note in getattr(error, "__notes__", ())])
    return f"{type(error).__name__}: {error}{notes}\n  more: loopwright explain {error.code}"


def _foreign_text(error: Exception) -> str:
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_NOT_THE_USER)
    ]
    lines = ["Traceback (of your files, most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return "".join([*lines, *traceback.format_exception_only(error)]).rstrip("\n")
