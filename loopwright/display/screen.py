"""Where output goes: a terminal with or without colours, a notebook, or a file or pipe, which gets plain text.

NO_COLOR (https://no-color.org), when set to anything, keeps terminals plain; so does TERM=dumb.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether somebody watches the stream (the standard output, if none is given) line by line."""
    chosen = sys.stdout if stream is None else stream
    return chosen is not None and not chosen.closed and chosen.isatty()


def has_colours(stream: TextIO | None = None) -> bool:
    """Whether the stream is a terminal, and nobody wants it plain."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """How many characters a line of the terminal holds; COLUMNS says otherwise."""
    import shutil  # brings archives with it, which programs that show nothing need not load

    return max(20, shutil.get_terminal_size().columns)


def notebook() -> Any:
    """The shell of the notebook that the program runs in; None elsewhere, also in IPython's terminal."""
    shell = interactive_shell()
    return shell if type(shell).__name__ in ("ZMQInteractiveShell", "Shell") else None  # Shell: Google Colab's


def interactive_shell() -> Any:
    """IPython's shell, in a notebook or in a terminal; None where there is none. Nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def notebook_display() -> Callable[..., object] | None:
    """How to show something, when the program runs in a notebook: its HTML, and its text for readers without."""
    if notebook() is None:
        return None
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    return lambda markup, text: display({"text/html": markup, "text/plain": text}, raw=True)
