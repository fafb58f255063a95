"""Intrinsic rules: how calls of an operator become other expressions, target by target.

    @register_intrin_lowering("tir.exp", target="c")
    def exp_in_c(call):
        return call_pure_extern(call.dtype, "expf", *call.args) if call.dtype == "float32" else None

A rule takes the call and returns the expression that replaces it, or None where it does not apply. Rules are looked up
under the kind of the target ("llvm", "c"), then under its keys ("cpu", "arm_cpu"), then under "default"; of several
rules for one key the one of the highest level counts. `transform/passes/lower_intrinsics.py` applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from loopwright.ir.expr import Call, Callee, Expr
from loopwright.ir.op import Op, user_op
from loopwright.runtime.errors import LoopwrightError

Rule = Callable[[Call], Expr | None]

_SUFFIX: Final = ".FLowerIntrin"  # a rule is the operator's attribute "llvm.FLowerIntrin", as scripts know it
_OLD_LEVEL: Final = 10


class RuleExists(LoopwrightError, ValueError):
    """An intrinsic rule was registered for a target that has one already, without `override=True`.

    For example:

        # needs a process of its own
        from loopwright import ir

        ir.register_intrin_rule("llvm", "twice", lambda call: call.args[0] * 2)
        ir.register_intrin_rule("llvm", "twice", lambda call: call.args[0] + call.args[0])
    """

    code = "LW0530"

    def __init__(self, name: str, target: str) -> None:
        super().__init__(
            f"{name} has an intrinsic rule for target {target!r} already",
            hint="pass override=True to replace it, or use register_intrin_lowering with a higher level",
            fields={"op": name, "target": target},
        )


class NotARule(LoopwrightError, TypeError):
    """What was registered as an intrinsic rule cannot be called: a rule is a function from call to expression.

    For example:

        from loopwright import ir

        ir.register_intrin_lowering("tir.exp", target="llvm", f="expf")
    """

    code = "LW0531"

    def __init__(self, name: str, given: object) -> None:
        super().__init__(
            f"the intrinsic rule of {name} is {type(given).__name__} {given!r}, which cannot be called",
            hint='give a function such as lambda call: tir.call_pure_extern(call.dtype, "expf", *call.args)',
        )


class BadRuleResult(LoopwrightError, TypeError):
    """An intrinsic rule returned something that cannot stand where the call stood.

    A rule returns an expression of the call's own data type, or None where it does not apply.

    For example:

        # needs a process of its own
        import loopwright as lw
        from loopwright import ir, te, tir

        ir.register_op_attr("tir.wrong", "TCallEffectKind", tir.CallEffectKind.Pure)
        ir.register_intrin_lowering("tir.wrong", target="default", f=lambda call: call.args[0].astype("int32"))
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: tir.call_intrin("float32", "tir.wrong", A[i]), name="B")
        lw.lower(te.create_prim_func([A, B]), target="llvm")
    """

    code = "LW0532"

    def __init__(self, call: Call, result: object) -> None:
        what = f"a value of type {result.dtype}" if isinstance(result, Expr) else f"{type(result).__name__} {result!r}"
        super().__init__(
            f"the intrinsic rule of {call.op.name} returned {what} for a call of type {call.dtype}",
            at=call,
            hint=f"return an expression of type {call.dtype}, or None where the rule does not apply",
            fields={"op": call.op.name, "wanted": call.dtype},
        )


class NoIntrinsicRule(LoopwrightError, NotImplementedError):
    """A program calls an operator of the user's own that has no rule for the target it is lowered for.

    Loopwright knows how to compute its own operators; what a new one means is said by a rule, for a target kind or for
    "default", which every target falls back to.

    For example:

        # needs a process of its own
        import loopwright as lw
        from loopwright import ir, te, tir

        ir.register_op_attr("tir.mystery", "TCallEffectKind", tir.CallEffectKind.Pure)
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: tir.call_intrin("float32", "tir.mystery", A[i]), name="B")
        lw.lower(te.create_prim_func([A, B]), target="llvm")
    """

    code = "LW0533"

    def __init__(self, call: Call, kind: str) -> None:
        have = rule_targets(call.op)
        declined = kind in have or "default" in have
        super().__init__(
            f"operator {call.op.name} has no intrinsic rule for target kind {kind!r}"
            + (", since its rule returned None" if declined else ""),
            at=call,
            why=f"it has rules for {', '.join(have)}" if have else None,
            hint=f'ir.register_intrin_lowering("{call.op.name}", target="{kind}", f=rule) gives it one; '
            'target="default" serves every target',
            fields={"op": call.op.name, "kind": kind, "targets": have},
        )


def register_intrin_lowering(
    op_name: str, target: str, *, f: Rule | None = None, level: int = 10
) -> Rule | Callable[[Rule], Rule]:
    """Have calls of `op_name` replaced by `f(call)` on a target kind, or, with "default", on all; also a decorator.

    An operator that does not exist yet is made; its calls may then do anything, until `TCallEffectKind` says less.
    """

    def attach(rule: Rule) -> Rule:
        if not callable(rule):
            raise NotARule(op_name, rule)
        user_op(op_name).set_attr(target + _SUFFIX, rule, level)
        return rule

    return attach(f) if f is not None else attach


def register_intrin_rule(
    target: str, intrin: str, f: Rule | None = None, override: bool = False
) -> Rule | Callable[[Rule], Rule]:
    """The older spelling: the target first, the operator without its `tir.`; also a decorator."""
    name = intrin if intrin.startswith("tir.") else f"tir.{intrin}"
    if not override and name in Op.registry and Op.registry[name].has_attr(target + _SUFFIX):
        raise RuleExists(name, target)
    result = Op.attribute_tables.get(target + _SUFFIX, {}).get(name)
    level = _OLD_LEVEL if result is None else max(_OLD_LEVEL, result[0])  # so that the new rule counts
    return register_intrin_lowering(name, target, f=f, level=level)


def rules_for(op: Callee, kinds: Iterable[str]) -> list[Rule]:
    """The rules that may apply to calls of `op`, first choice first."""
    if not isinstance(op, Op):
        return []
    result = [op.get_attr(kind + _SUFFIX) for kind in kinds]
    return [rule for rule in result if rule is not None]


def rule_targets(op: Callee) -> list[str]:
    """The target kinds for which the operator has a rule."""
    return sorted(
        key.removesuffix(_SUFFIX)
        for key, table in Op.attribute_tables.items()
        if key.endswith(_SUFFIX) and op.name in table
    )


def has_rules(kinds: Sequence[str]) -> bool:
    """Whether any operator has a rule for one of the kinds."""
    return any(Op.attribute_tables.get(kind + _SUFFIX) for kind in kinds)


def apply_rules(call: Call, kinds: Iterable[str]) -> Expr | None:
    """What the first rule that applies makes of the call; None when none does."""
    for rule in rules_for(call.op, kinds):
        result = rule(call)
        if result is None or result is call:
            continue
        if not isinstance(result, Expr) or result.dtype is not call.dtype:
            raise BadRuleResult(call, result)
        return result
    return None
