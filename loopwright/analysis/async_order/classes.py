"""Classes of threads: those that have the same events, and so wait and arrive together in one order of the kernel.

Of a role that copies, thread 0 may be one class, as it alone arrives, and the other lanes of the warp another one.
Warps that meet by themselves, and warpgroups that multiply, are classes of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from loopwright.analysis.async_order.events import Event, Trace, name_of

_SPLITS: Final = {"meet_warp": 32, "copy": 32, "wgmma": 128, "wgmma_wait": 128, "wgmma_commit": 128}


@dataclass(eq=False)
class ThreadClass:
    """Threads that have the same events."""

    number: int
    members: np.ndarray  # a bit for each thread of the block
    threads: list[int]
    events: list[Event]
    role: str
    is_cut: bool

    @property
    def count(self) -> int:
        """How many threads it has."""
        return len(self.threads)

    @property
    def name(self) -> str:
        """`threads 32 to 95 (role add)`."""
        return name_of(self.threads, self.role)


def classes_of(trace: Trace) -> list[ThreadClass]:
    """The classes of a block's threads."""
    masks = {event.mask.number: event.mask for event in trace.events}
    rows = [mask.bits for mask in masks.values()]
    number = np.arange(trace.threads)
    for unit in (32, 128):
        split = np.zeros(trace.threads, bool)
        seen: set[int] = set()
        for event in trace.events:
            if _SPLITS.get(event.kind) == unit and event.mask.number not in seen:
                seen.add(event.mask.number)
                split |= event.mask.bits
        if split.any():
            rows.append(np.where(split, number // unit + 1, 0))
    rows.append(trace.cut)
    table = np.stack([np.asarray(row, "int64") for row in rows], axis=1)
    _, which = np.unique(table, axis=0, return_inverse=True)
    which = which.reshape(-1)
    first = [int(np.flatnonzero(which == k)[0]) for k in range(which.max() + 1)]
    result: list[ThreadClass] = []
    for k in sorted(range(len(first)), key=lambda k: first[k]):
        members = which == k
        threads = [int(thread) for thread in np.flatnonzero(members)]
        of = {key for key, mask in masks.items() if mask.bits[threads[0]]}
        events = [event for event in trace.events if event.mask.number in of]
        role = next((event.role for event in events if event.role), "")
        result.append(ThreadClass(len(result), members, threads, events, role, bool(trace.cut[threads[0]])))
    return result
