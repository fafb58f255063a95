"""typed_rewrite: what rewrites of single operators share.

    class _Drop(TypedRewrite):
        def rewrite(self, call):                    # a call of an operator, its arguments rewritten already
            return call.args[0] if call.op.name == "copy" else call

Types of new expressions are found when asked for (`type_of`), at the cost of what is new. Functions that are kernels
already, and those that another compiler takes over, are left alone.
"""

from __future__ import annotations

from typing import TypeGuard

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.types import Type
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import Inference
from loopwright.relay.op.registry import Op
from loopwright.relay.types import FuncType, IncompleteType, TensorType
from loopwright.relay.visitor import ExprMutator, parts, post_order


class KnownTypes(Inference):
    """Inference that believes types which were found before: only what is new is walked."""

    def __init__(self, mod: IRModule | None = None) -> None:
        super().__init__(None if mod is None else lambda var: _declared(mod, var))

    def visit(self, expression: Expr) -> Type:
        known = getattr(expression, "checked_type_", None)
        return super().visit(expression) if known is None or isinstance(known, IncompleteType) else known

    def first(self, expression: Expr) -> tuple[Expr, ...]:
        return tuple(part for part in super().first(expression) if getattr(part, "checked_type_", None) is None)


def _declared(mod: IRModule, var: GlobalVar) -> Type:
    function = graph_function(mod, var)
    if function.checked_type_ is not None:
        return function.checked_type_
    unknown = IncompleteType()
    return FuncType([param.type_annotation or unknown for param in function.params], function.ret_type or unknown)


class TypedRewrite(ExprMutator):
    """Rebuild a graph, each call of an operator through `rewrite`."""

    def __init__(self, mod: IRModule | None = None) -> None:
        super().__init__()
        self.types = KnownTypes(mod)

    def rewrite(self, call: Call) -> Expr:
        """What a call of an operator becomes; itself where nothing changes."""
        return call

    def type_of(self, expression: Expr) -> Type:
        """The type of an expression, new or old."""
        return self.types.visit(expression)

    def tensor_type(self, expression: Expr) -> TensorType | None:
        """Its type, if it is a tensor."""
        result = self.type_of(expression)
        return result if isinstance(result, TensorType) else None

    def type_of_tensor(self, expression: Expr) -> TensorType:
        """The type of what is a tensor."""
        result = self.type_of(expression)
        assert isinstance(result, TensorType)
        return result

    def visit_call(self, call: Call) -> Expr:
        changed = super().visit_call(call)
        if not isinstance(changed, Call) or not isinstance(changed.op, Op):
            return changed
        result = self.rewrite(changed)
        if result is not changed and isinstance(result, Call) and result.span is None:
            result.span = call.span  # a new call came from that place of the model
        return result

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        value = self.visit(get.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[get.index]
        return get if value is get.tuple_value else TupleGetItem(value, get.index, get.span)

    def visit_function(self, function: Function) -> Expr:
        if "Primitive" in function.attrs or "Compiler" in function.attrs:
            return function
        return super().visit_function(function)


def is_call(expression: object, *names: str) -> TypeGuard[Call]:
    """Whether an expression is a call of one of these operators."""
    return isinstance(expression, Call) and isinstance(expression.op, Op) and expression.op.name in names


def use_counts(root: Expr) -> dict[Expr, int]:
    """How often each expression below `root` is used; twice by one call counts twice."""
    counts: dict[Expr, int] = {}
    for expression in post_order(root):
        for part in parts(expression):
            counts[part] = counts.get(part, 0) + 1
    counts[root] = counts.get(root, 0) + 1
    return counts


def is_constant(expression: Expr, at_most: int = 64) -> bool:
    """Whether an expression depends on constants alone; not told of one of more than `at_most` parts."""
    stack, seen = [expression], {expression}
    while stack:
        current = stack.pop()
        if isinstance(current, Constant):
            continue
        is_operator = isinstance(current, Call) and isinstance(current.op, Op) and not current.attrs.stateful
        if not (is_operator or isinstance(current, (Tuple, TupleGetItem))) or len(seen) > at_most:
            return False
        for part in parts(current):
            if part not in seen:
                seen.add(part)
                stack.append(part)
    return True
