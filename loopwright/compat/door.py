"""The import hook: `tvm` and every path below it, found here.

A path is looked up in this order: a module of ours under the same path; an attribute of the parent that is a module
(`tvm.tir.transform` is what `loopwright.tir.transform` is); a row of `paths.VIEWS`; a row of `paths.TO_COME`. The
module found goes into `sys.modules` under the peer's path as it is, so that `tvm.te is loopwright.te`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from loopwright.compat.differences import forget_pages, name_pages
from loopwright.compat.modules import View, close_all, opened, own
from loopwright.compat.paths import PEER_VERSION, TO_COME, VIEWS
from loopwright.compat.stand_in import StandInModule
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.shown import SCRIPT_PACKAGE

# On PYTHONPATH, it opens the door in child processes as well.
CHILDREN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children")


class PeerInstalled(UserWarning):
    """The real TVM is installed beside Loopwright, so that `import tvm` could mean either."""


class PeerAlreadyImported(LoopwrightError, ImportError):
    """`import tvm` has happened before the door was opened, and gave the real TVM.

    Opening the door now would leave a program with both: what it imported before would be TVM's, what it imports from
    now on ours, and neither knows the other's tensors. Import `loopwright.compat.tvm` before the first `import tvm`.

    For example:

        # needs a process of its own
        import sys
        import types

        sys.modules["tvm"] = types.ModuleType("tvm")  # as if `import tvm` had found the real one

        from loopwright.compat.tvm import install

        install(replace=True)
    """

    code = "LW0030"

    def __init__(self, peer: ModuleType) -> None:
        version = getattr(peer, "__version__", None)
        super().__init__(
            f"tvm{f' {version}' if version else ''} is imported already, and is not Loopwright",
            why="a program cannot use both under one name",
            hint="import loopwright.compat.tvm before the first `import tvm`",
        )


class _Door(MetaPathFinder, Loader):
    """Finds and loads `tvm` and what is below it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "tvm" and not fullname.startswith("tvm."):
            return None
        result = _resolve(fullname.removeprefix("tvm").removeprefix("."))
        return None if result is None else ModuleSpec(fullname, self, loader_state=result, is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes a shell, which `exec_module` replaces; it would write to a module of ours."""

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        found = spec.loader_state
        if found.__spec__ is None:  # made here: libraries ask `find_spec("tvm")` whether it is installed
            found.__spec__ = spec
        sys.modules[spec.name] = found


_door = _Door()


def install(*, replace: bool = False) -> None:
    """Open the door: from now on `import tvm` means Loopwright.

    Where the real TVM is installed it stays what `import tvm` means, and a warning says so, unless `replace` says that
    Loopwright is meant. `uninstall` closes the door.
    """
    if is_open():
        return
    imported = sys.modules.get("tvm")
    if imported is not None and replace:
        raise PeerAlreadyImported(imported)
    peer = _find_peer() if imported is None else imported.__spec__
    if (imported is not None or peer is not None) and not replace:
        location = getattr(peer, "origin", None)
        warnings.warn(
            f"the real TVM is installed{f' ({location})' if location else ''}, and stays what `import tvm` means; call "
            "loopwright.compat.tvm.install(replace=True) first, or set LOOPWRIGHT_REPLACE_TVM=1, to have Loopwright",
            PeerInstalled,
            stacklevel=3,
        )
        return
    sys.meta_path.insert(0, _door)
    name_pages()
    SCRIPT_PACKAGE[0] = "tvm"


def _find_peer() -> ModuleSpec | None:
    """The real TVM, where it is installed; not the one that opens this door in child processes."""
    result = PathFinder.find_spec("tvm")
    return None if result is None or (result.origin or "").startswith(CHILDREN) else result


def uninstall() -> None:
    """Close the door: forget `tvm` and everything below it, and leave our modules as they were."""
    if is_open():
        sys.meta_path.remove(_door)
        for name in [name for name in sys.modules if name == "tvm" or name.startswith("tvm.")]:
            del sys.modules[name]
        close_all()
        forget_pages()
        SCRIPT_PACKAGE[0] = "loopwright"


def is_open() -> bool:
    """Whether `import tvm` means Loopwright."""
    return _door in sys.meta_path


def _resolve(path: str) -> ModuleType | None:
    """The module that `path` (without `tvm.`) means; None where the peer has no such path either."""
    if not path:
        return View(path, VIEWS[path].split(), __version__=PEER_VERSION, __file__=sys.modules["loopwright"].__file__)
    result = _find_ours(f"loopwright.{path}") or _attribute_of_parent(path)
    if result is not None:
        return opened(result, path)
    if path in VIEWS:
        return View(path, VIEWS[path].split())
    if any([path == prefix or path.startswith(f"{prefix}.") for prefix in TO_COME]):
        return StandInModule(path)
    return None


def _attribute_of_parent(path: str) -> ModuleType | None:
    parent_path, _, name = path.rpartition(".")
    parent = sys.modules.get(f"tvm.{parent_path}")
    if not parent_path or parent is None or isinstance(parent, (StandInModule, View)):
        return None
    try:
        result = own(parent, name)
    except AttributeError:
        return None
    return result if isinstance(result, ModuleType) and result.__name__.startswith("loopwright.") else None


def _find_ours(name: str) -> ModuleType | None:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # of a parent
        return None
    return None if spec is None else importlib.import_module(name)
