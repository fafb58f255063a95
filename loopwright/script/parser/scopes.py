"""Names: what the script defines, frame by frame, over what the code around it defines."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Final

from loopwright.ir import Expr
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser.errors import Rebinding

MISSING: Final = object()
_USED_BUILTINS: Final = {"abs", "bool", "float", "int", "len", "max", "min", "range", "sum"}


class Environment:
    """The names around a script: closure, enclosing locals, globals, builtins; what was found is remembered."""

    def __init__(self, *layers: Mapping[str, object]) -> None:
        self.layers = (*layers, vars(builtins))
        self.found: dict[str, object] = {}

    def get(self, name: str) -> object:
        """The value of `name`, or MISSING."""
        value = self.found.get(name, MISSING)
        if value is MISSING:
            for layer in self.layers:
                if name in layer:
                    value = self.found[name] = layer[name]
                    break
        return value

    def names(self) -> set[str]:
        """What a misspelled name may have meant: not a builtin, unless scripts use it."""
        own = {name for layer in self.layers[:-1] for name in layer if isinstance(name, str)}
        return own | _USED_BUILTINS

    def flat(self) -> dict[str, object]:
        """All names in one dictionary, inner layers first."""
        merged: dict[str, object] = {}
        for layer in reversed(self.layers):
            merged.update(layer)
        return merged


def closure_of(function: FunctionType) -> dict[str, object]:
    """The variables of enclosing functions that `function` uses and that have a value already."""
    captured = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:  # assigned only after the definition
            continue
    return captured


class Scopes:
    """The script's own names. One flat dictionary answers lookups; frames remember what to restore."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.values: dict[str, object] = {}
        self.frames: list[dict[str, tuple[object, SourceLine | None]]] = []

    def get(self, name: str) -> object:
        """The value of `name`, or MISSING."""
        value = self.values.get(name, MISSING)
        return value if value is not MISSING else self.environment.get(name)

    def enter(self) -> None:
        self.frames.append({})

    def leave(self) -> None:
        for name, (outer, _) in self.frames.pop().items():
            if outer is MISSING:
                del self.values[name]
            else:
                self.values[name] = outer

    def define(self, name: str, value: object, location: Callable[[], SourceLine]) -> None:
        """Give `name` a value in the innermost frame; a second, different one there is an error."""
        frame = self.frames[-1]
        if name in frame:
            if not _identical(self.values[name], value):
                raise Rebinding(name, frame[name][1], location())
            return
        frame[name] = (self.values.get(name, MISSING), location())
        self.values[name] = value

    def is_defined_here(self, name: str) -> bool:
        """Whether the innermost frame gives `name` a value."""
        return name in self.frames[-1]

    def has(self, value: object) -> bool:
        """Whether some name of the script stands for this very object."""
        return any(known is value for known in self.values.values())

    def names(self) -> set[str]:
        return set(self.values) | self.environment.names()

    def flat(self) -> dict[str, object]:
        """Every visible name, for expressions that Python itself evaluates."""
        return {**self.environment.flat(), **self.values}


def _identical(a: object, b: object) -> bool:
    if a is b:
        return True
    if isinstance(a, Expr) or isinstance(b, Expr):
        return False
    return type(a) is type(b) and isinstance(a, (int, float, str, bytes)) and a == b
