"""unroll_and_jam: some iterations of an outer loop are done together, in the innermost place.

    for i in range(8):                     →     for i_0 in range(4):
        for k in range(16):                          for k in range(16):
            with T.block("C"): …  vi = i                 for i_1 in T.unroll(2):
                                                             with T.block("C"): …  vi = i_0 * 2 + i_1

Here `unroll_and_jam(i, 2)`: what the inner loop loads for one iteration of `i` serves the others as well. Every block
below gets an unrolled loop of its own. Proved: every read sees the value it saw before.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import (
    BlockRealize,
    Expr,
    For,
    ForKind,
    Node,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    const,
    seq,
    substitute,
    uses_var,
)
from loopwright.ir.intrinsics import ceildiv
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.rewrite.bindings import guard_blocks, rebind
from loopwright.schedule.rewrite.plain_loops import check_plain, value_at
from loopwright.schedule.rewrite.sizes import check_countable
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View


def unroll_and_jam(view: View, loop: For, factor: int) -> Step:
    """Do `factor` iterations of `loop` together around each block below it; gives the outer loop and the inner ones."""
    check_plain("unroll_and_jam", view, loop, from_zero=False)
    if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
        raise BadStepArgument("unroll_and_jam", f"factor is {factor!r}", loop, "give a number of at least 1")
    path = view.loop_path(loop.loop_var)
    dtype, name = loop.loop_var.dtype, loop.loop_var.name
    facts = Analyzer()
    check_countable("unroll_and_jam", view.function, loop, [factor])
    size = const(factor, dtype)
    zero, trips = const(0, dtype), facts.simplify(ceildiv(loop.extent, size))
    outer = loop.with_(loop_var=Var(f"{name}_0", dtype), min=zero, extent=trips)
    inner = For(Var(f"{name}_1", dtype), zero, size, ForKind.UNROLLED, loop.body)
    index = outer.loop_var * size + inner.loop_var
    body = rebind(loop.body, {loop.loop_var: value_at(loop, index)}, [*view.all_loops_above(path[:-1]), outer, inner])
    if not facts.can_prove_equal(outer.extent * size, loop.extent):
        body = guard_blocks(body, index < loop.extent)
    jam = _Jam(inner)
    body = jam.visit(body)
    result = [outer.loop_var, *jam.made]
    return Step(
        view.replaced(path, outer.with_(body=body)),
        Proof.VALUES,
        results=[LoopResult(var) for var in result],
        several=True,
        at=loop,
    )


class _Jam(Rewriter):
    """Puts a loop around every block, with a variable of its own."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.made: list[Var] = []

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        var = Var(self.loop.loop_var.name, self.loop.loop_var.dtype)
        self.made.append(var)
        return self.loop.with_(loop_var=var, body=substitute(realize, {self.loop.loop_var: var}))

    def visit_For(self, loop: For) -> Stmt:
        self._check(loop, loop.min, loop.extent)
        return loop.with_(body=self.visit(loop.body))

    def visit_SeqStmt(self, statements: SeqStmt) -> Stmt:
        return seq([self.visit(statement) for statement in statements.seq])

    def visit_Stmt(self, statement: Stmt) -> Stmt:
        problem = f"a {type(statement).__name__} stands between loop {self.loop.loop_var.name[:-2]} and its blocks"
        raise NotSupported("unroll_and_jam", problem, statement, "it works on loops and blocks only")

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr

    def _check(self, at: Node, *bounds: Expr) -> None:
        if any([uses_var(bound, {self.loop.loop_var}.__contains__) for bound in bounds]):
            problem = f"the bounds of an inner loop depend on {self.loop.loop_var.name[:-2]}"
            raise NotSupported("unroll_and_jam", problem, at)
