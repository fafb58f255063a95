"""Regions: what blocks touch in one iteration of a loop, and which iterations of another block that corresponds to.

    for i_0 in range(4):                       one iteration touches B[i_0 * 8 : i_0 * 8 + 10]; a block that writes
        for i_1 in range(8):                   B[v] makes it with v from i_0 * 8 to i_0 * 8 + 9
            C[…] = B[…] + … + B[… + 2]

Everything here may be too large, never too small: an interval that cannot be told is None, which stands for the whole
axis. Whether a step built from it is right is the proof's business.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.thread_axes import is_of_block, is_per, is_thread_tag, tag_of
from loopwright.arith import Analyzer, interval_of, linear_coefficients
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    Range,
    Stmt,
    Var,
    Visitor,
    const,
    deep,
    is_one,
    reads_memory,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.ir.intrinsics import ceildiv
from loopwright.ir.operators import cast


class Span(NamedTuple):
    """The integers from `low` to `high`, both included."""

    low: Expr
    high: Expr


Box = tuple[Span | None, ...]  # None: the whole dimension
Facts = Analyzer


def facts_under(loops: Sequence[For], around: Sequence[BlockRealize] = ()) -> Facts:
    """What is known inside `loops` and inside the blocks `around` them."""
    facts = facts_inside(*[realize.block for realize in around])
    for loop in loops:
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return facts


def facts_inside(*blocks: Block) -> Facts:
    """What is known inside blocks: their iteration variables stay in their domains."""
    facts = Analyzer()
    for block in blocks:
        for axis in block.iter_vars:
            if axis.dom is not None:
                facts.bind(axis.var, axis.dom)
    return facts


def axis_end(axis: IterVar) -> Expr:
    """The first number past the values that an axis takes."""
    assert axis.dom is not None
    return Analyzer().simplify(axis.dom.min + axis.dom.extent)


def axis_start(axis: IterVar) -> Expr:
    """What the indices of a buffer over the axis count from: 0, or the least value of an axis that may be negative."""
    assert axis.dom is not None
    return const(0, axis.var.dtype) if Analyzer().can_prove(axis.dom.min >= 0) else axis.dom.min


def axis_room(axis: IterVar) -> Expr:
    """The extent of a buffer over the axis; a domain of negative extent has no elements."""
    room = Analyzer().simplify(axis_end(axis) - axis_start(axis))
    return const(0, room.dtype) if isinstance(room, IntImm) and room.value < 0 else room


def axis_place(axis: IterVar, value: Expr) -> Expr:
    """Where in a buffer over the axis what belongs to one of its values is."""
    return Analyzer().simplify(value - axis_start(axis))


@deep
def touched_under(
    body: Stmt, memory: Container[Var], writes: bool, facts: Facts, around: Sequence[For] = ()
) -> dict[Buffer, list[Box]]:
    """What the statements of `body` read (or write) of the buffers in `memory`, in terms of what is outside `body`.

    Of memory that each thread has for itself, it is what one thread of the loops `around` touches: a loop in `body` on
    the same thread axis runs that thread's own iteration there.
    """
    walk = _Touched(memory, writes, facts, around)
    walk.visit(body)
    return walk.found


class _Touched(Visitor):
    def __init__(self, memory: Container[Var], writes: bool, facts: Facts, around: Sequence[For]) -> None:
        self.memory, self.writes, self.facts = memory, writes, facts
        self.threads = {tag_of(loop): loop for loop in around if is_thread_tag(tag_of(loop))}
        self.own: dict[Var, tuple[str, Expr]] = {}  # loops on thread axes that one around is on: its tag and variable
        self.found: dict[Buffer, list[Box]] = {}
        self.domains: dict[Var, Range] = {}  # the loops around the current statement, outermost first
        self.hidden: set[Var] = set()  # what has no meaning outside `body`, beside its loops

    def visit_For(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        domain = Range.from_min_extent(loop.min, loop.extent)
        self.domains[loop.loop_var] = domain
        self.facts.bind(loop.loop_var, domain)
        outer = self.threads.get(tag_of(loop))
        if outer is not None and structural_equal(outer.extent, loop.extent) and structural_equal(outer.min, loop.min):
            self.own[loop.loop_var] = tag_of(loop), outer.loop_var.astype(loop.loop_var.dtype)
        self.visit(loop.body)
        del self.domains[loop.loop_var]

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        self.hidden.add(let.var)
        self.visit_children(let)

    visit_Let = visit_LetStmt

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        for value in realize.iter_values:
            self.visit(value)
        self.visit(realize.predicate)
        block = realize.block
        values = {axis.var: value for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)}
        for region in block.writes if self.writes else block.reads:
            if region.buffer.data in self.memory:
                self._add(region.buffer, substitute(region, values).region)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        if not self.writes and load.buffer.data in self.memory:
            self._add(load.buffer, [_point(index) for index in load.indices])
        self.visit_children(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        if self.writes and store.buffer.data in self.memory:
            self._add(store.buffer, [_point(index) for index in store.indices])
        self.visit_children(store)

    def _add(self, buffer: Buffer, region: Sequence[Range]) -> None:
        own = {var: value for var, (tag, value) in self.own.items() if is_per(buffer.scope(), tag)}
        if own:
            region = [substitute(part, own) for part in region]
        self.found.setdefault(buffer, []).append(tuple([self._span(part) for part in region]))

    def _span(self, part: Range) -> Span | None:
        if part.min.dtype.lanes != 1:
            return None
        first = self.facts.simplify(part.min)
        ends = interval_of(first, self.domains, self.facts)
        if ends is None:
            return None
        low, high = ends
        if not is_one(part.extent):
            last = interval_of(self.facts.simplify(part.min + part.extent - 1), self.domains, self.facts)
            if last is None:
                return None
            high = last[1]
        inside = {*self.hidden, *self.domains}
        for end in (low, high):
            if uses_var(end, inside.__contains__) or reads_memory(end):
                return None
        return Span(self.facts.simplify(low), self.facts.simplify(high))


def relaxed_over_threads(box: Box, scope: str, around: Sequence[For], facts: Facts) -> Box:
    """What all threads touch that share memory of `scope`, from what one of them does.

    Memory for all is left as it is: whether threads may compute parts of it by themselves is for the proof to say.
    """
    domains = {
        loop.loop_var: Range.from_min_extent(loop.min, loop.extent)
        for loop in around
        if is_thread_tag(tag_of(loop)) and (is_of_block(scope) or scope == "warp") and not is_per(scope, tag_of(loop))
    }
    if not domains:
        return box
    return tuple([None if span is None else _over(span, domains, facts) for span in box])


def _over(span: Span, domains: Mapping[Var, Range], facts: Facts) -> Span | None:
    least, greatest = interval_of(span.low, domains, facts), interval_of(span.high, domains, facts)
    if least is None or greatest is None:
        return None
    ends = facts.simplify(least.min_value), facts.simplify(greatest.max_value)
    return None if any([uses_var(end, domains.__contains__) for end in ends]) else Span(*ends)


def _point(index: Expr) -> Range:
    return Range.from_min_extent(index, const(1, index.dtype.with_lanes(1)))


class Solver:
    """Which values the axes of a block take when it touches given boxes."""

    def __init__(self, domain: Mapping[Var, Span], facts: Facts, reduced: Container[Var] = ()) -> None:
        self.domain = domain  # the axes, and the values they take altogether
        self.facts = facts
        self.reduced = reduced  # axes of a reduction: where an index mixes them with others, they run in full

    def axes_touching(self, region: BufferRegion, box: Box, at_end: bool = False) -> dict[Var, Span]:
        """Spans of axes outside which `region` does not meet `box`; axes left out may take any value.

        With `at_end`, outside which the last cell of the region is not in the box.
        """
        result: dict[Var, Span] = {}
        remainders: list[tuple[FloorMod, Span]] = []
        for part, span in zip(region.region, box, strict=True):
            if span is None:
                continue
            index, low, high = part.min, span.low, span.high
            if not is_one(part.extent):
                if at_end:
                    index = cast(part.min + part.extent - 1, part.min.dtype)
                else:
                    low = low - part.extent + 1
                    if uses_var(low, self.domain.__contains__):
                        continue
            index = self.facts.simplify(index)
            if at_end:
                index = self._last_of_reduction(index)
            if isinstance(index, FloorMod):
                remainders.append((index, span))
            else:
                self._solve(index, cast(low, index.dtype), cast(high, index.dtype), result)
        for remainder, span in remainders:
            self._within_block(remainder, span, result)
        return result

    def _last_of_reduction(self, index: Expr) -> Expr:
        """`v_y + v_ry` at its greatest over the reduction axis v_ry; an index of reduction axes alone stays."""
        used = [axis for axis in self.domain if uses_var(index, {axis}.__contains__)]
        inner = {axis: self.domain[axis] for axis in used if axis in self.reduced}
        if not inner or len(inner) == len(used):
            return index
        ends = interval_of(index, {axis: (span.low, span.high) for axis, span in inner.items()}, self.facts)
        return index if ends is None else self.facts.simplify(ends.max_value)

    def _solve(self, index: Expr, low: Expr, high: Expr, result: dict[Var, Span]) -> None:
        """low ≤ index ≤ high."""
        facts = self.facts
        if isinstance(index, FloorDiv) and isinstance(index.b, IntImm) and index.b.value > 0:
            c = index.b
            self._solve(index.a, facts.simplify(low * c), facts.simplify(high * c + (c.value - 1)), result)
            return
        axes = [axis for axis in self.domain if uses_var(index, {axis}.__contains__)]
        linear = linear_coefficients(index, axes, facts)
        if not axes or linear is None:
            return
        coefficients, base = linear
        pairs = zip(coefficients, axes, strict=True)
        parts = [(factor.value, axis) for factor, axis in pairs if isinstance(factor, IntImm) and factor.value]
        if len(parts) < len(axes):
            return
        parts.sort(key=lambda part: -abs(part[0]))
        low, high = facts.simplify(low - base), facts.simplify(high - base)
        for position, (k, axis) in enumerate(parts):
            rest = self._range(parts[position + 1 :])
            if rest is None or rest[1] - rest[0] >= abs(k):
                return
            least, greatest = facts.simplify(low - rest[1]), facts.simplify(high - rest[0])
            if k < 0:
                least, greatest = facts.simplify(0 - greatest), facts.simplify(0 - least)
            step = const(abs(k), index.dtype)
            first = facts.simplify(least if abs(k) == 1 else ceildiv(least, step))
            last = facts.simplify(greatest if abs(k) == 1 else greatest // step)
            self.narrow(result, axis, Span(first, last))
            if not facts.can_prove_equal(first, last):
                return
            low, high = facts.simplify(low - first * k), facts.simplify(high - first * k)

    def _range(self, parts: Sequence[tuple[int, Var]]) -> tuple[int, int] | None:
        """The least and greatest value of a sum of axes, where these are literals."""
        least = greatest = 0
        for c, axis in parts:
            low, high = (self.facts.simplify(end) for end in self.domain[axis])
            if not (isinstance(low, IntImm) and isinstance(high, IntImm)):
                return None
            least += min(c * low.value, c * high.value)
            greatest += max(c * low.value, c * high.value)
        return least, greatest

    def _within_block(self, index: FloorMod, span: Span, result: dict[Var, Span]) -> None:
        """low ≤ axis % c ≤ high, where the axis is known to lie in one block of c."""
        axis, c = index.a, index.b
        if not (isinstance(axis, Var) and axis in result and isinstance(c, IntImm)):
            return
        facts, known = self.facts, result[axis]
        whole = facts.can_prove_equal(known.low % c, 0) and facts.can_prove_equal(known.high - known.low, c.value - 1)
        if whole:
            result[axis] = Span(facts.simplify(known.low + span.low), facts.simplify(known.low + span.high))

    def narrow(self, result: dict[Var, Span], axis: Var, span: Span) -> None:
        known = result.get(axis)
        if known is None:
            result[axis] = span
            return
        low = span.low if self.facts.can_prove(span.low >= known.low) else known.low
        high = span.high if self.facts.can_prove(span.high <= known.high) else known.high
        result[axis] = Span(low, high)

    def hull(self, a: Span | None, b: Span | None) -> Span | None:
        """A span around both; None where they cannot be compared."""
        if a is None or b is None:
            return None
        low, high = self._lesser(a.low, b.low), self._lesser(b.high, a.high, greater=True)
        return None if low is None or high is None else Span(low, high)

    def _lesser(self, a: Expr, b: Expr, greater: bool = False) -> Expr | None:
        if structural_equal(a, b):
            return a
        if self.facts.can_prove(a <= b):
            return b if greater else a
        if self.facts.can_prove(b <= a):
            return a if greater else b
        return None
