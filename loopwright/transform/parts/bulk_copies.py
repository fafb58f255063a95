"""Bulk copies: loops of a warp that copy what lies side by side in global memory, as one asynchronous copy.

    for k in range(8):                                   →    bytes = min(256, n - b) * 4
        if b + k * 32 + lane < n:                             T.bulk_copy_async(&S[0], &A[b], bytes, barrier)
            S[k * 32 + lane] = A[b + k * 32 + lane]

The lanes of a warp and the iterations count through the elements, one by one. A condition cuts off the end, or holds
for all elements alike. As the copy is there only when its barrier says so, the warp touches its target nowhere else,
and the kernel stores nothing to its source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from itertools import combinations
from typing import Final, NamedTuple

from loopwright.analysis.effects import is_pure_call
from loopwright.analysis.thread_axes import is_of_block, scope_of
from loopwright.arith import Analyzer
from loopwright.ir import (
    LT,
    Allocate,
    And,
    AssertStmt,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Min,
    Node,
    Range,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    any_node,
    collect,
    const,
    seq,
    substitute,
    uses_var,
)
from loopwright.ir.async_intrinsics import bulk_copy_async
from loopwright.ir.intrinsics import address_of, if_then_else
from loopwright.transform.parts.purity import has_data

_LANES: Final = 32


def with_bulk_copies(
    statement: Stmt, targets: frozenset[Var], stored: frozenset[Var], thread: Var, begin: int, barrier: Expr
) -> Stmt:
    """The statement, with bulk copies for the loops that fill the targets.

    The lanes of one warp run it, the threads from `begin` on. What the kernel has `stored` to is no source of a copy.
    """
    copies = _Copies(targets, stored, thread, begin, barrier)
    copies.find(statement)
    return copies.written(statement)


class _Copy(NamedTuple):
    """A bulk copy: where it puts how many elements."""

    target: Var
    begin: Expr
    length: int
    statement: Stmt

    def is_apart_from(self, other: _Copy) -> bool:
        facts = Analyzer()
        is_before, is_behind = self.begin + self.length <= other.begin, other.begin + other.length <= self.begin
        return facts.can_prove(is_before) or facts.can_prove(is_behind)


class _Copies:
    """The loops of a statement that are bulk copies."""

    def __init__(self, targets: frozenset[Var], stored: frozenset[Var], thread: Var, begin: int, barrier: Expr) -> None:
        self.targets, self.stored = targets, stored
        self.thread, self.begin, self.barrier = thread, begin, barrier
        self.copies: dict[For, _Copy] = {}
        self.differ: set[Var] = set()  # between lanes

    def find(self, statement: Stmt) -> None:
        self._find_lets(statement)
        loops = Counter(_loops_run_once(statement))
        found = {loop: self._copy(loop) for loop, times in loops.items() if times == 1}
        copies = {loop: copy for loop, copy in found.items() if copy is not None}
        accesses: list[BufferLoad | BufferStore] = [*collect(statement, BufferLoad)]
        accesses += collect(statement, BufferStore)
        uses = Counter([access.buffer.data for access in accesses])
        for target in dict.fromkeys([copy.target for copy in copies.values()]):
            mine = {loop: copy for loop, copy in copies.items() if copy.target is target}
            if uses[target] == len(mine) and all([a.is_apart_from(b) for a, b in combinations(mine.values(), 2)]):
                self.copies |= mine

    def _find_lets(self, statement: Stmt) -> None:
        if isinstance(statement, LetStmt) and not self._is_alike(statement.value):
            self.differ.add(statement.var)
        if isinstance(statement, SeqStmt):
            for part in statement.seq:
                self._find_lets(part)
        elif isinstance(statement, (Allocate, DeclBuffer, AttrStmt, LetStmt)):
            self._find_lets(statement.body)

    def _is_alike(self, expr: Expr) -> bool:
        """Whether all lanes compute one value."""

        def differs(node: Node) -> bool:
            if isinstance(node, Var):
                return node is self.thread or node in self.differ
            if isinstance(node, BufferLoad):
                scope = node.buffer.scope()
                return not (scope == "global" or is_of_block(scope))
            return isinstance(node, Call) and not is_pure_call(node)

        return not any_node(expr, differs)

    def written(self, statement: Stmt) -> Stmt:
        if isinstance(statement, SeqStmt):
            return seq([self.written(part) for part in statement.seq])
        if isinstance(statement, (Allocate, DeclBuffer, AttrStmt, LetStmt)):
            return statement.with_(body=self.written(statement.body))
        copy = self.copies.get(statement) if isinstance(statement, For) else None
        return statement if copy is None else copy.statement

    def _copy(self, loop: For) -> _Copy | None:
        """The bulk copy that does what the loop does; None where that is not known."""
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED) or not isinstance(loop.extent, IntImm):
            return None
        conditions: list[Expr] = []
        store = loop.body
        while isinstance(store, IfThenElse) and store.else_case is None:
            conditions += _terms(store.condition)
            store = store.then_case
        if not isinstance(store, BufferStore) or not isinstance(store.value, BufferLoad):
            return None
        source = store.value
        if store.buffer.data not in self.targets or scope_of(source.buffer.data) != "global":
            return None
        if source.buffer.data in self.stored or source.dtype.lanes != 1:
            return None
        number = Var("lane", "int32")  # of the lane, in place of what the program calls it
        count = loop.extent.value * _LANES
        facts = Analyzer()
        facts.bind(number, Range(0, _LANES))
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))

        def named(expr: Expr) -> Expr:
            return facts.simplify(substitute(expr, {self.thread: (number + self.begin).astype(self.thread.dtype)}))

        def first(expr: Expr) -> Expr:
            return facts.simplify(substitute(expr, {loop.loop_var: loop.min, number: const(0, "int32")}))

        def is_fixed(expr: Expr) -> bool:
            return self._is_alike(expr) and not uses_var(expr, lambda var: var is number or var is loop.loop_var)

        def counts(expr: Expr) -> bool:
            """Whether the expression is a fixed one plus the number of the element."""
            element = ((loop.loop_var - loop.min) * _LANES).astype(expr.dtype) + number.astype(expr.dtype)
            return is_fixed(first(expr)) and facts.can_prove_equal(expr, first(expr) + element)

        target, given = named(_flat(store.buffer, store.indices)), named(_flat(source.buffer, source.indices))
        if not counts(target) or not counts(given):
            return None
        size: Expr = const(count, "int64")
        asks_memory = False
        for condition in reversed(conditions):  # what an outer one forbids to ask is not asked
            own = named(condition)
            asks_memory = asks_memory or has_data(own)
            if is_fixed(own):
                size = if_then_else(own, size, const(0, "int64"))
            elif asks_memory:
                return None
            elif isinstance(own, LT) and own.a.dtype.kind == "int" and is_fixed(own.b) and counts(own.a):
                size = Min(size, own.b.astype("int64") - first(own.a).astype("int64"))
            else:
                return None
        if not facts.can_prove(first(target) + count <= _size(store.buffer)):
            return None
        size = facts.simplify(size)
        at = tuple([first(named(index)) for index in store.indices])
        of = tuple([first(named(index)) for index in source.indices])
        copy: Stmt = Evaluate(
            bulk_copy_async(
                address_of(BufferLoad(store.buffer, at)),
                address_of(BufferLoad(source.buffer, of)),
                facts.simplify((size * source.dtype.nbytes).astype("int32")),
                self.barrier,
            )
        )
        ends_inside = first(given).astype("int64") + size <= _size(source.buffer).astype("int64")
        if not facts.can_prove(ends_inside):  # where it begins is checked as every access is
            copy = AssertStmt(ends_inside, StringImm(f"a copy ends outside of {source.buffer.name}"), copy)
        copy = copy if facts.can_prove(size > 0) else IfThenElse(size > 0, copy)
        return _Copy(store.buffer.data, first(target), count, copy)


def _loops_run_once(statement: Stmt) -> Iterator[For]:
    if isinstance(statement, SeqStmt):
        for part in statement.seq:
            yield from _loops_run_once(part)
    elif isinstance(statement, (Allocate, DeclBuffer, AttrStmt, LetStmt)):
        yield from _loops_run_once(statement.body)
    elif isinstance(statement, For):
        yield statement


def _size(buffer: Buffer) -> Expr:
    """The elements from the first to the last."""
    if buffer.strides:
        last = [(extent - 1) * stride for extent, stride in zip(buffer.shape, buffer.strides, strict=True)]
        return reduce(lambda a, b: a + b, last) + 1
    return reduce(lambda a, b: a * b, buffer.shape)


def _terms(condition: Expr) -> list[Expr]:
    return [*_terms(condition.a), *_terms(condition.b)] if isinstance(condition, And) else [condition]


def _flat(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The place of an element in memory that lies row by row."""
    if buffer.strides:
        return reduce(lambda a, b: a + b, [i * s for i, s in zip(indices, buffer.strides, strict=True)])
    return reduce(lambda at, pair: at * pair[1] + pair[0], zip(indices[1:], buffer.shape[1:], strict=True), indices[0])
