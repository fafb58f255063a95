"""pipeline_dependences: may the statements of a loop overlap in the given way?

Statement `a` of iteration i runs at time (i + stage of a, order of a). Where it touches a cell that statement `b`
touches d iterations later, with a write among the two, its time must come first: stage of a < d + stage of b, or they
are equal and the orders decide. That fails for a few small d at most, so each of them is asked whether the two can
meet there: for indices c · i + rest, whether some i solves all equations, the rests differing as intervals say. Where
nothing can be said of an index, it may be equal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from loopwright.analysis.effects import WRITE, EffectsWalk, Names
from loopwright.arith import Analyzer, interval_of, linear_coefficients
from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    IntImm,
    Range,
    Stmt,
    Var,
    deep,
)
from loopwright.transform.errors import PipelineBreaksDependence
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.known_ops import ASSUME
from loopwright.transform.parts.purity import has_data

_WIDE: Final = 1 << 30


class Access(NamedTuple):
    """One load or store, with the loops inside the statement that are around it; None: some part of the buffer."""

    memory: tuple[Var, ...]  # whose it is, or may be
    buffer: Buffer
    indices: tuple[Expr, ...] | None
    writes: bool
    inner: tuple[tuple[Var, Range], ...]


class Touched(NamedTuple):
    """What a statement reads and writes, and whether it calls something with an effect."""

    accesses: list[Access]
    pointers: set[Var]  # handed on: anything may be done with that memory
    has_effects: bool

    def memory(self) -> set[Var]:
        return {data for access in self.accesses for data in access.memory} | self.pointers

    def written(self) -> set[Var]:
        return {data for access in self.accesses if access.writes for data in access.memory} | self.pointers


class _Walk(EffectsWalk):
    """Keeps where accesses are, and takes the address of an element for an access of some part of its buffer."""

    def __init__(self, names: Names) -> None:
        super().__init__(names)
        self.accesses: list[Access] = []
        self._inner: list[tuple[Var, Range]] = []

    def visit_For(self, loop: For) -> None:
        self._inner.append((loop.loop_var, Range.from_min_extent(loop.min, loop.extent)))
        self.visit_children(loop)
        self._inner.pop()

    def _access(self, buffer: Buffer, indices: tuple[Expr, ...] | None, writes: bool) -> None:
        memory = tuple([one.data for one in self.memory(buffer)])
        self.accesses.append(Access(memory, buffer, indices, writes, tuple(self._inner)))

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._access(load.buffer, load.indices, False)
        super().visit_BufferLoad(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self._access(store.buffer, store.indices, True)
        super().visit_BufferStore(store)

    def visit_address(self, element: BufferLoad) -> None:
        for index in element.indices:
            self.visit(index)
        self._access(element.buffer, None, bool(self.pointer_mask & WRITE))
        if self.sources is not None:
            self.sources.update(dict.fromkeys(self.roots(element.buffer.data)))


@deep
def touched(statement: Stmt, names: Names) -> Touched:
    """What the statement does to memory; its loop variables are its own, even if others use the same.

    `names` are those of memory that are bound in the function.
    """
    walk = _Walk(names)
    walk.visit(clone_definitions(statement))
    done = walk.found
    return Touched(walk.accesses, {*done.pointers, *done.named}, any([call.op is not ASSUME for call in done.calls]))


def check_dependences(
    loop: For, uses: Sequence[Touched], stages: Sequence[int], orders: Sequence[int], private: Collection[Var]
) -> None:
    """Raise unless every statement still runs after those it depends on; each iteration has its own `private`."""
    facts = Analyzer()
    for first, a in enumerate(uses):
        for then, b in enumerate(uses):
            if first == then:
                continue
            # From this distance on, the first still comes first.
            enough = stages[first] - stages[then] + (1 if orders[first] > orders[then] else 0)
            wrong = range(0 if first < then else 1, enough)
            result = _meeting(loop, a, b, wrong, private, facts) if wrong else None
            if result is not None:
                times = (stages[first], orders[first], stages[then], orders[then])
                raise PipelineBreaksDependence(loop, result[0], first, then, result[1], times)


def _meeting(
    loop: For, a: Touched, b: Touched, distances: range, private: Collection[Var], facts: Analyzer
) -> tuple[str, int] | None:
    """What both may touch, one of them writing, at one of the distances; None when they never meet."""
    if a.has_effects and b.has_effects:
        return "the effects of its calls", distances[0]
    shared = (a.memory() & b.written()) | (a.written() & b.memory())
    for data in sorted(shared, key=lambda var: var.name):
        if data in private:
            if distances[0] == 0:
                return data.name, 0
            continue
        if data in a.pointers or data in b.pointers:
            return data.name, distances[0]
        pairs = [
            _Pair.of(loop, one, other, facts)
            for one in a.accesses
            for other in b.accesses
            if data in one.memory and data in other.memory and (one.writes or other.writes)
        ]
        for distance in distances:
            if any(pair.meets(distance) for pair in pairs):
                return data.name, distance
    return None


class _Pair(NamedTuple):
    """Two accesses: for each index, the factors of the loop variable and the interval of what the rests differ by."""

    last: int  # iteration
    indices: list[tuple[int, int, int, int]]

    @staticmethod
    def of(loop: For, one: Access, other: Access, facts: Analyzer) -> _Pair:
        last = loop.extent.value - 1 if isinstance(loop.extent, IntImm) else _WIDE
        if one.buffer is not other.buffer or one.indices is None or other.indices is None:
            return _Pair(last, [])
        inner = dict((*one.inner, *other.inner))
        known = [
            result
            for a, b in zip(one.indices, other.indices, strict=True)
            if (result := _difference(loop.loop_var, a, b, inner, facts)) is not None
        ]
        return _Pair(last, known)

    def meets(self, distance: int) -> bool:
        """Whether the indices may be equal for some i and i + distance."""
        low, high = 0, self.last - distance
        for first, second, least, greatest in self.indices:
            # least <= second * (i + distance) - first * i <= greatest
            factor, start, end = second - first, least - second * distance, greatest - second * distance
            if factor == 0:
                if not start <= 0 <= end:
                    return False
                continue
            if factor < 0:
                factor, start, end = -factor, -end, -start
            low, high = max(low, -(-start // factor)), min(high, end // factor)
        return low <= high


def _difference(
    var: Var, one: Expr, other: Expr, inner: dict[Var, Range], facts: Analyzer
) -> tuple[int, int, int, int] | None:
    """(c, d, least, greatest) where one = c * var + rest, other = d * var + rest', and rest - rest' lies between."""
    if one.dtype.lanes > 1 or other.dtype.lanes > 1 or has_data(one) or has_data(other):
        return None
    first, second = linear_coefficients(one, [var], facts), linear_coefficients(other, [var], facts)
    if first is None or second is None:
        return None
    factors = first[0][0], second[0][0]
    if not (isinstance(factors[0], IntImm) and isinstance(factors[1], IntImm)):
        return None
    ends = interval_of(first[1] - second[1], inner, facts)
    if ends is None:
        return None
    low, high = facts.interval(ends.min_value)[0], facts.interval(ends.max_value)[1]
    return factors[0].value, factors[1].value, int(low), int(high)
