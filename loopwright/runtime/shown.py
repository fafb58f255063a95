"""shown: how errors, modules, plans and other objects are shown to people: by a module that imports their class.

`loopwright/__init__.py`, which sees all layers, names the views; one is loaded when it is first needed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol


class View(Protocol):
    """Something that a screen, a notebook or a file shows."""

    def show(self, style: str | None = None) -> None:
        """Print it."""

    def html(self) -> str:
        """As a notebook shows it."""


views: Final[dict[str, Callable[..., Any]]] = {}


def view(kind: str, *given: Any) -> Any:
    """What the view of that kind (error, module, plan, …) makes of `given`."""
    if kind not in views:
        module, function = sys.modules["loopwright"]._VIEWS[kind].split(":")  # a layer imports no facade
        views[kind] = getattr(importlib.import_module(module), function)
    return views[kind](*given)
