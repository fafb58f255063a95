"""Events: what the threads of a kernel do to each other, in the order of its text.

    T.mbarrier_wait(T.address_of(full[k % 2]), k // 2 % 2)      wait(full[0], 0) at k = 0, wait(full[1], 0) at k = 1
    B[k, tx] = S[k % 2, tx]                                     touch(S[0, …]) at k = 0, …

Which events there are, and in which order each thread has them, does not depend on data. A `Mask` says which threads
have an event; all of them are alike in what it says.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from loopwright.analysis.async_order.footprints import Footprint
from loopwright.ir import Node, Stmt, Var

Where = tuple[tuple[str, int], ...]  # the iterations of the loops around
Barrier = tuple[Var, int]  # an mbarrier: memory, and the element


_SINGULARS: Final = {"may": "may", "have": "has", "copy": "copies", "multiply": "multiplies"}


def where_text(where: Where) -> str:
    """` at k = 2`: the iterations of loops; "" outside of all."""
    return f" at {', '.join([f'{name} = {value}' for name, value in where])}" if where else ""


def name_of(threads: list[int], role: str) -> str:
    """What threads are called, as in `threads 32 to 95 (role add)`."""
    first, last, count = threads[0], threads[-1], len(threads)
    if count == 1:
        text = f"thread {first}"
    elif last - first + 1 == count:
        text = f"threads {first} to {last}"
    else:
        text = f"{count} of the threads {first} to {last}"
    return f"{text} (role {role})" if role else text


def done_by(threads: list[int], role: str, verb: str) -> str:
    """What threads do, as in `threads 32 to 95 wait`."""
    first, _, rest = verb.partition(" ")
    if len(threads) == 1:
        first = _SINGULARS.get(first, f"{first}s")
    return f"{name_of(threads, role)} {first} {rest}".rstrip()


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
    role: str = ""

    def do(self, verb: str) -> str:
        """What the threads do, and when, as in `threads 32 to 95 wait at k = 2`."""
        threads = [int(thread) for thread in np.flatnonzero(self.mask.bits)]
        return f"{done_by(threads, self.role, verb)}{where_text(self.where)}"


class NotKnown(Exception):
    """What a kernel does is not known before it runs."""


class Trace(NamedTuple):
    """What the threads of a block do."""

    threads: int
    events: list[Event]
    cut: np.ndarray  # threads of which only the first events are known
    doubts: list[str]  # what is not known of accesses
