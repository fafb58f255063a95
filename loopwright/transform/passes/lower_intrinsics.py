"""lower_intrinsics: calls of operators become what their rules for this target say.

    B[i] = T.call_intrin("float32", "tir.mylog", A[i])      →    B[i] = T.call_pure_extern("float32", "logf", A[i])

Rules come from users (`ir.register_intrin_lowering`): for operators of their own, and for ours where they want another
computation. What a rule returns is program like any other: calls in it are lowered in turn, except those of the
operator whose rule made it, which are meant as they stand; later passes legalize, fuse and vectorize it.

Needs: nothing.  Leaves: no call that a rule for the target applies to, and no operator that only a user knows.
"""

from __future__ import annotations

from loopwright.ir import Call, Expr, Op, PrimFunc, Rewriter, deep
from loopwright.ir.intrinsic_rules import NoIntrinsicRule, apply_rules, has_rules
from loopwright.ir.passes import function_pass
from loopwright.ir.sharing import bind_large
from loopwright.transform.parts.cpu_of import target_of


class _LowerIntrinsics(Rewriter, memo=True):
    def __init__(self, kinds: tuple[str, ...], inside: frozenset[Op] = frozenset()) -> None:
        self.kinds = kinds
        self.inside = inside  # operators whose rules made the expression that is walked

    def visit_Call(self, call: Call) -> Expr:
        call = self.rebuild(call)
        op = call.op
        if not isinstance(op, Op):
            return call
        answer = None if op in self.inside else apply_rules(call, self.kinds)
        if answer is None:
            if op.name in Op.of_users:
                raise NoIntrinsicRule(call, self.kinds[0])
            return call
        built = _LowerIntrinsics(self.kinds, self.inside | {op})
        built._memo.update({argument: argument for argument in call.args})  # lowered already
        result: Expr = built.visit(answer)
        return result


@function_pass
@deep
def lower_intrinsics(func: PrimFunc) -> PrimFunc:
    """Calls of operators become what their rules for this target say."""
    kinds = _kinds(func)
    if not has_rules(kinds) and not Op.of_users:
        return func
    # A rule may use its argument several times; nested, that doubles at every level.
    return func.with_(body=bind_large(_LowerIntrinsics(kinds).visit(func.body)))


def _kinds(func: PrimFunc) -> tuple[str, ...]:
    """Where rules are looked up: the kind of the function's target, its keys, then what serves all."""
    target = target_of(func)
    return tuple(dict.fromkeys([str(target.kind), *target.keys, "default"]))
