"""Step: what a primitive returns. It records nothing and replaces nothing; the engine proves and applies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from loopwright.ir import Buffer, PrimFunc, Stmt, Var
from loopwright.schedule.handles import BlockKey
from loopwright.schedule.origins import Origins


class Proof(Enum):
    """What has to be shown for a step."""

    ORDER_KEPT = "every instance runs once, in the same order: nothing to show"
    LEMMA = "a general reason says that no value changes (`lemmas.py`)"
    VALUES = "every read sees the value it saw before"
    GIVEN = "the primitive has its own reason, stated in its docstring"


@dataclass(frozen=True)
class LoopResult:
    """A loop that the caller gets a handle of."""

    var: Var


@dataclass(frozen=True)
class BlockResult:
    """A block that the caller gets a handle of."""

    key: BlockKey


Result = LoopResult | BlockResult | bool | int


@dataclass(frozen=True)
class Step:
    """The function after the step, and what the engine has to prove about it."""

    after: PrimFunc
    proof: Proof = Proof.VALUES
    origins: Origins = field(default_factory=Origins)
    results: Sequence[Result] = ()
    several: bool = False  # the caller gets a list, also of one result
    concurrent: Sequence[Var] = ()  # loops whose iterations now run at the same time: proved free of races
    at: Stmt | None = None  # what an error shows
    buffers: Sequence[Buffer] | None = None  # only flow through these can have changed; None: through any
    given: PrimFunc | None = None  # equal to the old version for the primitive's own reason; proved from there on
    again: Callable[[PrimFunc], PrimFunc | None] | None = None  # a given step, for earlier versions that can take it
    moved: Mapping[BlockKey, BlockKey] = field(default_factory=dict)  # blocks that are known by another key now
