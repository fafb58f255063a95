"""SimplifyFCTranspose: a weight that is transposed before every use is transposed once, for good.

    nn.dense(%x, transpose(%w, axes=[1, 0]))    →    nn.dense(%x, %w_T)

`convert(func, params)` does so with weights and function together; the pass leaves the weights to its caller, who names
those that `relay.analysis.search_fc_transpose` found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.analysis.single_values import search_fc_transpose
from loopwright.relay.expr import Call, Expr, Function, Var
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call


class _Transposed(TypedRewrite):
    """Uses of `transpose(w)` become a new variable."""

    def __init__(self, mod: IRModule, names: Sequence[str]) -> None:
        super().__init__(mod)
        self.names = frozenset(names)
        self.new: dict[Var, Var] = {}

    def rewrite(self, call: Call) -> Expr:
        weight = call.args[0] if call.args else None
        if not is_call(call, "transpose") or not isinstance(weight, Var) or weight.name_hint not in self.names:
            return call
        if weight not in self.new:
            self.new[weight] = Var(f"{weight.name_hint}_T", self.type_of(call))
        return self.new[weight]


def SimplifyFCTranspose(target_weights: Sequence[str]) -> GraphPass:
    """Have the function take these weights transposed, under their names and `_T`."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        rewrite = _Transposed(mod, target_weights)
        body = rewrite.visit(function.body)
        params = [rewrite.new.get(param, param) for param in function.params]
        return function.rebuilt(params, body)

    return GraphPass(change, PassInfo(4, "SimplifyFCTranspose"))


def convert(func: Function, params: Mapping[str, object]) -> tuple[Function, dict[str, object]]:
    """The function and its parameters, with weights transposed that are only used so."""
    names = [name for name in search_fc_transpose(func) if name in params]
    result: dict[str, object] = dict(params)
    for name in names:
        value = result.pop(name)
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        result[f"{name}_T"] = np.ascontiguousarray(array.T)
    mod = SimplifyFCTranspose(names)(IRModule({"main": func}))  # type: ignore[dict-item]
    return graph_function(mod), result


