"""separate_full_tiles: a thread asks once whether all it computes is inside, and then runs without guards.

    for i in T.unroll(2):                          if b * 8 + 4 + 3 < n:
        for j in T.vectorized(4):            →         for i in T.unroll(2):
            if b * 8 + i * 4 + j < n:                      for j in T.vectorized(4):
                B[b * 8 + i * 4 + j] = 0                       B[b * 8 + i * 4 + j] = 0
                                                   else:
                                                       …                                    as it was

Under a guard that differs between lanes a vector is no vector, and a load under a guard waits for it. So it is with a
choice whose other value is a constant: what a sum takes beyond the end of a row. A comparison that is linear in the
loops' variables holds throughout when it holds at the corner where it fails first. Only nests with a vectorized loop
and unrolled loops of several iterations, whose loads are under way together then, are worth the second copy; what waits
at barriers stays one statement.

    for i in T.unroll(8):                          for i in T.unroll(7): s = s + A[i * 32 + tx]
        if i * 32 + tx < 250:                →     if 7 * 32 + tx < 250:
            s = s + A[i * 32 + tx]                     s = s + A[7 * 32 + tx]

Where it is some threads of every block that are not wholly inside, their warps would run both copies, each with the
other threads idle: only the last iteration is guarded then, if all others are inside. At the borders of rows of some
hundred elements, which warp upon warp meets, loads keep their guards.

Needs: loops from 0, no blocks.  Leaves: such nests without guards where all of them hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.analysis.thread_work import has_meeting
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import (
    GE,
    GT,
    LE,
    LT,
    And,
    AttrStmt,
    BufferLoad,
    Call,
    CompareExpr,
    Expr,
    FloorMod,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Let,
    LetStmt,
    PrimFunc,
    Rewriter,
    Stmt,
    Sub,
    Var,
    Visitor,
    any_node,
    any_statement,
    collect,
    const,
    deep,
    logical_and,
    post_order_visit,
    seq,
    substitute,
    uses_var,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.known_ops import IF_THEN_ELSE, LIKELY
from loopwright.transform.parts.statements import StmtRewriter

MAX_NODES: Final = 4_000  # of a nest that is copied
_SEVERAL: Final = 4  # iterations of unrolled loops
_MOST_WARPS: Final = 16  # one of so many may run both copies
_WARP: Final = 32  # threads, on every GPU so far


class _SeparateFullTiles(StmtRewriter):
    def __init__(self) -> None:
        self.facts = Analyzer()
        self.threads: dict[Var, int] = {}  # of a block, by the greatest number

    def visit_For(self, loop: For) -> Stmt:
        if _is_tile(loop):
            return self._separated(loop)
        return self._below(loop)

    def visit_AttrStmt(self, launch: AttrStmt) -> Stmt:
        return self._below(launch)

    def _below(self, node: For | AttrStmt) -> Stmt:
        axis = axis_of(node) if tag_of(node).startswith("threadIdx") else None
        if axis is not None and isinstance(axis.extent, IntImm):
            self.threads[axis.var] = axis.extent.value - 1
        return self.rebuild(node)

    def _separated(self, loop: For) -> Stmt:
        find = _FindGuards(self.facts)
        find.visit(loop)
        if not find.corners:
            return loop
        if self._is_last_guarded(loop, find.corners):
            last = substitute(clone_definitions(loop.body), {loop.loop_var: loop.extent - 1})
            whole = loop.with_(extent=loop.extent - 1)
            return seq([_Without(find.corners).visit(whole), self.visit(last)])
        if any([self._splits_warps(corner) for corner in find.corners.values()]):
            return loop
        condition: Expr | None = None
        for corner in dict.fromkeys(find.corners.values()):
            condition = corner if condition is None else logical_and(condition, corner)
        assert condition is not None
        return IfThenElse(condition, _Without(find.corners).visit(loop), clone_definitions(loop))


    def _is_last_guarded(self, loop: For, guards: Mapping[CompareExpr, Expr]) -> bool:
        """Whether threads of every block are outside in the last iteration, and none in any other."""
        assert isinstance(loop.extent, IntImm)
        if loop.kind is not ForKind.UNROLLED or loop.extent.value < 2:
            return False
        if any([uses_var(corner, lambda var: var not in self.threads) for corner in guards.values()]):
            return False
        others = _FindGuards(self.facts)
        others.last.update(self.threads)
        others.visit(loop.with_(extent=loop.extent - 1))
        found = [others.corners.get(guard) for guard in guards]
        return all([isinstance(corner, IntImm) and bool(corner.value) for corner in found])

    def _splits_warps(self, corner: Expr) -> bool:
        """Whether some thread fails again and again: it is counted from the start of rows that are short."""
        return any(
            [
                isinstance(part.b, IntImm)
                and 1 < part.b.value < _MOST_WARPS * _WARP
                and uses_var(part.a, self.threads.__contains__)
                for part in collect(corner, FloorMod)
            ]
        )


def _is_tile(loop: For) -> bool:
    """Whether it is the outermost of short loops that are worth it."""
    if loop.kind not in (ForKind.UNROLLED, ForKind.VECTORIZED) or not isinstance(loop.extent, IntImm):
        return False
    has_vectors = any_statement(loop, lambda inner: isinstance(inner, For) and inner.kind is ForKind.VECTORIZED)
    if not has_vectors and _unrolled(loop) < _SEVERAL:
        return False
    return not has_meeting(loop) and _size(loop) <= MAX_NODES


def _unrolled(loop: Stmt) -> int:
    """How often unrolled loops that stand right inside each other repeat what is in them."""
    if not isinstance(loop, For) or loop.kind is not ForKind.UNROLLED or not isinstance(loop.extent, IntImm):
        return 1
    return loop.extent.value * _unrolled(loop.body)


def _size(loop: For) -> int:
    count = 0

    def look(_: object) -> None:
        nonlocal count
        count += 1

    post_order_visit(loop, look)
    return count


class _FindGuards(Visitor):
    """The comparisons that guard statements, each with what it is at the corner of the loops where it fails first."""

    def __init__(self, facts: Analyzer) -> None:
        self.facts = facts
        self.last: dict[Var, int] = {}  # loop variables, by their greatest value
        self.bound: set[Var] = set()  # what is known inside only
        self.corners: dict[CompareExpr, Expr] = {}

    def visit_Expr(self, expr: Expr) -> None:
        """Of values, the choices between a load and a constant; what a value names first is not known outside."""
        if any_node(expr, lambda node: isinstance(node, Let)):
            return
        for call in collect(expr, Call):
            if is_guarded_load(call) and uses_var(call.args[0], self.last.__contains__):
                self._note(call.args[0])

    def visit_For(self, loop: For) -> None:
        starts = isinstance(loop.min, IntImm) and loop.min.value == 0
        if starts and isinstance(loop.extent, IntImm) and loop.extent.value > 0:
            self.last[loop.loop_var] = loop.extent.value - 1
        else:
            self.bound.add(loop.loop_var)
        self.visit(loop.body)

    def visit_LetStmt(self, let: LetStmt) -> None:
        self.bound.add(let.var)
        self.visit(let.body)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        if node.else_case is None:
            self._note(node.condition)
        self.visit(node.then_case)
        if node.else_case is not None:
            self.visit(node.else_case)

    def _note(self, condition: Expr) -> None:
        for part in _parts(condition):
            corner = self._corner(part)
            if corner is not None:
                self.corners[part] = corner  # type: ignore[index]

    def _corner(self, part: Expr) -> Expr | None:
        if not isinstance(part, (LT, LE, GT, GE)) or uses_var(part, self.bound.__contains__):
            return None
        if any_node(part, lambda node: isinstance(node, (BufferLoad, Call))):
            return None  # asked before the first iteration, it might see other memory
        variables = [var for var in self.last if uses_var(part, lambda used, own=var: used is own)]  # type: ignore[misc]
        difference = Sub(part.a, part.b) if isinstance(part, (LT, LE)) else Sub(part.b, part.a)
        linear = linear_coefficients(difference, variables, self.facts)
        if linear is None or not all([isinstance(step, IntImm) for step in linear[0]]):
            return None
        corner: dict[Var, Expr] = {}
        for var, step in zip(variables, linear[0], strict=True):
            assert isinstance(step, IntImm)
            corner[var] = const(self.last[var] if step.value > 0 else 0, var.dtype)
        return self.facts.simplify(substitute(part, corner))


def _parts(condition: Expr) -> Sequence[Expr]:
    """The conditions that all have to hold."""
    if isinstance(condition, And):
        return [*_parts(condition.a), *_parts(condition.b)]
    if isinstance(condition, Call) and condition.op is LIKELY:
        return _parts(condition.args[0])
    return [condition]


def is_guarded_load(call: Call) -> bool:
    """Whether it is a choice between what is loaded and a constant."""
    if call.op is not IF_THEN_ELSE or any_node(call.args[2], lambda node: isinstance(node, (BufferLoad, Var))):
        return False
    return any_node(call.args[1], lambda node: isinstance(node, BufferLoad))


class _Without(Rewriter):
    """Leaves the guards out that hold throughout."""

    def __init__(self, holding: Mapping[CompareExpr, Expr]) -> None:
        self.holding = holding

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        node = self.rebuild(node)
        if node.else_case is not None:
            return node
        parts = _parts(node.condition)
        left = [part for part in parts if part not in self.holding]
        if len(left) == len(parts):
            return node
        return node.with_(condition=_joined(left)) if left else node.then_case

    def visit_Call(self, call: Call) -> Expr:
        if not is_guarded_load(call):
            result: Expr = self.rebuild(call)
            return result
        parts = _parts(call.args[0])
        left = [part for part in parts if part not in self.holding]
        value = self.visit(call.args[1])
        if not left:
            return value
        condition = call.args[0] if len(left) == len(parts) else _joined(left)
        return call.with_(args=(condition, value, call.args[2]))


def _joined(conditions: Sequence[Expr]) -> Expr:
    result = conditions[0]
    for condition in conditions[1:]:
        result = logical_and(result, condition)
    return result


@function_pass
@deep
def separate_full_tiles(func: PrimFunc) -> PrimFunc:
    """Nests of vectors and unrolled loops run without guards where all of them hold."""
    return func.with_(body=_SeparateFullTiles().visit(func.body))
