"""Deep programs: raise Python's recursion limit while a recursive walk runs.

Generated and unrolled programs reach nesting depths of many thousands. Calls from one Python function to another take
no C stack since Python 3.11, so a high limit is safe as long as a walk does not recurse through C (`map`, `tuple(x for
…)`, `sorted` with a key). The limit belongs to the process, so threads are counted and the last one out restores it.
Past that limit there is `TooDeep`.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from loopwright.runtime.errors import LoopwrightError

DEEP_LIMIT: Final = 400_000
MOST_ENTRIES: Final = 4_000  # deep walks that call each other; each such call takes C stack, some 400 bytes or more

P = ParamSpec("P")
R = TypeVar("R")


class TooDeep(LoopwrightError, RecursionError):
    """A program, or its text, nests deeper than any walk goes.

    Tens of thousands of levels are read; more are a mistake, or an attack. A function of yours that calls itself
    without end, inside one of our calls, ends here too.

    For example:

        from loopwright import relay

        relay.parse_expr("(" * 60_000 + "1" + ")" * 60_000)
    """

    code = "LW0571"

    def __init__(self, what: str, calls: int) -> None:
        super().__init__(
            f"{what}: what it was given nests too deeply",
            why=f"the walk went through {calls:,} calls, one inside the other",
            hint="bind parts of it to names (a let, a variable, a function), so that fewer levels stand in each other",
        )


class _Here(threading.local):
    """Of each thread: an item for each deep walk that runs, one inside the other."""

    def __init__(self) -> None:
        self.entries: list[None] = []


class _Depth:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0  # threads within a deep walk
        self.usual = 0
        self.here = _Here()

    def __enter__(self) -> None:
        self.here.entries.append(None)
        with self.lock:
            if self.inside == 0:
                self.usual = sys.getrecursionlimit()
                if self.usual < DEEP_LIMIT:
                    sys.setrecursionlimit(DEEP_LIMIT)
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        self.here.entries.pop()
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.usual < DEEP_LIMIT:
                sys.setrecursionlimit(self.usual)


_depth: Final = _Depth()


def deep(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` recurse as deep as any program: for the public entry of a recursive walk."""

    here = _depth.here

    @functools.wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        entries = here.entries
        if entries:
            if len(entries) > MOST_ENTRIES:
                raise TooDeep(function.__name__, MOST_ENTRIES)
            entries.append(None)
            try:
                return function(*args, **kwargs)
            finally:
                entries.pop()
        try:
            with _depth:
                return function(*args, **kwargs)
        except RecursionError as error:
            if isinstance(error, LoopwrightError):
                raise
            raise TooDeep(function.__name__, DEEP_LIMIT) from None

    return entry
