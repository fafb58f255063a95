"""Names that people guess: where an attribute is not there, the error says what to write instead.

What to write comes from a small table beside the names; where the table has nothing, names that look alike are offered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Final, NoReturn

# What to write for names that people look for in `loopwright` itself.
OF_THE_PACKAGE: Final = {
    "array": "it is loopwright.nd.array; functions take numpy arrays as they are",
    "compute": "it is loopwright.te.compute",
    "load": "it is loopwright.load_module",
    "placeholder": "it is loopwright.te.placeholder",
    "prim_func": "it is T.prim_func, after `from loopwright.script import tir as T`",
    "schedule": "import it first, or use loopwright.Schedule",
    "var": "it is loopwright.te.var",
}


def no_attribute(problem: str, name: str, known: Iterable[str], instead: Mapping[str, str]) -> AttributeError:
    """The error for a `name` that is not there: `instead` says what to write for it, `known` are the names that are."""
    message = instead.get(name)
    if message is None and not name.startswith("_"):  # Python and notebooks ask for names with underscores all the time
        near = get_close_matches(name, {other for other in known if not other.startswith("_")}, 3, 0.7)
        message = f"did you mean {' or '.join(near)}?" if near else None
    # Without `obj`, Python adds no "Did you mean" of its own.
    return AttributeError(f"{problem} {name!r}" + (f"; {message}" if message is not None else ""), name=name)


def pointing(module: str, instead: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """A `__getattr__` for a module."""

    def __getattr__(name: str) -> NoReturn:
        raise no_attribute(f"module {module!r} has no attribute", name, dir(sys.modules[module]), instead)

    return __getattr__
