"""EliminateCommonSubexpr: what is computed twice is computed once.

    add(nn.relu(%x), nn.relu(%x))    →    %0 = nn.relu(%x);  add(%0, %0)

Two calls are the same when their operators, attributes and arguments are: arguments by object, single numbers by value.
Operators that draw random numbers and operators without arguments stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Tuple, TupleGetItem
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.visitor import ExprMutator


class _Share(ExprMutator):
    def __init__(self, skip: Callable[[Call], bool] | None) -> None:
        super().__init__()
        self.skip = skip
        self.seen: dict[object, Expr] = {}

    def visit_call(self, call: Call) -> Expr:
        changed = super().visit_call(call)
        if not isinstance(changed, Call) or not isinstance(changed.op, Op) or not changed.args:
            return changed
        if changed.attrs.stateful or (self.skip is not None and self.skip(changed)):
            return changed
        key = (changed.attrs.key(), *(_identity(arg) for arg in changed.args))
        return self.seen.setdefault(key, changed)

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        changed = super().visit_tuple_getitem(get)
        if not isinstance(changed, TupleGetItem):
            return changed
        return self.seen.setdefault(("field", changed.tuple_value, changed.index), changed)

    def visit_function(self, function: Function) -> Expr:
        # Each function has values of its own: those of one are not there in another.
        outer, self.seen = self.seen, {}
        try:
            return super().visit_function(function)
        finally:
            self.seen = outer

    def visit_if(self, branch: If) -> Expr:
        # What one branch computes is not there in the other, nor after them.
        condition = self.visit(branch.cond)
        outer = self.seen
        result = []
        for part in (branch.true_branch, branch.false_branch):
            self.seen = dict(outer)
            result.append(self.visit(part))
        self.seen = outer
        if condition is branch.cond and result[0] is branch.true_branch and result[1] is branch.false_branch:
            return branch
        return type(branch)(condition, result[0], result[1], branch.span)


def _identity(arg: Expr) -> object:
    if isinstance(arg, Constant) and arg.data.size <= 1:
        return ("constant", arg.data.dtype.name, arg.data.shape, arg.data.tobytes())
    if isinstance(arg, Tuple):
        return ("tuple", *(_identity(field) for field in arg.fields))
    return arg


def EliminateCommonSubexpr(fskip: Callable[[Call], bool] | None = None) -> GraphPass:
    """Compute equal calls once; `fskip(call)` says which to leave alone."""

    def share(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return function if "Primitive" in function.attrs else _Share(fskip).apply(function)

    return GraphPass(share, PassInfo(3, "EliminateCommonSubexpr"))
