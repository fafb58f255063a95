"""Own uses: where a block uses its axes other than to find cells.

    C[i, j] = if_then_else(i < 3, A[i, j], B[i - 3, j]) * j        i is compared, j is computed with

A condition that compares one axis with something fixed is decided by cutting a loop (`partition_loops`), also after the
axis was fused with those inside it. An axis that is computed with becomes quotients and remainders by fusing.
"""

from __future__ import annotations

from typing import NamedTuple

from loopwright.arith.affine_reader import Affine
from loopwright.autosched.facts import BlockFacts
from loopwright.ir import BufferLoad, BufferStore, CompareExpr, Var, Visitor


class OwnUses(NamedTuple):
    """The axes that are compared with something fixed, and those that are computed with."""

    compared: frozenset[Var]
    computed: frozenset[Var]


def own_uses(facts: BlockFacts) -> OwnUses:
    """How conditions and values of a block use its axes."""
    look = _Look({axis.var for axis in facts.axes})
    look.visit(facts.block.body)
    return OwnUses(frozenset(look.compared), frozenset(look.computed))


class _Look(Visitor):
    def __init__(self, axes: set[Var]) -> None:
        self.axes = axes
        self.affine = Affine()
        for axis in axes:
            self.affine.own(axis)
        self.compared: set[Var] = set()
        self.computed: set[Var] = set()

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        """An index is what axes are for."""

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit(store.value)

    def visit_CompareExpr(self, expr: CompareExpr) -> None:
        low, high = self.affine.form(expr.a), self.affine.form(expr.b)
        difference = None if low is None or high is None else low.plus(high, -1)
        used = set() if difference is None else difference.variables() & self.axes
        if difference is not None and not difference.parts() and len(used) == 1:
            self.compared |= used
        else:
            self.visit_children(expr)

    def visit_Var(self, var: Var) -> None:
        if var in self.axes:
            self.computed.add(var)
