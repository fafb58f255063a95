"""unroll: how many statements may stand in a row."""

from __future__ import annotations

from loopwright.tune.sketches.mutators.note import MutateNote
from loopwright.tune.sketches.notes import UNROLL, UNROLL_IMPLICIT


class MutateUnroll(MutateNote):
    """Another number of statements."""

    name = "unroll"
    keys = (UNROLL, UNROLL_IMPLICIT)
