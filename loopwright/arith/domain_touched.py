"""domain_touched: the box of a buffer's elements that a statement reads, writes or both.

    for i in range(100): A[i - 1] = A[i + 1]        read: [1, 101),   written: [-1, 99),   both: [-1, 101)
"""

from __future__ import annotations

from functools import reduce

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.int_set import NEG_INF, POS_INF, IntervalSet, int_set
from loopwright.ir import (
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    IterVar,
    LetStmt,
    Range,
    Stmt,
    Var,
    Visitor,
    deep,
)


class _Touched(Visitor):
    def __init__(self, buffer: Buffer, loads: bool, stores: bool) -> None:
        self.buffer, self.loads, self.stores = buffer, loads, stores
        self.domains: dict[Var, IntervalSet] = {}
        self.sets: list[list[IntervalSet]] = [[] for _ in buffer.shape]
        self.facts = Analyzer()

    def visit_For(self, loop: For) -> None:
        self._over(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        self.visit_children(loop)

    def visit_LetStmt(self, let: LetStmt) -> None:
        if let.var.dtype.is_int:
            self.domains[let.var] = int_set(let.value, self.domains, self.facts)
        self.visit_children(let)

    def visit_AttrStmt(self, stmt: AttrStmt) -> None:
        if stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
            self._over(stmt.node.var, Range.from_min_extent(0, stmt.value))
        self.visit_children(stmt)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        if self.loads and load.buffer is self.buffer:
            self._touch(load.indices)
        self.visit_children(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        if self.stores and store.buffer is self.buffer:
            self._touch(store.indices)
        self.visit_children(store)

    def _over(self, var: Var, domain: Range) -> None:
        self.domains[var] = int_set(var, {**self.domains, var: domain}, self.facts)

    def _touch(self, indices: tuple[Expr, ...]) -> None:
        for sets, index in zip(self.sets, indices, strict=True):
            sets.append(int_set(index, self.domains, self.facts))


@deep
def domain_touched(stmt: Stmt, buffer: Buffer, consider_loads: bool, consider_stores: bool) -> list[Range]:
    """A range for each dimension, around all accesses of the asked kinds; empty when there is none."""
    visitor = _Touched(buffer, consider_loads, consider_stores)
    visitor.visit(stmt)
    facts, result = visitor.facts, []
    for size, sets in zip(buffer.shape, visitor.sets, strict=True):
        if not sets:
            return []
        whole = reduce(IntervalSet.union, sets)
        if whole.min_value is NEG_INF or whole.max_value is POS_INF:
            result.append(Range.from_min_extent(0, size))  # an index that no loop bounds stays in the buffer
            continue
        low = facts.simplify(whole.min_value)
        result.append(Range.from_min_extent(low, facts.simplify(whole.max_value - low + 1)))
    return result
