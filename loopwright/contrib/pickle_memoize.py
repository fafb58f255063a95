"""pickle_memoize: results of a slow function kept, by its arguments; with `save_at_exit`, from one process to the next.

    @memoize("reference.conv2d")
    def reference():
        ...

Arguments are compared by their pickled form, so arrays may be among them. `key` names the file, so it must change when
the function does; a function that reads variables of an enclosing one is kept for each of their values.
"""

from __future__ import annotations

import atexit
import functools
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Where `save_at_exit` writes to, below the current folder.
FOLDER = ".pkl_memoize_py3"

_caches: dict[str, Cache] = {}


class Cache:
    """The results known for one key."""

    def __init__(self, key: str, save_at_exit: bool) -> None:
        self.path = Path(FOLDER, f"{key}.pkl")
        self.results: dict[bytes, object] = {}
        self._changed = False
        if save_at_exit:
            if self.path.exists():
                self.results = pickle.loads(self.path.read_bytes())
            atexit.register(self.save)

    def get(self, arguments: bytes, compute: Callable[[], R]) -> R:
        if arguments not in self.results:
            self.results[arguments] = compute()
            self._changed = True
        result: R = self.results[arguments]  # type: ignore[assignment]  # what `compute` made, now or earlier
        return result

    def save(self) -> None:
        """Write the results, if there are new ones."""
        if self._changed:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            waiting = self.path.with_suffix(f".{os.getpid()}")
            waiting.write_bytes(pickle.dumps(self.results))
            waiting.replace(self.path)  # whole or not at all: another process may be reading it
            self._changed = False


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function is called once for each combination of arguments, and its result given again."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = f"{key}_{function.__name__}.{function.__code__.co_firstlineno}"
        if name not in _caches:
            _caches[name] = Cache(name, save_at_exit)

        @functools.wraps(function)
        def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
            enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
            try:
                arguments = pickle.dumps((args, sorted(kwargs.items()), enclosed))
            except (pickle.PicklingError, AttributeError, TypeError):  # a function among them: nothing to compare by
                return function(*args, **kwargs)
            return _caches[name].get(arguments, lambda: function(*args, **kwargs))

        return remembered

    return decorate
