"""Facts about expressions that decide how they are computed; each is found out once a node.

Programs share nodes, and choices nest thousands deep: walking a whole expression at every level would take for ever.
"""

from __future__ import annotations

from loopwright import ir
from loopwright.analysis.effects import is_pure_call
from loopwright.ir.visitor import Visitor


def division_can_fail(node: ir.BinaryExpr) -> bool:
    """Whether it is an integer division that has no result for some operands: by 0, or the least number by -1."""
    if not isinstance(node, (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod)) or node.dtype.is_float:
        return False
    divisor = node.b.value if isinstance(node.b, ir.Broadcast) else node.b
    return not isinstance(divisor, ir.IntImm) or divisor.value in (0, -1)


class _Fact(Visitor):
    """A yes or no about every node."""

    def __init__(self) -> None:
        self._known: dict[ir.Node, bool] = {}

    def visit(self, node: ir.Node) -> bool:
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._table[type(node)](self, node)
        return known


class Speculatable(_Fact):
    """Whether computing an expression where it is not needed does no harm: no loads, no faults, no effects."""

    def visit_children(self, node: ir.Node) -> bool:
        # No `all(…)`: a generator would recurse through C.
        for child in node.children():  # noqa: SIM110
            if not self.visit(child):
                return False
        return True

    def visit_BufferLoad(self, load: ir.BufferLoad) -> bool:
        return False

    def visit_BinaryExpr(self, node: ir.BinaryExpr) -> bool:
        return not division_can_fail(node) and self.visit_children(node)

    def visit_Call(self, call: ir.Call) -> bool:
        harmless = is_pure_call(call) and "extern" not in call.op.name
        return harmless and self.visit_children(call)


class FromMemory(_Fact):
    """Whether an expression holds data: what was loaded or came from a call. Data may wrap around, indices do not."""

    def __init__(self) -> None:
        super().__init__()
        self._variables: set[ir.Var] = set()

    def bind(self, var: ir.Var, value: ir.Expr) -> None:
        """`var` stands for `value`."""
        if self.visit(value):
            self._variables.add(var)

    def visit_children(self, node: ir.Node) -> bool:
        for child in node.children():  # noqa: SIM110
            if self.visit(child):
                return True
        return False

    def visit_Var(self, var: ir.Var) -> bool:
        return var in self._variables

    def visit_BufferLoad(self, load: ir.BufferLoad) -> bool:
        return True

    def visit_Call(self, call: ir.Call) -> bool:
        return not is_pure_call(call) or self.visit_children(call)

    def visit_Let(self, let: ir.Let) -> bool:
        self.bind(let.var, let.value)
        return self.visit(let.body)
