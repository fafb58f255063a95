"""min_cut: a choice between two for many things at once, where the cost of a choice may depend on two of them.

    cut = Cut()
    a, b = cut.node(), cut.node()
    cut.costs(a, first=0, second=5)      a is better off as the first
    cut.costs(b, first=7, second=0)
    cut.apart(a, b, 3)                   and it costs 3 if they differ
    cut.solve()                          {b}: those that are the second

The least cost is found, not searched for: it is the smallest cut of a network between two ends, by augmenting along
shortest ways until there is none.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Final

_FIRST: Final = 0
_SECOND: Final = 1


class Cut:
    """Things that are the first or the second of two, and what that costs."""

    def __init__(self) -> None:
        self._room: list[dict[int, float]] = [{}, {}]  # from a node to others: what may still flow

    def node(self) -> int:
        """A new node to choose for."""
        self._room.append({})
        return len(self._room) - 1

    def costs(self, item: int, first: float = 0.0, second: float = 0.0) -> None:
        """What it costs if `item` is the first, and if it is the second; `inf` forbids it."""
        shared = min(first, second)  # to be paid in any case: it decides nothing
        if shared == inf:
            shared = 0.0
        self._flow(_FIRST, item, second - shared)
        self._flow(item, _SECOND, first - shared)

    def apart(self, one: int, other: int, cost: float) -> None:
        """What it costs if the two differ."""
        self.implies(one, other, cost)
        self.implies(other, one, cost)

    def implies(self, one: int, other: int, cost: float = inf) -> None:
        """What it costs if `one` is the first and `other` the second."""
        self._flow(one, other, cost)

    def _flow(self, start: int, end: int, room: float) -> None:
        if room > 0:
            self._room[start][end] = self._room[start].get(end, 0.0) + room
            self._room[end].setdefault(start, 0.0)

    def solve(self) -> set[int]:
        """The things that are the second, in a choice of least cost."""
        while True:
            before = self._search()
            if _SECOND not in before:
                return {item for item in range(2, len(self._room)) if item not in before}
            way = [_SECOND]
            while way[-1] != _FIRST:
                way.append(before[way[-1]])
            steps = list(zip(way[1:], way, strict=False))
            amount = min(self._room[start][end] for start, end in steps)
            if amount == inf:
                raise ValueError("what must be the first must be the second, too")
            for start, end in steps:
                self._room[start][end] -= amount
                self._room[end][start] += amount

    def _search(self) -> dict[int, int]:
        """What is reached from the first end, each with the node before it on a shortest way."""
        before = {_FIRST: _FIRST}
        pending = deque([_FIRST])
        while pending and _SECOND not in before:
            node = pending.popleft()
            for other, room in self._room[node].items():
                if room > 0 and other not in before:
                    before[other] = node
                    pending.append(other)
        return before
