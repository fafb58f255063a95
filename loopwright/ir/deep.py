"""Deep programs: raise Python's recursion limit while a recursive walk runs.

Generated and unrolled programs reach nesting depths of many thousands. Calls from one Python function to another take
no C stack since Python 3.11, so a high limit is safe as long as a walk does not recurse through C (`map`, `tuple(x for
…)`, `sorted` with a key). The limit belongs to the process, so threads are counted and the last one out restores it.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

DEEP_LIMIT: Final = 400_000

P = ParamSpec("P")
R = TypeVar("R")


class _Depth:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0  # threads within a deep walk
        self.usual = 0
        self.here = threading.local()

    def __enter__(self) -> None:
        self.here.entered = True
        with self.lock:
            if self.inside == 0:
                self.usual = sys.getrecursionlimit()
                if self.usual < DEEP_LIMIT:
                    sys.setrecursionlimit(DEEP_LIMIT)
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        self.here.entered = False
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.usual < DEEP_LIMIT:
                sys.setrecursionlimit(self.usual)


_depth: Final = _Depth()


def deep(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` recurse as deep as any program: for the public entry of a recursive walk."""

    @functools.wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        if getattr(_depth.here, "entered", False):
            return function(*args, **kwargs)
        with _depth:
            return function(*args, **kwargs)

    return entry
