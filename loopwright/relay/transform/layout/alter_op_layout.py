"""AlterOpLayout: operators become those that the target computes best, in layouts of their own.

    @register_alter_op_layout("nn.conv2d")
    def alter(attrs, inputs, types, out_type):
        ...                                     an expression in the place of the call, or None

What takes the place has the layout of the call (a change of layout at its end), or is a call whose attributes name
other layouts: its inputs are brought into those, and its result back. Such changes then move on through element-wise
operators (`layouts.py`) until they meet the next, and vanish. The current target is `Target.current()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.types import Type
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.registry import Op, get, having
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.layout.layouts import brought, laid, sink
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.types import same_type

Alter = Callable[[Any, list[Expr], list[Type], Type], Expr | None]  # of the attributes, the arguments, their types
_KEY: Final = "FTVMAlterOpLayout"  # what the operator has it under


def register_alter_op_layout(
    op_name: str, alter_layout: Alter | None = None, level: int = 10
) -> Alter | Callable[[Alter], Alter]:
    """Say what an operator becomes on a target: `alter(attrs, inputs, types, out_type)`; a decorator without one."""

    def enter(alter: Alter) -> Alter:
        get(op_name).set_attr(_KEY, alter, level)
        return alter

    return enter if alter_layout is None else enter(alter_layout)


class _Alter(TypedRewrite):
    def __init__(self, mod: IRModule, alterations: dict[str, Any]) -> None:
        super().__init__(mod)
        self.alterations = alterations

    def rewrite(self, call: Call) -> Expr:
        if is_call(call, "layout_transform"):
            answer = laid(call.args[0])
            if answer is not None and answer.layout == call.attrs.src_layout and answer.source == call.attrs.dst_layout:
                return brought(call.args[0], call.attrs.src_layout, call.attrs.dst_layout)
            return call
        alter = self.alterations.get(call.op.name)
        if alter is not None:
            types = [self.type_of(arg) for arg in call.args]
            result = alter(call.attrs, list(call.args), types, self.type_of(call))
            if result is not None:
                result = self._laid_out(call, result)
                # Its arguments may be changes of layout that undo each other.
                return _meet(result)
        found_place = sink(call, self)
        return call if found_place is None else found_place


    def _laid_out(self, old: Call, new: Expr) -> Expr:
        """The new call with its inputs brought into the layouts that it names, and its result brought back."""
        if not isinstance(new, Call) or not isinstance(new.op, Op) or len(new.args) != len(old.args):
            return new
        before, after = _layouts(old), _layouts(new)
        if before is None or after is None or before == after:
            return new
        pairs = list(zip(before, after, strict=True))
        as_given = [new.args[k] is old.args[k] for k, (one, other) in enumerate(pairs[:-1]) if one != other]
        if not any(as_given) and self._fits(new, self.type_of(old)):
            return new  # it did so itself
        args = [brought(arg, *pair) for arg, pair in zip(new.args, pairs[:-1], strict=False)]
        laid_out = Call(new.op, [*args, *new.args[len(args) :]], new.attrs, new.type_args, new.span)
        return brought(laid_out, after[-1], before[-1])

    def _fits(self, new: Call, wanted: Type) -> bool:
        try:
            return same_type(self.type_of(new), wanted)
        except TypeError:
            return False


def _layouts(call: Call) -> list[str] | None:
    """The layouts of the inputs of an operator that names them, and last that of its result."""
    attrs = call.attrs
    if "data_layout" in attrs and "kernel_layout" in attrs:
        return [attrs.data_layout, attrs.kernel_layout, attrs["out_layout"] or attrs.data_layout]
    if "layout" in attrs and isinstance(attrs["layout"], str):
        return [attrs["layout"], getattr(attrs, "out_layout", "") or attrs["layout"]]
    return None


def _meet(result: Expr) -> Expr:
    """What was made, its changes of layout each with the one before it, as one or none; only what is new is walked."""
    if not isinstance(result, Call) or result.checked_type_ is not None:
        return result
    one = laid(result)
    if one is not None:
        return brought(_meet(one.value), one.source, one.layout)
    args = [_meet(arg) for arg in result.args]
    if all(new is old for new, old in zip(args, result.args, strict=True)):
        return result
    return Call(result.op, args, result.attrs, result.type_args, result.span)


def AlterOpLayout() -> GraphPass:
    """Replace operators by those that were registered for them."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        alterations = having(_KEY)
        return _Alter(mod, alterations).apply(function) if alterations else function

    return GraphPass(change, PassInfo(3, "AlterOpLayout"))
