"""Bulk copies: loops of a warp that copy what lies side by side in global memory, as one asynchronous copy.

    for k in range(8):                                   →    bytes = min(256, n - b) * 4
        if b + k * 32 + lane < n:                             T.bulk_copy_async(&S[0], &A[b], bytes, barrier)
            S[k * 32 + lane] = A[b + k * 32 + lane]

The lanes of a warp and the iterations count through the elements, one by one. A condition cuts off the end, or holds
for all elements alike.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from loopwright.analysis.thread_axes import scope_of
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
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Min,
    Range,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    const,
    seq,
    substitute,
    uses_var,
)
from loopwright.ir.async_intrinsics import bulk_copy_async
from loopwright.ir.intrinsics import address_of, if_then_else

_LANES: Final = 32


def with_bulk_copies(statement: Stmt, targets: frozenset[Var], thread: Var, begin: int, barrier: Expr) -> Stmt:
    """The statement, with bulk copies for the loops that fill the targets.

    The lanes of one warp run it, the threads from `begin` on.
    """
    if isinstance(statement, SeqStmt):
        return seq([with_bulk_copies(part, targets, thread, begin, barrier) for part in statement.seq])
    if isinstance(statement, (Allocate, DeclBuffer, AttrStmt, LetStmt)):
        return statement.with_(body=with_bulk_copies(statement.body, targets, thread, begin, barrier))
    if isinstance(statement, For):
        copy = _copy(statement, targets, thread, begin, barrier)
        return statement if copy is None else copy
    return statement


def _copy(loop: For, targets: frozenset[Var], thread: Var, begin: int, barrier: Expr) -> Stmt | None:
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
    if store.buffer.data not in targets or scope_of(source.buffer.data) != "global":
        return None
    number = Var("lane", "int32")  # of the lane, in place of what the program calls it
    count = loop.extent.value * _LANES
    facts = Analyzer()
    facts.bind(number, Range(0, _LANES))
    facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))

    def named(expr: Expr) -> Expr:
        return facts.simplify(substitute(expr, {thread: (number + begin).astype(thread.dtype)}))

    def first(expr: Expr) -> Expr:
        zero = {loop.loop_var: const(0, loop.loop_var.dtype), number: const(0, "int32")}
        return facts.simplify(substitute(expr, zero))

    def is_fixed(expr: Expr) -> bool:
        return not uses_var(expr, lambda var: var is number or var is loop.loop_var)

    def counts(expr: Expr) -> bool:
        """Whether the expression is a fixed one plus the number of the element."""
        element = (loop.loop_var * _LANES).astype(expr.dtype) + number.astype(expr.dtype)
        return is_fixed(first(expr)) and facts.can_prove_equal(expr, first(expr) + element)

    target, given = named(_flat(store.buffer, store.indices)), named(_flat(source.buffer, source.indices))
    if not counts(target) or not counts(given):
        return None
    size: Expr = const(count, "int64")
    for condition in conditions:
        own = named(condition)
        if is_fixed(own):
            size = if_then_else(own, size, const(0, "int64"))
        elif isinstance(own, LT) and is_fixed(own.b) and counts(own.a):
            size = Min(size, (own.b - first(own.a)).astype("int64"))
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
            barrier,
        )
    )
    ends_inside = first(given).astype("int64") + size <= _size(source.buffer).astype("int64")
    if not facts.can_prove(ends_inside):  # where it begins is checked as every access is
        copy = AssertStmt(ends_inside, StringImm(f"a copy ends outside of {source.buffer.name}"), copy)
    return copy if facts.can_prove(size > 0) else IfThenElse(size > 0, copy)


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
