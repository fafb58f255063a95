"""SimplifyExpr: expressions in their simplest form.

    reshape(reshape(%x, newshape=(6, 4)), newshape=(24))    →    reshape(%x, newshape=(24))
    %x * 1f + 0f                                            →    %x

The rules are in `rules/`, by kind: movement, likeness, arithmetic, single elements, casts. They are applied to each
call, after its arguments, as long as one has something to say.
"""

from __future__ import annotations

import importlib

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.simplify.rules.rule import RULES
from loopwright.relay.transform.typed_rewrite import TypedRewrite

for _file in ("movement", "likeness", "arithmetic", "single_elements", "casts"):
    importlib.import_module(f"loopwright.relay.transform.simplify.rules.{_file}")

# Every rule makes a graph smaller or nearer to its simplest form; a chain this long is a mistake in the rules.
_MOST_STEPS = 100
_AFTER_LAYOUTS = ("transpose", "layout_transform", "reshape", "squeeze", "expand_dims")


class _Simplify(TypedRewrite):
    def __init__(self, mod: IRModule, only: tuple[str, ...] = ()) -> None:
        super().__init__(mod)
        self.only = only

    def rewrite(self, call: Call) -> Expr:
        current: Expr = call
        for _ in range(_MOST_STEPS):
            changed = self._step(current)
            if changed is None:
                return current
            current = changed
        raise AssertionError(f"the rules of SimplifyExpr do not come to an end at {call.op.name}")

    def _step(self, call: Expr) -> Expr | None:
        if not isinstance(call, Call) or not isinstance(call.op, Op) or (self.only and call.op.name not in self.only):
            return None
        # A call that a rule made may have arguments that a rule made: those first.
        args = [self.visit(arg) if arg.checked_type_ is None else arg for arg in call.args]
        if any(new is not old for new, old in zip(args, call.args, strict=True)):
            return Call(call.op, args, call.attrs, call.type_args, call.span)
        for each in RULES.get(call.op.name, ()):
            result = each(call, self)
            if result is not None and result is not call:
                return result
        return None


def SimplifyExpr() -> GraphPass:
    """Bring expressions into their simplest form."""

    def simplify(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Simplify(mod).apply(function)

    return GraphPass(simplify, PassInfo(0, "SimplifyExpr"))


def SimplifyExprPostAlterOp() -> GraphPass:
    """The rules about the places of elements alone, for after layouts were changed."""

    def simplify(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Simplify(mod, _AFTER_LAYOUTS).apply(function)

    return GraphPass(simplify, PassInfo(0, "SimplifyExprPostAlterOp"))
