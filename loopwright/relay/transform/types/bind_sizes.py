"""BindSizes: sizes that an operator's values decide get names, so that what follows can be compiled.

    argwhere(%x): Tensor[(?, 2), int32]    →    argwhere<Tensor[(n, 2), int32]>(%x)

The name is a size variable that is set when the operator has run; the types of everything that follows are expressions
of it. The type that a call declares stands in its `type_args`. Only a first dimension can be named: the elements that
are there are then the first ones in memory.
"""

from __future__ import annotations

from loopwright.ir.expr import SizeVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.infer_type import Inference
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.graph_pass import GraphPass, graph_pass
from loopwright.relay.types import TensorType, is_any
from loopwright.relay.visitor import ExprMutator


class _Name(ExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self.inference = Inference()
        self.count = 0

    def visit_call(self, call: Call) -> Expr:
        changed = super().visit_call(call)
        if not isinstance(changed, Call) or not isinstance(changed.op, Op) or not changed.attrs.data_dependent:
            return changed
        result = self.inference.visit(changed)
        if changed.type_args or not _can_be_named(result):
            return changed
        return Call(changed.op, changed.args, changed.attrs, (self._named(result),), changed.span)

    def _named(self, of: Type) -> Type:
        if isinstance(of, TupleType):
            return TupleType(tuple(self._named(field) for field in of.fields))
        assert isinstance(of, TensorType)
        if not of.shape or not is_any(of.shape[0]):
            return of
        self.count += 1
        return TensorType((SizeVar(f"found_{self.count}", "int32"), *of.shape[1:]), str(of.dtype))

    def visit_function(self, function: Function) -> Expr:
        return function if "Primitive" in function.attrs else super().visit_function(function)


def _can_be_named(of: Type) -> bool:
    if isinstance(of, TupleType):
        return all(_can_be_named(field) for field in of.fields)
    return isinstance(of, TensorType) and not any(is_any(size) for size in of.shape[1:])


@graph_pass("BindSizes")
def _bind_sizes(function: Function, mod: IRModule, ctx: PassContext) -> Function:
    """Name the sizes that operators decide as they run."""
    return _Name().apply(function)


def BindSizes() -> GraphPass:
    """Name the sizes that operators decide as they run."""
    return _bind_sizes
