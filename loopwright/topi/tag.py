"""Tags of stages, by which schedules decide what may be inlined: elemwise ⊂ broadcast ⊂ injective.

A stage may add a word of its own after the general one: `injective,pad`.
"""

from __future__ import annotations

from typing import Final

ELEMWISE: Final = "elemwise"
BROADCAST: Final = "broadcast"
INJECTIVE: Final = "injective"
COMM_REDUCE: Final = "comm_reduce"
COMM_REDUCE_IDX: Final = "comm_reduce_idx"


def is_broadcast(tag: str) -> bool:
    """Whether a stage of this tag computes each element from at most one element of each input, or repeats them."""
    return tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """Whether each element of a stage of this tag is moved or computed from single elements of its inputs."""
    return is_broadcast(tag) or tag.startswith(INJECTIVE)
