"""common_subexpressions: what a statement computes twice is computed once.

    B[i * 8 + j] = A[i * 8 + j] * A[i * 8 + j]    →    s = i * 8 + j
                                                       s_1 = A[s]
                                                       B[s] = s_1 * s_1

Larger parts first. Neighbouring stores share what reads no memory (the store before may have changed it). What is
computed only under a condition, and could do harm elsewhere (a load, a division by a variable), is shared only if it
is computed anyway. LLVM does this by itself, so the pipeline does not run it. The setting `tir.disable_cse_tir` leaves
all as it is.

Needs: nothing.  Leaves: lets around stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.arith.structure import Structure
from loopwright.ir import (
    And,
    BinaryExpr,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    Expr,
    Let,
    LetStmt,
    Node,
    Not,
    Or,
    PrimFunc,
    Rewriter,
    Select,
    SeqStmt,
    Stmt,
    Var,
    deep,
    seq,
    uses_var,
)
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.known_ops import ADDRESS_OF, IF_THEN_ELSE
from loopwright.transform.parts.purity import can_fail, is_pure
from loopwright.transform.parts.statements import StmtRewriter


class _Part(NamedTuple):
    """A subexpression: how often it is there, of how many nodes, and whether it is computed whatever happens."""

    expr: Expr
    times: int
    size: int
    always: bool


class _Count:
    """The parts of some expressions, by structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.parts: dict[int, _Part] = {}
        self.bound: set[Var] = set()

    def walk(self, expr: Expr, always: bool) -> int:
        size = 1
        if isinstance(expr, Let):
            self.bound.add(expr.var)
        children: list[tuple[Expr, bool]] = []
        if isinstance(expr, (And, Or)):
            children = [(expr.a, always), (expr.b, False)]
        elif isinstance(expr, Call) and expr.op is IF_THEN_ELSE:
            children = [(argument, always and index == 0) for index, argument in enumerate(expr.args)]
        elif isinstance(expr, Call) and expr.op is ADDRESS_OF and isinstance(expr.args[0], BufferLoad):
            children = [(index, always) for index in expr.args[0].indices]
        else:
            result: list[Node] = []
            expr.each_child(result.append)
            children = [(child, always) for child in result if isinstance(child, Expr)]
        for child, surely in children:
            size += self.walk(child, surely)
        if _can_be_shared(expr):
            number = self.structure.number(expr)
            known = self.parts.get(number)
            times = 1 if known is None else known.times + 1
            self.parts[number] = _Part(expr, times, size, always or (known is not None and known.always))
        return size


def _can_be_shared(expr: Expr) -> bool:
    if not isinstance(expr, (BinaryExpr, Cast, Select, Not, Call, BufferLoad)):
        return False
    return expr.dtype.kind not in ("handle", "void") and is_pure(expr)


class _Replace(Rewriter):
    def __init__(self, structure: Structure, number: int, var: Var) -> None:
        self.structure, self.number, self.var = structure, number, var

    def _expr(self, expr: Expr) -> Expr:
        return self.var if self.structure.number(expr) == self.number else self.rebuild(expr)

    visit_BinaryExpr = visit_Cast = visit_Select = visit_Not = visit_BufferLoad = _expr

    def visit_Call(self, call: Call) -> Expr:
        if call.op is ADDRESS_OF and isinstance(call.args[0], BufferLoad):
            load = self.rebuild(call.args[0])
            return call if load is call.args[0] else call.with_(args=(load,))
        return self._expr(call)


def _shared(statements: Sequence[BufferStore], with_loads: bool) -> tuple[list[tuple[Var, Expr]], list[BufferStore]]:
    """Lets for what the stores compute more than once, and the stores that use them."""
    lets: list[tuple[Var, Expr]] = []
    stores = list(statements)
    if any(not is_pure(store.value) for store in stores):
        return lets, stores
    structure = Structure()
    while True:
        count = _Count(structure)
        for store in stores:
            for index in store.indices:
                count.walk(index, True)
            count.walk(store.value, True)
        for _, value in lets:
            count.walk(value, True)
        best: tuple[int, _Part] | None = None
        for number, part in count.parts.items():
            if part.times < 2 or (best is not None and part.size <= best[1].size):
                continue
            if uses_var(part.expr, count.bound.__contains__):
                continue
            if can_fail(part.expr) and not (with_loads and part.always):
                continue
            if any(uses_var(part.expr, lambda used, var=var: used is var) for var, _ in lets):  # type: ignore[misc]
                continue
            best = number, part
        if best is None:
            return lets, stores
        var = Var("s", best[1].expr.dtype)
        replace = _Replace(structure, best[0], var)
        stores = [replace.visit(store) for store in stores]
        lets = [(var, best[1].expr), *[(name, replace.visit(value)) for name, value in lets]]


class _CommonSubexpressions(StmtRewriter):
    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        lets, stores = _shared([store], True)
        return _around(lets, stores[0])

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        parts: list[Stmt] = []
        run: list[BufferStore] = []
        for part in (*node.seq, None):
            if isinstance(part, BufferStore):
                run.append(part)
                continue
            parts += self._run(run)
            run = []
            if part is not None:
                parts.append(self.visit(part))
        if len(parts) == len(node.seq) and all(new is old for new, old in zip(parts, node.seq, strict=True)):
            return node
        return seq(parts)

    def _run(self, run: Sequence[BufferStore]) -> list[Stmt]:
        """Stores one after the other: first what they share, then what each repeats."""
        if len(run) < 2:
            return [self.visit(store) for store in run]
        lets, stores = _shared(run, False)
        each = [self.visit_BufferStore(store) for store in stores]
        return [_around(lets, seq(each))] if lets else each


def _around(lets: Sequence[tuple[Var, Expr]], statement: Stmt) -> Stmt:
    for var, value in reversed(lets):
        statement = LetStmt(var, value, statement)
    return statement


@function_pass
@deep
def common_subexpressions(func: PrimFunc) -> PrimFunc:
    """What a statement computes twice is computed once."""
    if PassContext.current().setting("tir.disable_cse_tir"):
        return func
    return func.with_(body=_CommonSubexpressions().visit(func.body))
