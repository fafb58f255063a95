"""relay.testing: networks to try things on, each a file: `resnet.get_workload()` gives a module and its parameters.

`layers.py` has what they are made of, `workload.py` draws the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.function import IRModule
from loopwright.ir.passes import Pass, Sequential
from loopwright.relay.expr import Expr, Function
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import infer
from loopwright.relay.testing import mlp, mobilenet, resnet, vgg
from loopwright.relay.testing.workload import create_workload


def run_infer_type(expression: Expr) -> Expr:
    """The expression with its types inferred."""
    infer(expression)
    return expression


def run_opt_pass(expression: Expr, opt_pass: Pass | Sequence[Pass], import_prelude: bool = False) -> Expr:
    """The expression after a pass, or a list of them."""
    whole = opt_pass if isinstance(opt_pass, Pass) else Sequential(list(opt_pass))
    function = expression if isinstance(expression, Function) else Function([], expression)
    module = whole(IRModule({"main": function}))  # type: ignore[dict-item]
    changed = graph_function(module)
    return changed if isinstance(expression, Function) else changed.body


__all__ = ["create_workload", "mlp", "mobilenet", "resnet", "run_infer_type", "run_opt_pass", "vgg"]
