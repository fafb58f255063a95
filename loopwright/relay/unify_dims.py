"""Equal sizes: unknown sizes of inputs that an operator needs to be equal become one size, or a number.

    x : Tensor[(?, ?), float32]     nn.dense(x, w)     w : Tensor[(10, 64), float32]

The second size of x must be 64, whoever calls: so it is 64, and other inputs are refused when the model is called. Of
two unknown sizes that meet so, one name is left. What must be equal each operator says itself (`equal_sizes`); of two
open batches of nn.batch_matmul that is taken for granted, though one of them could have been 1.
"""

from __future__ import annotations

from loopwright.ir import Var as SizeVariable
from loopwright.ir.function import IRModule
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Call, Function, Var
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import infer_module
from loopwright.relay.op.registry import Op
from loopwright.relay.types import Dim, TensorType
from loopwright.relay.visitor import bind, post_order

_ROUNDS = 4  # a size that is found may say another


def unify_dims(module: IRModule, open_sizes: set[SizeVariable]) -> IRModule:
    """The module whose `main` has fewer of `open_sizes`, which stand in types of its parameters and nowhere else."""
    for _ in range(_ROUNDS):
        if not open_sizes:
            break
        function = graph_function(infer_module(module))
        result = _meetings(function, open_sizes)
        if not result:
            break
        changed = module.copy()
        changed["main"] = _replaced(function, result)  # type: ignore[assignment]
        module, open_sizes = changed, open_sizes - set(result)
    return module


def _meetings(function: Function, open_sizes: set[SizeVariable]) -> dict[SizeVariable, Dim]:
    """Each open size that equals another one, or a number, and that."""
    result: dict[SizeVariable, Dim] = {}

    def now(size: Dim) -> Dim:
        while isinstance(size, SizeVariable) and size in result:
            size = result[size]
        return size

    for call in post_order(function):
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            continue
        say = getattr(call.attrs, "equal_sizes", None)
        types = [arg.checked_type_ for arg in call.args]
        if say is None or not all(isinstance(of, (TensorType, TupleType)) for of in types):
            continue
        for one, other in say(*types):
            one, other = now(one), now(other)
            if one is other:
                continue
            if isinstance(other, SizeVariable) and other in open_sizes and isinstance(one, (int, SizeVariable)):
                result[other] = one
            elif isinstance(one, SizeVariable) and one in open_sizes and isinstance(other, (int, SizeVariable)):
                result[one] = other
    return {size: now(size) for size in result}


def _replaced(function: Function, sizes: dict[SizeVariable, Dim]) -> Function:
    def changed(of: Type | None) -> Type | None:
        if isinstance(of, TupleType):
            return TupleType(tuple(changed(field) or field for field in of.fields))
        if isinstance(of, TensorType) and any(isinstance(size, SizeVariable) and size in sizes for size in of.shape):
            shape = [sizes.get(size, size) if isinstance(size, SizeVariable) else size for size in of.shape]
            return TensorType(shape, str(of.dtype))
        return of

    params = [Var(param.name_hint, changed(param.type_annotation), param.span) for param in function.params]
    body = bind(function.body, dict(zip(function.params, params, strict=True)))
    return function.rebuilt(params, body)
