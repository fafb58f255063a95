"""shown: how errors and modules are shown to people. The runtime knows only that a later layer does it.

`display/install.py` fills `views`; `loopwright/__init__.py`, which sees all layers, says where to find it, and it is
loaded when something is first shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol


class View(Protocol):
    """Something that a screen, a notebook or a file shows."""

    def show(self, style: str | None = None) -> None:
        """Print it."""

    def html(self) -> str:
        """As a notebook shows it."""


views: Final[dict[str, Callable[..., Any]]] = {}
load_views: Final[list[Callable[[], object]]] = []  # one entry: how to fill `views`


def view(kind: str, *given: Any) -> Any:
    """What the view of that kind (error, traceback, module, source) makes of `given`."""
    if kind not in views:
        for load in load_views:
            load()
    return views[kind](*given)
