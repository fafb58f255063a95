"""Names for variables and buffers: identifiers, unique among what is visible, given back when a scope ends."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from typing import Final

_NOT_IDENTIFIER: Final = re.compile(r"\W", re.ASCII)
# Keywords, and the plain Python names that printed programs use.
RESERVED: Final = frozenset([*keyword.kwlist, "range", "float", "metadata"])


def identifier(hint: str, fallback: str) -> str:
    """`hint` with every character that no identifier has replaced by `_`."""
    name = _NOT_IDENTIFIER.sub("_", hint) or fallback
    return f"_{name}" if name[0].isdigit() else name


class Names:
    """The names in use. A name is free again when the scope it was given in ends."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = {*RESERVED, *reserved}
        self._used = set(self._taken)  # ever, in any scope
        self._suffix: dict[str, int] = {}
        self._suffix_everywhere: dict[str, int] = {}
        self._frames: list[list[tuple[str, str, int]]] = [[]]

    def enter(self) -> None:
        self._frames.append([])

    def leave(self) -> None:
        for name, base, suffix in reversed(self._frames.pop()):
            self._taken.discard(name)
            self._suffix[base] = suffix

    def fresh(self, hint: str, fallback: str = "v") -> str:
        """A name for the innermost scope: the hint itself, or the hint with the first free of _1, _2, …"""
        base = identifier(hint, fallback)
        before = suffix = self._suffix.get(base, 0)
        name = base if suffix == 0 else f"{base}_{suffix}"
        while name in self._taken:
            suffix += 1
            name = f"{base}_{suffix}"
        self._suffix[base] = suffix
        self._taken.add(name)
        self._used.add(name)
        self._frames[-1].append((name, base, before))
        return name

    def fresh_everywhere(self, hint: str, fallback: str = "v") -> str:
        """A name for the whole text, unlike any given so far in any scope."""
        base = name = identifier(hint, fallback)
        suffix = self._suffix_everywhere.get(base, 0)
        while name in self._used:
            suffix += 1
            name = f"{base}_{suffix}"
        self._suffix_everywhere[base] = suffix
        self._taken.add(name)
        self._used.add(name)
        return name
