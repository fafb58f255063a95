"""shown: how errors, modules, plans and other objects are shown to people: by a module that imports their class.

`loopwright/__init__.py` lists the views (`upper_layers.py`); one is loaded when it is first needed.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from loopwright.runtime.upper_layers import from_upper_layer

# The package that the first lines of a script import from; scripts that know us by another name put it here.
SCRIPT_PACKAGE: Final = ["loopwright"]


class View(Protocol):
    """Something that a screen, a notebook or a file shows."""

    def show(self, style: str | None = None) -> None:
        """Print it."""

    def html(self) -> str:
        """As a notebook shows it."""


def view(kind: str, *given: object) -> Any:
    """What the view of that kind (error, module, plan, …) makes of `given`."""
    return from_upper_layer(f"view of {kind}")(*given)
