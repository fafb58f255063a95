"""An error in a terminal with colours and in a notebook: the same words, with the parts of the message set apart.

IPython asks an error how it wants to be shown (`_render_traceback_`): ours show the user's own lines and the message,
which says all there is to say. The frames inside Loopwright help nobody but us.
"""

from __future__ import annotations

import os
import re
import traceback
from typing import Final

from loopwright.display import screen
from loopwright.display.sheet import Lines, Sheet, Span, line_text
from loopwright.runtime.errors import LoopwrightError, is_ours

_KEY: Final = re.compile(r"(  )(call|why|hint|see|what would work|names|steps so far|more)(: )(.*)", re.DOTALL)
_TONES: Final = {"hint": "good", "what would work": "good"}


def message(error: LoopwrightError) -> Lines:
    """The message of an error, each part with what it is; notes of the error and where to read more at the end."""
    first, *rest = _text(error).split("\n")
    lines: list[tuple[Span, ...]] = [(Span(type(error).__name__, "bad"), Span(f": {first}", "title"))]
    lines += [_line(line) for line in rest]
    lines += [(Span(f"  {note}"),) for note in getattr(error, "__notes__", ())]
    return Lines((*lines, _line(f"  more: loopwright explain {error.code}")))


def error_sheet(error: LoopwrightError) -> Sheet:
    """The message as a sheet."""
    return Sheet(message(error))


def traceback_lines(error: LoopwrightError) -> list[str]:
    """What IPython prints in place of a traceback: the user's own lines, then the message."""
    coloured = not os.environ.get("NO_COLOR")
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        if not is_ours(frame.filename) and not _is_shell(frame.filename):
            location = Span(_place(frame.filename, frame.lineno), "key")
            inside = "" if frame.name == "<module>" else f", in {frame.name}"
            lines.append(line_text([location, Span(inside)], coloured))
            if frame.line:
                lines.append(line_text([Span(f"    {frame.line}")], coloured))
    return [*lines, *[line_text(line, coloured) for line in message(error).lines]]


def _line(text: str) -> tuple[Span, ...]:
    result = _KEY.fullmatch(text)
    if result is not None:
        space, key, colon, message = result.groups()
        return Span(space), Span(key, _TONES.get(key, "key")), Span(f"{colon}{message}")
    return (Span(text, "title"),) if text.startswith("  >") else (Span(text),)


def _text(error: LoopwrightError) -> str:
    """The message, in which the file of a notebook's cell has the name that the user knows it by."""
    text, line = str(error), error.user_line
    cell = _cell(line.file) if line is not None else None
    return text if line is None or cell is None else text.replace(f" at {line}", f" at {cell}, line {line.line}")


def _place(file: str, line: int | None) -> str:
    return f"{_cell(file) or f'File {file}'}, line {line}"


def _cell(file: str) -> str | None:
    """What a notebook calls the cell that it keeps in a file: Cell In[3]."""
    naming = getattr(getattr(screen.interactive_shell(), "compile", None), "format_code_name", None)
    result = naming(file) if naming is not None else None
    return " ".join(result) if result else None


def _is_shell(file: str) -> bool:
    """Whether a frame belongs to the notebook's machinery, which runs the cell."""
    return "IPython" in re.split(r"[\\/]", file)
