"""footprint: the memory through which statements that pass each other could change a value.

This is a quick filter before the proof: statements that share nothing they write may pass each other in any way.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.effects import effects
from loopwright.ir import Buffer, Stmt, Var
from loopwright.schedule.errors import NotProved


def moved_past_each_other(step: str, statements: Sequence[Stmt], path: Sequence[Stmt]) -> list[Buffer]:
    """The buffers through which a new interleaving of the statements could change a value; `path` is around them."""
    marks = [effects(statement, path) for statement in statements]
    shared: dict[Var, Buffer] = {}
    for position, mark in enumerate(marks):
        for other in marks[position + 1 :]:
            shared.update(mark.shared(other))
            if mark.calls and other.calls:
                calls = f"{mark.calls[0]} and {other.calls[0]}"
                raise NotProved(step, f"calls with effects would change their order: {calls}", statements[position])
    return list(shared.values())
