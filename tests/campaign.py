"""How long random tests run: a share of them in the suite, all of them with LOOPWRIGHT_LONG=1 (`make fuzz`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def programs(every_run: int, campaign: int) -> int:
    """How many random programs are tried."""
    return campaign if os.environ.get("LOOPWRIGHT_LONG") == "1" else every_run


def two(items: Sequence[T]) -> Sequence[T]:
    """The first of a list and one from its middle; all of them in a campaign."""
    return items if os.environ.get("LOOPWRIGHT_LONG") == "1" or len(items) < 3 else [items[0], items[len(items) // 2]]


def some(items: Sequence[T], one_in: int = 3) -> Sequence[T]:
    """The first two of a list and a share of the others; all of them in a campaign."""
    return items if os.environ.get("LOOPWRIGHT_LONG") == "1" else [*items[:2], *items[2::one_in]]
