"""relay.testing: networks to try things on, each a file: `resnet.get_workload()` gives a module and its parameters.

`layers.py` has what they are made of, `workload.py` draws the parameters; `gradients.py` compares gradients with
differences, `nat.py` has numbers as data, `temp_op_attr.py` rules of operators for a while.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.passes import Pass, Sequential
from loopwright.relay.adt import ConstructorValue
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Expr, Function
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import infer, infer_module
from loopwright.relay.interpreter import RefValue, evaluate
from loopwright.relay.testing.workload import create_workload
from loopwright.runtime.containers import ADT
from loopwright.runtime.tensor import NDArray, array

_FILES: Final = "dcgan densenet dqn inception_v3 layers lstm mlp mobilenet nat resnet squeezenet synthetic vgg".split()
_HOMES: Final = {
    "check_grad": "gradients",
    "count": "nat",
    "make_nat_expr": "nat",
    "make_nat_value": "nat",
}


def run_infer_type(expression: Expr) -> Expr:
    """The expression with its types inferred."""
    infer(expression)
    return expression


def run_opt_pass(expression: Expr, opt_pass: Pass | Sequence[Pass], import_prelude: bool = False) -> Expr:
    """The expression after a pass, or a list of them."""
    whole = opt_pass if isinstance(opt_pass, Pass) else Sequential(list(opt_pass))
    function = expression if isinstance(expression, Function) else Function([], expression)
    module = IRModule({"main": function})  # type: ignore[dict-item]
    if import_prelude:
        module.import_from_std("prelude.rly")
    changed = graph_function(whole(module))
    return changed if isinstance(expression, Function) else changed.body


def rand(dtype: str, *shape: int) -> NDArray:
    """A tensor of numbers between 0 and 1."""
    return array(np.random.rand(*shape).astype(dtype))


def run_as_python(expr: Expr, mod: IRModule | None = None, target: object = "llvm") -> object:
    """The value of an expression as Python computes it: tensors, ADTs for tuples, cells and cases of data types."""
    module = IRModule() if mod is None else mod.copy()
    function = Function([], expr)
    module["run_as_python"] = function  # type: ignore[assignment]
    with suppress(TypeMismatch):  # Python needs no types; those that are found say the element types of results
        infer_module(module)
    return _as_object(evaluate(function, (), module))


def _as_object(value: object) -> object:
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, (list, tuple)):
        return ADT(0, [_as_object(item) for item in value])
    if isinstance(value, ConstructorValue):
        return ConstructorValue(value.constructor, [_as_object(field) for field in value.fields])
    if isinstance(value, RefValue):
        return RefValue(_as_object(value.value))  # type: ignore[arg-type]
    if callable(value) and not isinstance(value, Expr):  # a function that closes over values
        return lambda *args: _as_object(value(*args))
    return value


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return importlib.import_module(f"loopwright.relay.testing.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"loopwright.relay.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["create_workload", "rand", "run_as_python", "run_infer_type", "run_opt_pass", *_FILES, *_HOMES]
