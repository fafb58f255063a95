"""Events: what the threads of a kernel do to each other, in the order of its text.

    T.mbarrier_wait(T.address_of(full[k % 2]), k // 2 % 2)      wait(full[0], 0) at k = 0, wait(full[1], 0) at k = 1
    B[k, tx] = S[k % 2, tx]                                     touch(S[0, …]) at k = 0, …

Which events there are, and in which order each thread has them, does not depend on data. A `Mask` says which threads
have an event; all of them are alike in what it says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loopwright.analysis.async_order.footprints import Footprint
from loopwright.ir import Node, Stmt, Var

Where = tuple[tuple[str, int], ...]  # the iterations of the loops around
Barrier = tuple[Var, int]  # an mbarrier: memory, and the element


class Mask:
    """Some threads of a block."""

    def __init__(self, bits: np.ndarray, number: int) -> None:
        self.bits, self.number = bits, number
        self.count = int(bits.sum())


class Touch(NamedTuple):
    """An access, with all that the threads of its event touch."""

    footprint: Footprint
    is_write: bool
    node: Node


class Event(NamedTuple):
    """Something that some threads do."""

    kind: str
    mask: Mask
    where: Where
    statement: Stmt
    touches: tuple[Touch, ...] = ()
    barrier: Barrier | None = None
    number: int = 0  # arrivals, a parity, groups, the number of a named barrier
    threads: int = 0  # that meet at a named barrier


class NotKnown(Exception):
    """What a kernel does is not known before it runs."""


class Trace(NamedTuple):
    """What the threads of a block do."""

    threads: int
    events: list[Event]
    roles: list[tuple[str, Mask]]
    cut: np.ndarray  # threads of which only the first events are known
    doubts: list[str]  # what is not known of accesses
