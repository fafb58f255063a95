"""What a block of te reads: one region a buffer, in the order in which the buffers appear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer, IntervalSet, hull_while_running
from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferRegion,
    Call,
    CallEffect,
    Expr,
    IntImm,
    Let,
    LetStmt,
    Node,
    Op,
    Range,
    Var,
    Visitor,
    const,
)


class BlockAccesses(Visitor, memo=True):
    """Collects the loads and the free variables of statements; shared parts are looked at once."""

    def __init__(self, bound: Sequence[Var]) -> None:
        self.bound = set(bound)  # defined by the block
        self.inner: set[Var] = set()  # defined inside an expression or statement
        self.free: dict[Var, None] = {}
        self.loads: list[BufferLoad] = []

    def visit_Var(self, var: Var) -> None:
        if var not in self.bound and var not in self.inner:
            self.free.setdefault(var)

    def visit_Let(self, let: Let | LetStmt) -> None:
        self.visit(let.value)
        self.inner.add(let.var)
        self.visit(let.body)

    visit_LetStmt = visit_Let

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.loads.append(load)
        self.visit_children(load)

    def reads(
        self,
        excluding: Sequence[Buffer],
        indices: Sequence[Expr],
        analyzer: Analyzer,
        reduced: Mapping[Var, Range],
    ) -> list[BufferRegion]:
        """One box a buffer, around all its accesses; what the block's variables alone do not give is a whole dimension.

        `excluding`: what a reduction accumulates into, at `indices`; it does not list its own result as read. Other
        elements of the same buffer (earlier steps of a scan) are read like any. `reduced`: the axes that a box covers
        whole, where accesses lie apart by them.
        """
        boxes: dict[Buffer, list[_Interval | None]] = {}
        for load in self.loads:
            if load.buffer in excluding and all([a is b for a, b in zip(load.indices, indices, strict=True)]):
                continue
            points = [self._point(index) for index in load.indices]
            known = boxes.get(load.buffer)
            boxes[load.buffer] = (
                points
                if known is None
                else [_hull(a, b, analyzer, reduced) for a, b in zip(known, points, strict=True)]
            )
        return [BufferRegion(buffer, _ranges(buffer, box)) for buffer, box in boxes.items()]

    def _point(self, index: Expr) -> _Interval | None:
        """The index as an interval of one point; None when its value is known only inside the block."""
        inexact = _Inexact(self.inner)
        inexact.visit(index)
        return None if inexact.found else _Interval(index, 1)


class _Interval(NamedTuple):
    """`length` integers from `low` on."""

    low: Expr
    length: int


def _hull(
    a: _Interval | None, b: _Interval | None, analyzer: Analyzer, reduced: Mapping[Var, Range]
) -> _Interval | None:
    """The interval around both, if they lie a known distance apart; None is the whole dimension."""
    if a is None or b is None:
        return None
    if a.low is b.low:
        return a if a.length >= b.length else b
    gap = analyzer.simplify(b.low - a.low)
    if not isinstance(gap, IntImm):
        one, other = [IntervalSet(part.low, part.low + (part.length - 1)) for part in (a, b)]
        result = hull_while_running(one, other, reduced, analyzer)
        size = None if result is None else analyzer.simplify(result.max_value - result.min_value + 1)
        return _Interval(result.min_value, size.value) if result is not None and isinstance(size, IntImm) else None
    first, second, distance = (a, b, gap.value) if gap.value >= 0 else (b, a, -gap.value)
    return _Interval(first.low, max(first.length, distance + second.length))


def _ranges(buffer: Buffer, box: Sequence[_Interval | None]) -> tuple[Range, ...]:
    result: list[Range] = []
    for interval, size in zip(box, buffer.shape, strict=True):
        if interval is None:
            result.append(Range.from_min_extent(const(0, size.dtype), size))
        else:
            result.append(Range.from_min_extent(interval.low, const(interval.length, interval.low.dtype)))
    return tuple(result)


class _Inexact(Visitor):
    """Whether an index needs more than the block's variables: memory, a local name, or an impure call."""

    def __init__(self, inner: set[Var]) -> None:
        self.inner = inner
        self.found = False
        self.seen: set[Node] = set()

    def visit(self, node: Node) -> None:
        if not self.found and node not in self.seen:
            self.seen.add(node)
            super().visit(node)

    def visit_Var(self, var: Var) -> None:
        self.found = self.found or var in self.inner

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.found = True

    def visit_Let(self, let: Let) -> None:
        self.found = True

    def visit_Call(self, call: Call) -> None:
        if isinstance(call.op, Op) and call.op.effect is CallEffect.PURE:
            self.visit_children(call)
        else:
            self.found = True
