"""The annotations of the root block in which rules leave to postprocs how far they may go."""

from __future__ import annotations

from typing import Final

PARALLEL: Final = "meta_schedule.parallel"  # tasks at most
VECTORIZE: Final = "meta_schedule.vectorize"  # lanes at most
UNROLL: Final = "meta_schedule.unroll_explicit"  # statements in a row, at most
UNROLL_IMPLICIT: Final = "meta_schedule.unroll_implicit"
PLACES: Final = "loopwright.places"  # of a block: how many loops its sampled compute location chooses from
LANES: Final = "loopwright.lanes"  # of a block: it makes partial results in lanes


def number_of(value: object) -> int:
    """An annotation as a number; 0 where there is none."""
    own = getattr(value, "value", value)
    return own if isinstance(own, int) else 0
