"""rare_collections: Python's garbage collector runs seldom while a program is compiled.

By default it looks for cycles whenever 700 objects are new, and through all that live when their number has grown by a
quarter. A compiler makes millions of nodes that live on and form no cycles: a third of its time went into that. The
threshold belongs to the process, so threads are counted and the last one out restores it.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

NEW_OBJECTS: Final = 50_000  # between two searches for cycles among them

P = ParamSpec("P")
R = TypeVar("R")


class _Inside:
    """How many threads compile, and the threshold when there was none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.usual: tuple[int, ...] = ()

    def __enter__(self) -> None:
        with self.lock:
            if self.count == 0:
                self.usual = gc.get_threshold()
                if 0 < self.usual[0] < NEW_OBJECTS:
                    gc.set_threshold(NEW_OBJECTS, *self.usual[1:])
            self.count += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0 and gc.get_threshold()[0] == NEW_OBJECTS:  # else someone else has set it since
                gc.set_threshold(*self.usual)


_inside: Final = _Inside()


def rare_collections(function: Callable[P, R]) -> Callable[P, R]:
    """Let the collector run seldom inside `function`: for entries that make programs by the thousand nodes."""

    @functools.wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        with _inside:
            return function(*args, **kwargs)

    return entry
