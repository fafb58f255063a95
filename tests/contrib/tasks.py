"""What the tests of worker processes run there."""

from __future__ import annotations

import os
import signal
import time

_seen: list[object] = []


def square(x: int) -> int:
    return x * x


def outcome(x: int) -> int:
    """Ends in every way a task can end."""
    if x == 1:
        raise ValueError("one")
    if x == 2:
        time.sleep(60)
    if x == 3:
        os._exit(7)
    if x == 4:
        os.kill(os.getpid(), signal.SIGSEGV)
    return x * x


def remember(value: object) -> int:
    _seen.append(value)
    return len(_seen)


def seen() -> list[object]:
    return _seen


def process() -> int:
    return os.getpid()


def unbuilt() -> None:
    from loopwright.runtime.errors import NotBuilt

    raise NotBuilt("a thing", "do without")


def unsendable() -> object:
    return lambda: None
