"""get_calibration_data: what goes into and comes out of the parts of a graph that another compiler takes."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.relay.expr import Call, Function, Tuple
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import infer_module
from loopwright.relay.interpreter import evaluate
from loopwright.relay.visitor import post_order


def get_calibration_data(mod: IRModule, data: Mapping[str, object]) -> dict[GlobalVar, dict[str, list[object]]]:
    """For each function with the attribute Compiler, the arrays it is called with and those it returns.

    `data` has the inputs of `main` by name. The graph is computed by the reference interpreter.
    """
    main = graph_function(infer_module(mod))
    missing = [param.name_hint for param in main.params if param.name_hint not in data]
    if missing:
        raise ValueError(f"get_calibration_data: main needs {', '.join(missing)}, which data does not have")
    calls = [call for call in post_order(main.body) if isinstance(call, Call) and _is_external(mod, call.op)]
    wanted = Tuple([Tuple([*call.args, call]) for call in calls])
    rows = evaluate(Function(main.params, wanted), [data[param.name_hint] for param in main.params], mod)
    assert isinstance(rows, list)
    result: dict[GlobalVar, dict[str, list[object]]] = {}
    for call, row in zip(calls, rows, strict=True):
        entry = result.setdefault(call.op, {"inputs": [], "outputs": []})
        entry["inputs"] += row[:-1]
        entry["outputs"] += row[-1] if isinstance(row[-1], list) else [row[-1]]
    return result


def _is_external(mod: IRModule, callee: object) -> bool:
    if not isinstance(callee, GlobalVar):
        return False
    function: object = mod[callee]
    return isinstance(function, Function) and "Compiler" in function.attrs
