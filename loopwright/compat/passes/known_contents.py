"""known_contents: what cells of buffers hold, as far as straight code says so.

    A[0] = 5                the cell A[0] holds 5
    A[0] = A[0] + 7         … and 12 from here on
    for i in range(n):      what the loop writes is not known in it, nor after it
        A[0] = i

Only cells with constant indices, and values that need no memory and stay within their type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from loopwright.arith import Analyzer
from loopwright.ir import (
    EQ,
    Block,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    IntImm,
    Node,
    Ramp,
    Rewriter,
    Stmt,
    Var,
    any_node,
    collect,
    conjuncts,
    const,
)
from loopwright.transform.parts.known_ops import ASSUME
from loopwright.transform.parts.purity import has_data, is_pure

Cell = tuple[Buffer, tuple[int, ...]]


class KnownContents:
    """The cells whose contents are known where a rewriter stands."""

    def __init__(self, facts: Analyzer) -> None:
        self.facts = facts
        self.values: dict[Cell, Expr] = {}

    def resolved(self, expr: Expr) -> Expr:
        """The expression with known contents in place of loads."""
        result: Expr = _Resolve(self.values).visit(expr) if self.values else expr
        return result

    def store(self, store: BufferStore) -> None:
        """Learn from a store, after its value was looked at."""
        buffer = store.buffer
        value = self.resolved(store.value)
        lanes = _lanes(store.indices)
        if lanes is None:
            self.forget([buffer.data])
            return
        # Another view of the same memory counts its cells in another way.
        self.values = {
            cell: known
            for cell, known in self.values.items()
            if cell[0] is buffer or cell[0].data is not buffer.data
        }
        for number, index in enumerate(lanes):
            self._learn((buffer, index), _lane(value, number))

    def _learn(self, cell: Cell, value: Expr | None) -> None:
        self.values.pop(cell, None)
        if value is None or has_data(value) or value.dtype.lanes > 1:
            return
        value = self.facts.simplify(value)
        low, high = self.facts.interval(value) if value.dtype.is_int else (0, 0)
        if value.dtype.is_int and value.dtype.lowest <= low and high <= value.dtype.highest:
            self.values[cell] = value

    def assume(self, condition: Expr) -> None:
        """Learn from a condition that holds."""
        for part in conjuncts(condition):
            if isinstance(part, EQ):
                for one, other in ((part.a, part.b), (part.b, part.a)):
                    index = _constants(one.indices) if isinstance(one, BufferLoad) else None
                    if isinstance(one, BufferLoad) and index is not None:
                        self._learn((one.buffer, index), other)

    def forget(self, memory: Iterable[Var]) -> None:
        """Nothing is known of that memory any more."""
        gone = set(memory)
        self.values = {cell: value for cell, value in self.values.items() if cell[0].data not in gone}

    @contextmanager
    def branch(self, condition: Expr | None) -> Iterator[None]:
        """While it runs, `condition` holds; afterwards all is as before."""
        before = dict(self.values)
        if condition is not None:
            self.assume(condition)
        yield
        self.values = before

    def leave(self, statement: Stmt) -> None:
        """Forget what a loop or a branch may have written."""
        if any_node(statement, _may_write_anything):
            self.values = {}
        else:
            self.forget([store.buffer.data for store in collect(statement, BufferStore)])


def _may_write_anything(node: Node) -> bool:
    if isinstance(node, Block):
        return True
    return isinstance(node, Evaluate) and not is_pure(node.value) and not is_assume(node)


def is_assume(node: Stmt) -> bool:
    """Whether the statement says what the program promises."""
    return isinstance(node, Evaluate) and isinstance(node.value, Call) and node.value.op is ASSUME


class _Resolve(Rewriter):
    def __init__(self, values: dict[Cell, Expr]) -> None:
        self.values = values

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        index = _constants(load.indices)
        known = None if index is None else self.values.get((load.buffer, index))
        return known if known is not None and known.dtype is load.dtype else self.rebuild(load)


def _constants(indices: tuple[Expr, ...]) -> tuple[int, ...] | None:
    found = [index.value for index in indices if isinstance(index, IntImm)]
    return tuple(found) if len(found) == len(indices) else None


def _lanes(indices: tuple[Expr, ...]) -> list[tuple[int, ...]] | None:
    """The cells that a store writes, one a lane."""
    plain = _constants(indices)
    if plain is not None:
        return [plain]
    *outer, last = indices
    before = _constants(tuple(outer))
    if before is None or not isinstance(last, Ramp):
        return None
    if not isinstance(last.base, IntImm) or not isinstance(last.stride, IntImm):
        return None
    return [(*before, last.base.value + lane * last.stride.value) for lane in range(last.dtype.lanes)]


def _lane(value: Expr, number: int) -> Expr | None:
    if value.dtype.lanes == 1:
        return value
    if isinstance(value, Broadcast):
        return value.value
    if isinstance(value, Ramp):
        return value.base + value.stride * const(number, value.stride.dtype)
    return None
