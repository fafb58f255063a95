"""Questions about single values of a graph: whether one is constant, the graph up to one, weights of a kind."""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.relay.analysis.variables import free_vars
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, Var
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.op.registry import Op
from loopwright.relay.visitor import post_order


def check_constant(expr: Expr) -> bool:
    """Whether an expression is a constant, or a tuple of nothing else."""
    waiting = [expr]
    for one in waiting:
        if isinstance(one, Tuple):
            waiting.extend(one.fields)
        elif not isinstance(one, Constant):
            return False
    return True


def extract_intermediate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """A module that computes one value of `main`: the call, tuple or the like of that number, as they run."""
    main = graph_function(mod)
    values = [result for result in post_order(main.body) if not isinstance(result, (Var, Constant, Function))]
    if not 0 <= expr_id < len(values):
        raise ValueError(f"main computes {len(values)} values, and none has the number {expr_id}")
    value = values[expr_id]
    needed = set(free_vars(value))
    return IRModule.from_expr(Function([param for param in main.params if param in needed], value))


# The name that scripts know.
extract_intermdeiate_expr = extract_intermediate_expr


def search_fc_transpose(expr: Expr) -> list[str]:
    """The names of the weights w in nn.dense(x, transpose(w, axes=[1, 0])): a pass may transpose them for good."""
    names: dict[str, None] = {}
    for call in post_order(expr):
        if not (isinstance(call, Call) and isinstance(call.op, Op) and call.op.name == "nn.dense"):
            continue
        weight = call.args[1]
        if isinstance(weight, Call) and isinstance(weight.op, Op) and weight.op.name == "transpose":
            if isinstance(weight.args[0], Var) and weight.attrs["axes"] in (None, (1, 0)):
                names[weight.args[0].name_hint] = None
    return list(names)
