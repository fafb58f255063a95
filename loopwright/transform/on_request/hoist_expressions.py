"""hoist_expressions: what a loop computes anew in every iteration, though it does not change, is computed before it.

    for i in range(8):                          →    x = T.exp(a + b)
        B[i] = A[i] * T.exp(a + b)                   for i in range(8):
                                                         B[i] = A[i] * x

Lets and branches that do not depend on the loop move out as well (`hoist_if_then_else.py`). What reads memory, divides
by a variable or has an effect stays: the loop may have no iterations. LLVM does this by itself, so the pipeline does
not run it; C compilers do, too, but a reader of the source may like it. `tir.HoistExpression` may leave lets
(`hoisted_let_bindings=0`) or branches (`hoisted_conditionals=0`) where they are.

Needs: no blocks.  Leaves: no such expression in a loop.
"""

from __future__ import annotations

from loopwright.arith.structure import Structure
from loopwright.ir import (
    AttrStmt,
    BinaryExpr,
    Buffer,
    Call,
    Cast,
    Expr,
    For,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    Node,
    Not,
    PrimFunc,
    Rewriter,
    Select,
    Stmt,
    Var,
    deep,
    pre_order_visit,
    uses_var,
)
from loopwright.ir.pass_config import HoistExpressionConfig
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.known_ops import LIKELY
from loopwright.transform.parts.purity import can_fail
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.passes.hoist_if_then_else import HoistIfThenElse


class _HoistExpressions(StmtRewriter):
    def __init__(self, config: HoistExpressionConfig) -> None:
        self.config = config

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        if isinstance(loop.extent, IntImm) and loop.extent.value <= 1:
            return loop
        lets: list[tuple[Var, Expr]] = []
        body = loop.body
        if self.config.hoisted_let_bindings:
            while isinstance(body, LetStmt) and not _depends(body.value, loop.loop_var) and not can_fail(body.value):
                lets.append((body.var, body.value))
                body = body.body
        extract = _Extract(_defined_in(loop.with_(body=body)))
        result: Stmt = loop.with_(body=extract.visit(body))
        for var, value in reversed([*lets, *extract.lets]):
            result = LetStmt(var, value, result)
        return result


def _depends(value: Expr, var: Var) -> bool:
    return uses_var(value, lambda used: used is var)


def _defined_in(loop: For) -> set[Var]:
    result = {loop.loop_var}

    def look(node: Node) -> None:
        if isinstance(node, For):
            result.add(node.loop_var)
        elif isinstance(node, (LetStmt, Let)):
            result.add(node.var)
        elif isinstance(node, AttrStmt) and isinstance(node.node, IterVar):
            result.add(node.node.var)  # a thread that is launched inside

    pre_order_visit(loop.body, look)
    return result


class _Extract(Rewriter):
    """Replaces the largest expressions that use nothing defined in the loop."""

    def __init__(self, inside: set[Var]) -> None:
        self.inside = inside
        self.lets: list[tuple[Var, Expr]] = []
        self.structure = Structure()
        self.known: dict[int, Var] = {}

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def _expr(self, expr: Expr) -> Expr:
        if not self._moves(expr):
            return self.rebuild(expr)
        number = self.structure.number(expr)
        if number not in self.known:
            self.known[number] = Var("hoisted", expr.dtype)
            self.lets.append((self.known[number], expr))
        return self.known[number]

    visit_BinaryExpr = visit_Cast = visit_Select = visit_Not = visit_Call = _expr

    def _moves(self, expr: Expr) -> bool:
        if not isinstance(expr, (BinaryExpr, Cast, Select, Not, Call)) or expr.dtype.kind in ("handle", "void"):
            return False
        if isinstance(expr, Call) and expr.op is LIKELY:
            return False
        if isinstance(expr, Cast) and isinstance(expr.value, (Var, IntImm)):
            return False  # it costs nothing, and what it is a cast of is plain to see
        return not can_fail(expr) and not uses_var(expr, self.inside.__contains__)


@function_pass
@deep
def hoist_expressions(func: PrimFunc) -> PrimFunc:
    """What a loop computes anew in every iteration, though it does not change, is computed before it."""
    config = PassContext.current().setting("tir.HoistExpression")
    body: Stmt = func.body
    if config.hoisted_conditionals:
        body = HoistIfThenElse().visit(body)
    return func.with_(body=_HoistExpressions(config).visit(body))
