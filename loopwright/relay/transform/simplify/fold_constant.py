"""FoldConstant: what depends on constants alone is computed now.

    add(const(1), const(2))    →    const(3)

The references of the operators say what they mean, in the precision of the graph. An operator that draws random numbers
is left alone, and so are those on quantized tensors, which FakeQuantizationToInteger looks for. One that would make a
large constant of small ones (`zeros`, `broadcast_to`) would only make the model larger.
"""

from __future__ import annotations

from typing import Final, overload

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.types import Type
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Tuple, TupleGetItem
from loopwright.relay.interpreter import evaluate
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import KnownTypes
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import ExprMutator

# A result of this many bytes may come from smaller constants; beyond it, it may not be larger than they are.
_SMALL: Final = 1 << 16


class _Fold(ExprMutator):
    def __init__(self, mod: IRModule | None, fold_qnn: bool) -> None:
        super().__init__()
        self.inference = KnownTypes(mod)
        self.fold_qnn = fold_qnn

    def visit_call(self, call: Call) -> Expr:
        changed = super().visit_call(call)
        if not isinstance(changed, Call) or not isinstance(changed.op, Op):
            return changed
        if changed.op.name.startswith("qnn.") and not self.fold_qnn:
            return changed
        return fold_call(changed, self.inference)

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        value = self.visit(get.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[get.index]
        return get if value is get.tuple_value else TupleGetItem(value, get.index, get.span)

    def visit_if(self, branch: If) -> Expr:
        condition = self.visit(branch.cond)
        if isinstance(condition, Constant):
            return self.visit(branch.true_branch if bool(condition.data) else branch.false_branch)
        return super().visit_if(branch)

    def visit_function(self, function: Function) -> Expr:
        # The inside of a kernel is decided by whoever fused it.
        return function if "Primitive" in function.attrs else super().visit_function(function)


def fold_call(call: Call, types: KnownTypes) -> Expr:
    """What a call of an operator gives, where its arguments are constants; else the call."""
    if call.attrs.stateful:
        return call
    if call.op.name in ("shape_of", "ndarray_size"):
        return _of_type(call, types)
    if not all(_is_constant(arg) for arg in call.args):
        return call
    if not _worth_it(call, types.visit(call)):
        return call
    return _as_expression(evaluate(call, {}))


def _of_type(call: Call, types: KnownTypes) -> Expr:
    """The shape of a tensor is known where its type is."""
    of = types.visit(call.args[0])
    if isinstance(of, TensorType) and all(isinstance(size, int) for size in of.shape):
        kind = call.attrs.dtype or "int32"
        value = np.asarray(of.shape if call.op.name == "shape_of" else int(np.prod(of.concrete_shape)), dtype=kind)
        return Constant(value)
    return call


def _is_constant(expression: Expr) -> bool:
    if isinstance(expression, Tuple):
        return all(_is_constant(field) for field in expression.fields)
    return isinstance(expression, Constant)


def _worth_it(call: Call, of: Type) -> bool:
    fields = [of] if isinstance(of, TensorType) else list(getattr(of, "fields", ()))
    if not all(isinstance(field, TensorType) for field in fields):
        return False
    if any(not isinstance(size, int) for field in fields for size in field.shape):
        return call.attrs.data_dependent  # its values decide
    result = sum(int(np.prod(field.concrete_shape)) * field.dtype.nbytes for field in fields)
    return result <= max(_SMALL, 2 * _bytes(call))


def _bytes(expression: Expr) -> int:
    if isinstance(expression, Call):
        return sum(_bytes(arg) for arg in expression.args)
    if isinstance(expression, Tuple):
        return sum(_bytes(field) for field in expression.fields)
    return int(expression.data.nbytes) if isinstance(expression, Constant) else 0


def _as_expression(value: object) -> Expr:
    if isinstance(value, (list, tuple)):
        return Tuple([_as_expression(one) for one in value])
    array = np.asarray(value)
    return Constant(np.ascontiguousarray(array).reshape(array.shape))


@overload
def fold(expression: Function, mod: IRModule | None = None, fold_qnn: bool = False) -> Function: ...
@overload
def fold(expression: Expr, mod: IRModule | None = None, fold_qnn: bool = False) -> Expr: ...
def fold(expression: Expr, mod: IRModule | None = None, fold_qnn: bool = False) -> Expr:
    """The expression with its constant parts computed; types must have been inferred."""
    return _Fold(mod, fold_qnn).visit(expression)


def FoldConstant(fold_qnn: bool = False) -> GraphPass:
    """Compute what depends on constants alone; with `fold_qnn`, by operators on quantized tensors as well."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return fold(function, mod, fold_qnn)

    return GraphPass(change, PassInfo(2, "FoldConstant"))


def FoldConstantExpr(expression: Expr, mod: IRModule, fold_qnn: bool = False) -> Expr:
    """The same for one expression."""
    return fold(expression, mod, fold_qnn)
