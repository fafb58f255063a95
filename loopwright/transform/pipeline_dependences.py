"""pipeline_dependences: may the statements of a loop overlap in the given way?

Statement `a` of iteration i runs at time (i + stage of a, order of a). Where it touches a cell that statement `b`
touches d iterations later, with a write among the two, its time must come first: stage of a < d + stage of b, or they
are equal and the orders decide. The smaller d, the stronger that is, so the smallest d at which the two can meet
decides. For indices c · i + rest it follows from the interval of the difference of the rests; where nothing can be
said, the two may meet in neighbouring iterations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from loopwright.arith import Analyzer, interval_of, linear_coefficients
from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Expr,
    For,
    IntImm,
    Range,
    Stmt,
    Var,
    Visitor,
)
from loopwright.transform.errors import PipelineBreaksDependence
from loopwright.transform.known_ops import ASSUME, PREFETCH
from loopwright.transform.purity import has_data
from loopwright.transform.renew_definitions import renew_definitions

_HARMLESS: Final = (PREFETCH, ASSUME)
_WIDE: Final = 1 << 30


class Access(NamedTuple):
    """One load or store, with the loops inside the statement that are around it; None: some part of the buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...] | None
    writes: bool
    inner: tuple[tuple[Var, Range], ...]


class Touched(Visitor):
    """What a statement reads and writes, and whether it calls something with an effect."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.pointers: set[Var] = set()  # handed on: anything may be done with that memory
        self.has_effects = False
        self._inner: list[tuple[Var, Range]] = []

    def visit_For(self, loop: For) -> None:
        self._inner.append((loop.loop_var, Range.from_min_extent(loop.min, loop.extent)))
        self.visit_children(loop)
        self._inner.pop()

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.accesses.append(Access(load.buffer, load.indices, False, tuple(self._inner)))
        self.visit_children(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.accesses.append(Access(store.buffer, store.indices, True, tuple(self._inner)))
        self.visit_children(store)

    def visit_Call(self, call: Call) -> None:
        if call.op in _HARMLESS:
            return
        if not getattr(call.op, "is_pure", False):
            if getattr(call.op, "name", "") not in ("tir.address_of", "tir.tvm_access_ptr"):
                self.has_effects = True
            for argument in call.args:
                if isinstance(argument, BufferLoad):
                    # Its address, not its value: all of the buffer is within reach.
                    self.accesses.append(Access(argument.buffer, None, True, tuple(self._inner)))
        self.visit_children(call)

    def visit_Var(self, var: Var) -> None:
        if var.dtype.kind == "handle":
            self.pointers.add(var)

    def memory(self) -> set[Var]:
        return {access.buffer.data for access in self.accesses} | self.pointers

    def written(self) -> set[Var]:
        return {access.buffer.data for access in self.accesses if access.writes} | self.pointers


def touched(statement: Stmt) -> Touched:
    """What the statement does to memory; its loop variables are its own, even if others use the same."""
    found = Touched()
    found.visit(renew_definitions(statement))
    return found


def check_dependences(
    loop: For, uses: Sequence[Touched], stages: Sequence[int], orders: Sequence[int], private: Collection[Var]
) -> None:
    """Raise unless every statement still runs after those it depends on; each iteration has its own `private`."""
    facts = Analyzer()
    for first, a in enumerate(uses):
        for then, b in enumerate(uses):
            if first == then:
                continue
            earliest = 0 if first < then else 1
            for what, distance in _meetings(loop, a, b, earliest, private, facts):
                later = distance + stages[then]
                if stages[first] > later or (stages[first] == later and orders[first] > orders[then]):
                    times = (stages[first], orders[first], stages[then], orders[then])
                    raise PipelineBreaksDependence(loop, what, first, then, distance, times)


def _meetings(
    loop: For, a: Touched, b: Touched, earliest: int, private: Collection[Var], facts: Analyzer
) -> list[tuple[str, int]]:
    """What both touch, one of them writing, and the least distance (from `earliest` on) at which they meet there."""
    found: list[tuple[str, int]] = []
    if a.has_effects and b.has_effects:
        found.append(("the effects of its calls", earliest))
    shared = (a.memory() & b.written()) | (a.written() & b.memory())
    for data in sorted(shared, key=lambda var: var.name):
        if data in private:
            if earliest == 0:
                found.append((data.name, 0))
            continue
        if data in a.pointers or data in b.pointers:
            found.append((data.name, earliest))
            continue
        distances = [
            distance
            for one in a.accesses
            for other in b.accesses
            if one.buffer.data is data and other.buffer.data is data and (one.writes or other.writes)
            if (distance := _least_distance(loop, one, other, earliest, facts)) is not None
        ]
        if distances:
            found.append((data.name, min(distances)))
    return found


def _least_distance(loop: For, a: Access, b: Access, earliest: int, facts: Analyzer) -> int | None:
    """The least d >= earliest such that b may touch, d iterations later, what a touches; None if there is none."""
    if a.buffer is not b.buffer or a.indices is None or b.indices is None:
        return earliest
    low, high = earliest, loop.extent.value - 1 if isinstance(loop.extent, IntImm) else _WIDE
    inner = dict((*a.inner, *b.inner))
    for one, other in zip(a.indices, b.indices, strict=True):
        limits = _distances(loop.loop_var, one, other, inner, facts)
        if limits is not None:
            low, high = max(low, limits[0]), min(high, limits[1])
    return low if low <= high else None


def _distances(
    var: Var, one: Expr, other: Expr, inner: dict[Var, Range], facts: Analyzer
) -> tuple[int, int] | None:
    """An interval that holds every d for which `one` at i equals `other` at i + d; None when nothing can be said."""
    if one.dtype.lanes > 1 or other.dtype.lanes > 1 or has_data(one) or has_data(other):
        return None
    first, second = linear_coefficients(one, [var], facts), linear_coefficients(other, [var], facts)
    if first is None or second is None:
        return None
    factor = first[0][0]
    if not facts.can_prove_equal(factor, second[0][0]) or not isinstance(factor, IntImm):
        return None
    ends = interval_of(first[1] - second[1], inner, facts)
    if ends is None:
        return None
    low, high = facts.interval(ends.min_value)[0], facts.interval(ends.max_value)[1]
    c = factor.value
    if c == 0:
        return None if low <= 0 <= high else (1, 0)
    if c < 0:
        c, low, high = -c, -high, -low
    return int(-(-low // c)), int(high // c)
