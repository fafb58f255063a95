"""ChangeBatch: the same network for another number of examples.

    ChangeBatch({data: 0}, batch_size=16)(mod)        size 0 of the parameter `data` is 16

Types that follow from the parameters' are found anew; a size that an attribute fixes (the shape of a reshape) stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Function, Var
from loopwright.relay.transform.functions.clone import clone
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import bind


def ChangeBatch(data: Mapping[Var, int], batch_size: int = 16) -> GraphPass:
    """Set one size of each of these parameters."""
    axes = {var.name_hint: int(axis) for var, axis in data.items()}

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        def changed(param: Var) -> Var:
            of = param.checked_type
            if param.name_hint not in axes or not isinstance(of, TensorType):
                return Var(param.name_hint, param.type_annotation, param.span)
            shape = list(of.shape)
            shape[axes[param.name_hint]] = batch_size
            return Var(param.name_hint, TensorType(shape, str(of.dtype)), param.span)

        copy = clone(function)
        params = [changed(param) for param in function.params]
        body = bind(copy.body, dict(zip(copy.params, params, strict=True)))
        return function.rebuilt(params, body)

    return GraphPass(change, PassInfo(1, "ChangeBatch"))
