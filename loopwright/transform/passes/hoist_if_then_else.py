"""hoist_if_then_else: a branch that a loop's iterations agree on is taken once, before the loop.

    for i in range(8):            →    for i in range(8):
        for j in range(8):                 if i < n:
            if i < n:                          for j in range(8):
                B[i, j] = A[i, j]                  B[i, j] = A[i, j]

The branch must be all that the loop does, its condition must not depend on the loop, and asking it where the loop has
no iterations must do no harm: conditions that read memory or divide stay, and those whose numbers may leave 64 bits.

Needs: no blocks.  Leaves: no loop whose body is a branch that could stand outside.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.arith.linear import is_index
from loopwright.ir import (
    DataType,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Node,
    PrimFunc,
    Stmt,
    Var,
    any_node,
    deep,
    uses_var,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.purity import can_fail
from loopwright.transform.parts.statements import StmtRewriter


class HoistIfThenElse(StmtRewriter):
    """Moves branches out of loops, one loop at a time, innermost first."""

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        branch = loop.body
        if not isinstance(branch, IfThenElse) or loop.kind is ForKind.THREAD_BINDING:
            return loop
        if _depends(branch, loop.loop_var) or can_fail(branch.condition):
            return loop
        if not (isinstance(loop.extent, IntImm) and loop.extent.value > 0) and not _stays_small(branch.condition):
            return loop
        then_case = loop.with_(body=branch.then_case)
        if branch.else_case is None:
            return branch.with_(then_case=then_case)
        return branch.with_(then_case=then_case, else_case=clone_definitions(loop.with_(body=branch.else_case)))


def _depends(branch: IfThenElse, var: Var) -> bool:
    return uses_var(branch.condition, lambda used: used is var)


def _stays_small(condition: Expr) -> bool:
    """Whether all numbers in a condition stay within 64 bits: one that does not has no result."""
    facts, widest = Analyzer(), DataType("int64")

    def leaves(node: Node) -> bool:
        if not isinstance(node, Expr) or not is_index(node.dtype):
            return False
        low, high = facts.interval(node)
        return low < widest.lowest or high > widest.highest

    return not any_node(condition, leaves)


@function_pass
@deep
def hoist_if_then_else(func: PrimFunc) -> PrimFunc:
    """A branch that a loop's iterations agree on is taken once, before the loop."""
    return func.with_(body=HoistIfThenElse().visit(func.body))
