"""plain_nest: loops around stores and arithmetic alone, and whether the iterations of one of them share a cell.

What such a nest computes is in its accesses: there are no branches, no calls with effects, no memory of its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.arith import Analyzer, linear_coefficients
from loopwright.codegen.expression_facts import division_can_fail
from loopwright.ir import (
    BinaryExpr,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    Expr,
    FloatImm,
    For,
    ForKind,
    IntImm,
    Node,
    Not,
    Op,
    Select,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    structural_equal,
    uses_var,
)
from loopwright.transform.parts.known_ops import LANE_WISE
from loopwright.transform.parts.memory_strides import Access


class Nest(NamedTuple):
    """What the body of a loop does."""

    accesses: list[Access]
    loops: list[For]
    innermost: list[For]


def read_nest(body: Stmt) -> Nest | None:
    """The accesses and loops of a body made of stores, unmarked loops and lane-wise arithmetic; None of any other."""
    look = _Read()
    try:
        look.visit(body)
    except _NotPlain:
        return None
    return look.nest


class _NotPlain(Exception):
    """The body has a statement or an expression that is better left alone."""


_PLAIN: Final = (BinaryExpr, BufferLoad, BufferStore, Call, Cast, FloatImm, For, IntImm, Not, Select, SeqStmt, Var)


class _Read(Visitor):
    def __init__(self) -> None:
        self.nest = Nest([], [], [])

    def visit_children(self, node: Node) -> None:
        if not isinstance(node, _PLAIN) or (isinstance(node, Expr) and node.dtype.lanes != 1):
            raise _NotPlain
        for child in node.children():
            self.visit(child)

    def visit_For(self, loop: For) -> None:
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED) or loop.annotations:
            raise _NotPlain
        before = len(self.nest.loops)
        self.nest.loops.append(loop)
        self.visit_children(loop)
        if len(self.nest.loops) == before + 1:
            self.nest.innermost.append(loop)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.nest.accesses.append(load)
        self.visit_children(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.nest.accesses.append(store)
        self.visit_children(store)

    def visit_Buffer(self, buffer: Buffer) -> None:
        return

    def visit_BinaryExpr(self, expr: BinaryExpr) -> None:
        if division_can_fail(expr):
            raise _NotPlain
        self.visit_children(expr)

    def visit_Call(self, call: Call) -> None:
        if not isinstance(call.op, Op) or call.op not in LANE_WISE:
            raise _NotPlain
        self.visit_children(call)


def is_parallelizable(nest: Nest, var: Var, facts: Analyzer) -> bool:
    """Whether no cell that is written is touched by two iterations of the loop over `var` around the nest."""
    written = {access.buffer for access in nest.accesses if isinstance(access, BufferStore)}
    memory = {buffer.data for buffer in written}
    by_buffer: dict[Buffer, list[Access]] = {buffer: [] for buffer in written}
    for access in nest.accesses:
        if access.buffer in by_buffer:
            by_buffer[access.buffer].append(access)
        elif access.buffer.data in memory:
            return False  # one memory in two shapes
    if len(memory) != len(written):
        return False
    return all(_is_injective_in(accesses, var, nest.loops, facts) for accesses in by_buffer.values())


def _is_injective_in(accesses: list[Access], var: Var, loops: list[For], facts: Analyzer) -> bool:
    """Whether in some dimension all accesses have one index, in whose values no two iterations overlap."""
    first, *others = accesses
    return any(
        _has_own_range(index, var, loops, facts) and all(_is_same(index, other.indices[k], facts) for other in others)
        for k, index in enumerate(first.indices)
    )


def _has_own_range(index: Expr, var: Var, loops: list[For], facts: Analyzer) -> bool:
    """Whether the index is `step * var + rest`, and the inner loops move `rest` by less than `step`."""
    result = linear_coefficients(index, [var], facts)
    if result is None or not isinstance(result[0][0], IntImm) or result[0][0].value == 0:
        return False
    step, rest = abs(result[0][0].value), result[1]
    inner = [loop for loop in loops if uses_var(rest, lambda used, var=loop.loop_var: used is var)]  # type: ignore[misc]
    if not inner:
        return True
    moved = linear_coefficients(rest, [loop.loop_var for loop in inner], facts)
    if moved is None:
        return False
    span = 0
    for loop, coefficient in zip(inner, moved[0], strict=True):
        if not (isinstance(coefficient, IntImm) and isinstance(loop.extent, IntImm)):
            return False
        span += abs(coefficient.value) * (loop.extent.value - 1)
    return span < step


def _is_same(a: Expr, b: Expr, facts: Analyzer) -> bool:
    return structural_equal(a, b) or facts.can_prove_equal(a, b)
