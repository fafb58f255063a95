"""lane_of: what one lane of a vector expression computes, as a scalar expression.

    A[T.Ramp(i, 2, 4)] + T.Broadcast(x, 4), lane 3    →    A[i + 2 * 3] + x

Where a vector's condition guards loads or divisions, they may happen on the lanes where it holds and nowhere else: such
vectors are computed one lane after the other.
"""

from __future__ import annotations

from loopwright import ir
from loopwright.ir.visitor import Rewriter


def lane_of(expr: ir.Expr, lane: int) -> ir.Expr:
    """The scalar that lane number `lane` of `expr` holds; a scalar is its own every lane."""
    result: ir.Expr = _LaneOf(lane).visit(expr)
    return result


class _LaneOf(Rewriter):
    def __init__(self, lane: int) -> None:
        self.lane = lane
        self.scalars: dict[ir.Var, ir.Var] = {}  # of lets of vectors
        self.vectors: dict[ir.Var, ir.Expr] = {}  # what the same lets bind: here, only the scalars have a value

    def visit(self, expr: ir.Expr) -> ir.Expr:
        if expr.dtype.lanes == 1:
            return self._whole(expr)
        lane: ir.Expr = super().visit(expr)
        return lane

    def _whole(self, expr: ir.Expr) -> ir.Expr:
        return ir.substitute(expr, self.vectors) if self.vectors else expr

    def visit_Expr(self, expr: ir.Expr) -> ir.Expr:
        # What has no rule here is computed whole.
        return ir.Shuffle((self._whole(expr),), (ir.const(self.lane),))

    def visit_Var(self, var: ir.Var) -> ir.Expr:
        return self.scalars[var] if var in self.scalars else self.visit_Expr(var)

    def visit_Ramp(self, node: ir.Ramp) -> ir.Expr:
        return self._whole(node.base + node.stride * ir.const(self.lane, node.stride.dtype))

    def visit_Broadcast(self, node: ir.Broadcast) -> ir.Expr:
        return self._whole(node.value)

    def visit_Shuffle(self, node: ir.Shuffle) -> ir.Expr:
        return self._whole(ir.Shuffle(node.vectors, (node.indices[self.lane],)))

    def visit_BufferLoad(self, load: ir.BufferLoad) -> ir.Expr:
        index, each = load.indices[-1], load.buffer.dtype.lanes
        if index.dtype.lanes == 1:  # a vector is the element
            return self.visit_Expr(load)
        location = self.visit(index) if each == 1 else lane_of(self._whole(index), self.lane // each)
        one = ir.BufferLoad(load.buffer, (*[self._whole(other) for other in load.indices[:-1]], location))
        return one if each == 1 else ir.Shuffle((one,), (ir.const(self.lane % each),))

    def visit_Cast(self, node: ir.Cast) -> ir.Expr:
        return ir.Cast(node.dtype.element, self.visit(node.value))

    def visit_Let(self, node: ir.Let) -> ir.Expr:
        lanes = node.value.dtype.lanes
        if lanes == 1:
            return ir.Let(node.var, self._whole(node.value), self.visit(node.body))
        value = self.visit(node.value) if lanes == node.dtype.lanes else None
        self.vectors[node.var] = self._whole(node.value)
        if value is None:  # a vector of another length has no lane of this number
            return self.visit(node.body)
        scalar = self.scalars[node.var] = ir.Var(node.var.name, value.dtype)
        return ir.Let(scalar, value, self.visit(node.body))

    def visit_Call(self, call: ir.Call) -> ir.Expr:
        lanes = call.dtype.lanes
        if any([arg.dtype.lanes not in (1, lanes) for arg in call.args]) or call.args[0].dtype.lanes == 1:
            return self.visit_Expr(call)
        return ir.Call(call.dtype.element, call.op, tuple([self.visit(arg) for arg in call.args]))

    visit_BinaryExpr = visit_Not = visit_Select = Rewriter.rebuild
