"""Tiles: nests of unrolled loops, written out here, and what their copies of a statement share.

    for i, j in T.grid(4, 2):  # unrolled         %base = A + i_0 * lda + k, once
        C[i * 32 + j * 16 : …] += A[…] * B[…]     each A[i], each B[j], once; cells of C at offsets known here

LLVM can write loops out itself. But then each copy computes its addresses from the loops' counters, scalar evolution
looks at all of them, once for each loop of the nest, and what copies share is found by comparing them: half of LLVM's
time. Here the variables of the nest are numbers, an address is one that the whole nest shares and an offset, and a
value is computed once for all the copies that it is the same in.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from loopwright import ir
from loopwright.analysis.effects import is_pure_call
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.codegen.llvm.unrolling import is_worth_unrolling
from loopwright.ir.annotations import ONCE_SCOPE
from loopwright.ir.visitor import Visitor

Key = tuple[ir.Expr, tuple[object, ...]]  # an expression, with the numbers it depends on or the buffer it indexes
_STATEMENTS: Final = (ir.SeqStmt, ir.BufferStore, ir.IfThenElse, ir.Evaluate, ir.LetStmt, ir.DeclBuffer)


def is_tile(loop: ir.For) -> bool:
    """Whether a loop is to be unrolled, and holds nothing but statements and other such loops."""
    if loop.kind is not ir.ForKind.UNROLLED or not isinstance(loop.min, ir.IntImm) or not is_worth_unrolling(loop):
        return False
    return _holds_statements_only(loop.body)


def _holds_statements_only(statement: ir.Stmt) -> bool:
    if isinstance(statement, ir.For):
        return is_tile(statement)
    if isinstance(statement, ir.AttrStmt):
        is_allowed = statement.attr_key != ONCE_SCOPE
    else:
        is_allowed = isinstance(statement, _STATEMENTS)
    return is_allowed and all(
        [_holds_statements_only(child) for child in statement.children() if isinstance(child, ir.Stmt)]
    )


class Place:
    """An index as `rest` + `constant` + the sum of `steps`: variables of the nest with their coefficients."""

    __slots__ = ("constant", "rest", "steps")

    def __init__(self, rest: ir.Expr | None, constant: int, steps: list[tuple[ir.Var, int]]) -> None:
        self.rest, self.constant, self.steps = rest, constant, steps

    def offset(self, numbers: dict[ir.Var, int]) -> int:
        return self.constant + sum([coefficient * numbers[var] for var, coefficient in self.steps])


class Tile:
    """One nest that is written out."""

    def __init__(self, loop: ir.For, apart: Collection[ir.Var], analyzer: Analyzer) -> None:
        """`apart` are the pointers to memory that no other pointer reaches."""
        contents = _Contents()
        contents.visit(loop)
        self._loops = list(contents.loops)
        self._depends = _Depends(contents, apart)
        self._places: dict[ir.Expr, Place | None] = {}
        self._analyzer = analyzer
        self.known: dict[Key, str] = {}
        self.trail: list[Key] = []  # the keys in order, so that what a branch added can be taken out again

    def key(self, expr: ir.Expr, steps: dict[ir.Var, int]) -> Key | None:
        """What names the value of `expr` in this copy; None where it may be another one each time."""
        variables = self._depends.visit(expr)
        return None if variables is None else (expr, tuple([steps[var] for var in variables]))

    def keep(self, key: Key, value: str) -> None:
        self.known[key] = value
        self.trail.append(key)

    def forget(self, mark: int) -> None:
        """Drop what was kept since the trail was that long."""
        for key in self.trail[mark:]:
            del self.known[key]
        del self.trail[mark:]

    def place(self, index: ir.Expr) -> Place | None:
        """Where a scalar index is; None where it is not linear in the variables of the nest."""
        if index not in self._places:
            self._places[index] = self._split(index)
        return self._places[index]

    def _split(self, index: ir.Expr) -> Place | None:
        if self._depends.visit(index) is None:
            return None
        result = linear_coefficients(index, self._loops, self._analyzer)
        if result is None or not all([isinstance(coefficient, ir.IntImm) for coefficient in result[0]]):
            return None
        coefficients = [int(coefficient.value) for coefficient in result[0]]  # type: ignore[attr-defined]
        steps = [(var, number) for var, number in zip(self._loops, coefficients, strict=True) if number]
        rest, constant = _without_constant(result[1])
        return Place(rest, constant, steps)


def _without_constant(base: ir.Expr) -> tuple[ir.Expr | None, int]:
    if isinstance(base, ir.IntImm):
        return None, base.value
    if isinstance(base, (ir.Add, ir.Sub)) and isinstance(base.b, ir.IntImm):
        return base.a, base.b.value if isinstance(base, ir.Add) else -base.b.value
    return base, 0


class _Contents(Visitor):
    """The loops of a nest, the variables bound in it, and the memory it writes to."""

    def __init__(self) -> None:
        self.loops: dict[ir.Var, None] = {}
        self.bound: set[ir.Var] = set()
        self.written: set[ir.Var] = set()
        self.is_pure = True  # but for its stores

    def visit_For(self, loop: ir.For) -> None:
        self.loops[loop.loop_var] = None
        self.visit_children(loop)

    def visit_LetStmt(self, statement: ir.LetStmt) -> None:
        self.bound.add(statement.var)
        self.visit_children(statement)

    def visit_Let(self, let: ir.Let) -> None:
        self.bound.add(let.var)
        self.visit_children(let)

    def visit_BufferStore(self, store: ir.BufferStore) -> None:
        self.written.add(store.buffer.data)
        self.visit_children(store)

    def visit_Call(self, call: ir.Call) -> None:
        self.is_pure = self.is_pure and (is_pure_call(call) or call.op.name == "tir.prefetch")
        self.visit_children(call)


_Variables = tuple[ir.Var, ...] | None


class _Depends(Visitor):
    """The variables of the nest that a value depends on; None where something else may change it."""

    def __init__(self, contents: _Contents, apart: Collection[ir.Var]) -> None:
        self._contents, self._apart = contents, apart
        self._is_apart = contents.is_pure and all([var in apart for var in contents.written])
        self._known: dict[ir.Node, _Variables] = {}

    def visit(self, node: ir.Node) -> _Variables:
        if node in self._known:
            return self._known[node]
        result: _Variables = self._table[type(node)](self, node)
        self._known[node] = result
        return result

    def visit_children(self, node: ir.Node) -> _Variables:
        used: dict[ir.Var, None] = {}
        for child in node.children():
            variables = self.visit(child)
            if variables is None:
                return None
            used.update(dict.fromkeys(variables))
        return tuple(used)

    def visit_Var(self, var: ir.Var) -> _Variables:
        if var in self._contents.bound:
            return None
        return (var,) if var in self._contents.loops else ()

    def visit_Let(self, let: ir.Let) -> _Variables:
        return None

    def visit_BufferLoad(self, load: ir.BufferLoad) -> _Variables:
        data = load.buffer.data
        is_read_only = data not in self._contents.written and (
            self._is_apart or (self._contents.is_pure and data in self._apart)
        )
        return self.visit_children(load) if is_read_only else None

    def visit_Call(self, call: ir.Call) -> _Variables:
        is_same = isinstance(call.op, ir.Op) and is_pure_call(call) and "extern" not in call.op.name
        return self.visit_children(call) if is_same else None
