"""gradient: a function and how its result changes with each of its parameters.

    fn (%x) { exp(%x) }    →    fn (%x) { %0 = exp(%x); (%0, (multiply(ones_like(%0), %0),)) }

Backwards from the result, which counts as a sum of its elements: each operator says what the gradient of its result
makes of those of its inputs (`Operator.gradient`), and what several uses say is added. Functions that are called stand
where they are called, and names where they are used, before that. Programs for which that is not enough are those of
`higher_order_gradient.py`.
"""

from __future__ import annotations

from typing import TypeAlias

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, TupleWrapper, Var
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import infer_module
from loopwright.relay.op.registry import Op, make
from loopwright.relay.transform.functions.gradient_errors import NoGradient
from loopwright.relay.transform.functions.higher_order_gradient import with_noted_gradients
from loopwright.relay.transform.functions.normal_forms import ToGraphNormalForm
from loopwright.relay.transform.functions.partial_evaluate import PartialEvaluate
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import FuncType, TensorType
from loopwright.relay.visitor import post_order

# The gradient of a tensor is an expression, that of a tuple a list; None is nothing yet.
Gradient: TypeAlias = Expr | list["Gradient"] | None


class _Backward:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.found: dict[Expr, Gradient] = {}

    def gradients(self) -> list[Expr]:
        """The gradient of each parameter."""
        body = self.function.body
        self._add(body, _ones(body, body.checked_type))
        for expression in reversed(list(post_order(body))):
            grad = self.found.get(expression)
            if grad is not None:
                self._through(expression, grad)
        return [_whole(param, param.checked_type, self.found.get(param)) for param in self.function.params]

    def _through(self, expression: Expr, grad: Gradient) -> None:
        if isinstance(expression, Tuple):
            assert isinstance(grad, list)
            for field, one in zip(expression.fields, grad, strict=True):
                if one is not None:
                    self._add(field, one)
        elif isinstance(expression, TupleGetItem):
            of = expression.tuple_value.checked_type
            assert isinstance(of, TupleType)
            parts: list[Gradient] = [None] * len(of.fields)
            parts[expression.index] = grad
            self._add(expression.tuple_value, parts)
        elif isinstance(expression, Call) and isinstance(expression.op, Op):
            self._through_operator(expression, grad)
        elif not isinstance(expression, (Var, Constant)):
            raise NoGradient(f"an expression of kind {type(expression).__name__}")

    def _through_operator(self, call: Call, grad: Gradient) -> None:
        rule = call.op.extra.get("FPrimalGradient") or call.attrs.gradient
        if rule is None:
            if any(_has_floats(arg.checked_type) for arg in call.args):
                raise NoGradient(call.op.name)
            return
        whole = _whole(call, call.checked_type, grad)
        for arg, one in zip(call.args, rule(call, whole), strict=True):
            self._add(arg, _parts(one, arg.checked_type))

    def _add(self, expression: Expr, grad: Gradient) -> None:
        if not _has_floats(expression.checked_type):
            return
        known = self.found.get(expression)
        self.found[expression] = grad if known is None else _sum(known, grad)


def _has_floats(of: Type) -> bool:
    if isinstance(of, TupleType):
        return any(_has_floats(field) for field in of.fields)
    return isinstance(of, TensorType) and of.dtype.is_float


def _ones(value: Expr, of: Type) -> Gradient:
    if isinstance(of, TupleType):
        return [_ones(_field(value, k), field) for k, field in enumerate(of.fields)]
    if not isinstance(of, TensorType):
        raise NoGradient(f"a result of type {of}")
    return make("ones_like", value)


def _field(value: Expr, index: int) -> Expr:
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)


def _whole(value: Expr, of: Type, grad: Gradient) -> Expr:
    """A gradient as one expression; zeros where there is none."""
    if isinstance(of, TupleType):
        parts: list[Gradient] = grad if isinstance(grad, list) else [None] * len(of.fields)
        return Tuple([_whole(_field(value, k), field, parts[k]) for k, field in enumerate(of.fields)])
    assert not isinstance(grad, list)
    return make("zeros_like", value) if grad is None else grad


def _parts(grad: Expr, of: Type) -> Gradient:
    """A gradient that an operator gave, a tuple's as a list."""
    value = grad.tuple_value if isinstance(grad, TupleWrapper) else grad
    if not isinstance(of, TupleType):
        return value
    return [_parts(_field(value, k), field) for k, field in enumerate(of.fields)]


def _sum(one: Gradient, other: Gradient) -> Gradient:
    if one is None or other is None:
        return one if other is None else other
    if isinstance(one, list):
        assert isinstance(other, list)
        return [_sum(a, b) for a, b in zip(one, other, strict=True)]
    return make("add", one, other)


def with_gradients(function: Function, mod: IRModule) -> Function:
    """The function that returns (result, (gradient of each parameter …))."""
    plain = _plain(function, mod)
    for each in post_order(plain.body):
        if isinstance(getattr(each, "checked_type_", None), FuncType):
            raise NoGradient("a graph with functions that are values")
    grads = _Backward(plain).gradients()
    return Function(plain.params, Tuple([plain.body, Tuple(grads)]), None, plain.type_params, plain.attrs)


def _plain(function: Function, mod: IRModule) -> Function:
    """The function with no names and no calls of others."""
    changed = mod.copy()
    changed["main"] = function  # type: ignore[assignment]
    for each in (PartialEvaluate(), ToGraphNormalForm()):
        changed = each(changed)
    infer_module(changed)
    return graph_function(changed)


def gradient(expr: Function | GlobalVar, mod: IRModule | None = None, mode: str = "higher_order") -> Function:
    """The function of the same parameters that returns (result, (gradient of each parameter …)), in either mode."""
    if mode not in ("higher_order", "first_order"):
        raise ValueError(f"gradient: mode is 'higher_order' or 'first_order', and not {mode!r}")
    module = IRModule() if mod is None else mod
    function = expr if isinstance(expr, Function) else graph_function(module, expr)
    infer_module(module)
    try:
        result = with_gradients(function, module)
    except NoGradient:
        if mode == "first_order":
            raise
        result = with_noted_gradients(function, module)
    typed = module.copy()
    typed["main"] = result  # type: ignore[assignment]
    infer_module(typed)
    return result


def FirstOrderGradient() -> GraphPass:
    """Have each function return its gradients beside its result."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return with_gradients(function, mod)

    return GraphPass(change, PassInfo(0, "FirstOrderGradient"))
