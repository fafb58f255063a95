"""The modules a script gets: our own, opened for the peer's names; and views, where the peer divides modules otherwise.

`tvm.te` is `loopwright.te` itself. While the door is open, asking it for a name that it lacks and the peer has gives a
submodule or a stand-in instead of an AttributeError, and operators take arguments that we ignore; that is all that
`opened` changes, and `close_all` takes it back.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

from loopwright.compat.ignored_arguments import forgiving
from loopwright.compat.names import NAMES
from loopwright.compat.paths import VIEWS
from loopwright.compat.stand_in import StandIn, StandInModule

# Our opened modules, and the paths of the peer's under which they are known (without `tvm.`).
_paths: dict[ModuleType, list[str]] = {}


class _Opened(ModuleType):
    """Mixed into the class of a module of ours; its own names and its own `__getattr__` come first."""

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":
            return []  # the peer's `tvm.tir` is a package, and the import system asks before it looks for a submodule
        result = getattr(super(), "__getattr__", None)  # of a module that makes its names: relay.nn
        if result is not None:
            with suppress(AttributeError):  # what is not its own may be one of the peer's
                return result(name)
        return _other(self, _paths.get(self, []), name)

    def __setattr__(self, name: str, value: object) -> None:
        # An import makes a submodule an attribute of its parent. One of ours is opened then; a view stays outside, and
        # so does a module where a function has its name: topi.nn.softmax.
        if isinstance(value, (View, StandInModule)) or _hides(self, name, value):
            return
        super().__setattr__(name, value)
        if isinstance(value, ModuleType):
            _open_children(self, [name])


def _hides(module: ModuleType, name: str, value: object) -> bool:
    held = vars(module).get(name)
    return isinstance(value, ModuleType) and callable(held) and not isinstance(held, ModuleType)


class View(ModuleType):
    """A module of the peer's whose names live in several of ours, or in one of another name."""

    def __init__(self, path: str, targets: Sequence[str], **own: object) -> None:
        super().__init__(f"tvm.{path}" if path else "tvm", f"Names of {' and '.join(targets)} as the peer has them.")
        self.__path__: list[str] = []
        self._path, self._targets = path, tuple(targets)
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [name for name in dir(self) if not name.startswith("_")]
        if not name.startswith("__"):
            value = _found(self._targets, name)
            if isinstance(value, ModuleType):
                value = submodule(f"{self._path}.{name}" if self._path else name) or value  # opened
            if value is not None:
                self.__dict__[name] = value
                return value
        return _other(self, [self._path], name)

    def __dir__(self) -> list[str]:
        result = {name for target in self._targets for name in _names(_module(target))}
        return sorted(result | {name for name in self.__dict__ if not name.startswith("_")})

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}: names of {', '.join(self._targets)}>"


def own(module: ModuleType, name: str) -> object:
    """`module.name`, without what the door adds."""
    kind: Any = type(module).__bases__[1] if isinstance(module, _Opened) else type(module)
    if name not in vars(module) and hasattr(kind, "__getattr__"):
        return kind.__getattr__(module, name)
    return ModuleType.__getattribute__(module, name)


def opened(module: ModuleType, path: str) -> ModuleType:
    """`module`, which also answers to the peer's names of `path`."""
    if not isinstance(module, _Opened):
        module.__class__ = type("Opened", (_Opened, type(module)), forgiving(path))
    paths = _paths.setdefault(module, [])
    if path not in paths:
        paths.append(path)
        _open_children(module, list(vars(module)))
    return module


def _open_children(module: ModuleType, names: Sequence[str]) -> None:
    """Open the submodules among `names` that the peer has too: they are met as attributes, without an import."""
    for path in list(_paths.get(module, [])):
        for name in names:
            child = vars(module).get(name)
            below = f"{path}.{name}"
            if isinstance(child, ModuleType) and (below in NAMES or below in VIEWS):
                opened(child, below)


def close_all() -> None:
    """Every opened module as it was."""
    for module in _paths:
        if isinstance(module, _Opened):
            module.__class__ = type(module).__bases__[1]
    _paths.clear()


def _other(module: ModuleType, paths: list[str], name: str) -> object:
    """What `module` answers for a name that is not its own: what a view of the path would, a submodule, a stand-in."""
    if not name.startswith("__"):
        for path in paths:
            result = _found(VIEWS.get(path, "").split(), name)
            if result is not None:
                return result
        for path in paths:
            result = submodule(f"{path}.{name}" if path else name)
            if result is not None:
                return result
        for path in paths:
            if name in NAMES.get(path, "").split():
                return StandIn(f"{path}.{name}" if path else name)
    known = [*dir(module), *(known for path in paths for known in NAMES.get(path, "").split())]
    known += [known for path in paths for target in VIEWS.get(path, "").split() for known in dir(_module(target))]
    near = [] if name.startswith("_") else difflib.get_close_matches(name, dict.fromkeys(known), 3)
    also = f"; did you mean {' or '.join(near)}?" if near else ""
    raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}{also}", name=name, obj=module)


def _found(targets: Sequence[str], name: str) -> object:
    """The first module's own attribute of that name; None where none has one."""
    for target in targets:
        try:
            return own(_module(target), name)
        except AttributeError:
            continue
    return None


def _module(target: str) -> ModuleType:
    """The module of ours of that name; some are made when asked for and have no file: `loopwright.relay.nn`."""
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name != target:
            raise
        parent, _, name = target.rpartition(".")
        result: ModuleType = getattr(importlib.import_module(parent), name)
        return result


def submodule(path: str) -> ModuleType | None:
    """The module of the peer's that `path` (without `tvm.`) names, imported; None where there is none."""
    try:
        return importlib.import_module(f"tvm.{path}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"tvm.{path}.".startswith(f"{error.name}."):
            raise  # something that the module needs is missing
        return None


def _names(module: ModuleType) -> list[str]:
    return list(getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")])
