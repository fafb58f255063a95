"""external: functions that another compiler takes over, compiled by it.

    @register_func("relay.ext.mine")
    def compile(function):                   a function with Compiler="mine" and its global_symbol
        return CSourceModuleCreate(code, "c", [function.attrs["global_symbol"]])

A function of a module with the attribute Compiler is not looked into: the compiler registered under `relay.ext.<name>`
makes a module of it that has a function of its `global_symbol`, which takes the tensors of the parameters and then
those of the results. `relay.ext.<name>.constant_updater(function, symbol)`, if there is one, gives constants by name.
`c_compiler.py` is a compiler of that kind, under the name "ccompiler".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopwright.model.given_arrays import array_of
from loopwright.relay.expr import Function
from loopwright.relay.types import FuncType
from loopwright.runtime.c_source import CSourceModule
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.module import Module
from loopwright.runtime.registry import get_global_func


class NoSuchCompiler(LoopwrightError, ValueError):
    """A part of a graph is marked for a compiler that is not registered, or that made nothing which can be linked.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(4,))
        part = relay.Function([x], relay.exp(x))
        part = part.with_attr({"Compiler": "nobodys", "global_symbol": "part_0", "Primitive": 1})
        y = relay.var("y", shape=(4,))
        mod = relay.IRModule({"part_0": part})
        mod["main"] = relay.Function([y], relay.Call(mod.get_global_var("part_0"), [y]))
        relay.build(mod, "llvm")
    """

    code = "LW1290"


# Names of libraries that scripts hand parts of graphs to; none of them is linked here.
_LIBRARIES = "arm_compute_lib bnns clml cmsis-nn coreml coremlcompiler cublas cudnn cutlass dnnl ethos-n ethos-u mrvl "
_LIBRARIES += "tensorrt verilator vitis_ai"


def symbol_of(function: Function) -> str:
    """The name under which the compiler of a function has to define it."""
    symbol = function.attrs.get("global_symbol")
    if symbol is None:
        raise NoSuchCompiler(
            f"a function for the compiler {function.attrs['Compiler']!r} has no global_symbol",
            hint='give it one: function.with_attr("global_symbol", "name")',
        )
    return str(symbol)


def _with_result_type(function: Function) -> Function:
    """The function as compilers expect it: it says what it returns, declared or inferred."""
    inferred = function.checked_type_
    if function.declared_ret_type is not None or not isinstance(inferred, FuncType):
        return function
    result = Function(
        function.params, function.body, inferred.ret_type, function.type_params, function.attrs, function.span
    )
    result.checked_type_ = inferred
    return result


def compile_external(function: Function) -> tuple[Module, dict[str, np.ndarray]]:
    """The module that the compiler of a function makes of it, and the constants that it has by name."""
    name, symbol = str(function.attrs["Compiler"]), symbol_of(function)
    result: object = _compiler(name)(_with_result_type(function))
    if not isinstance(result, Module):
        raise NoSuchCompiler(
            f"relay.ext.{name} gave {type(result).__name__} for {symbol}, not a module",
            hint="return CSourceModuleCreate(code, 'c', [symbol]), or what loopwright.build makes",
        )
    constants = _constants(name, function, symbol)
    if isinstance(result, CSourceModule):
        result.declare([symbol])
        result.set_constants(constants)
    elif not result.implements_function(symbol, True) or result.object_code is None:
        has = ", ".join(result.function_names) or "no functions"
        raise NoSuchCompiler(
            f"the module that relay.ext.{name} made has no compiled function {symbol!r}; it has {has}",
            hint="the function's global_symbol says what it has to be called",
        )
    return result, constants


def _compiler(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] | None = get_global_func(f"relay.ext.{name}", allow_missing=True)
    if found is not None:
        return found
    if name == "ccompiler":
        from loopwright.relay.c_compiler import compile_function

        return compile_function
    hint = f"register one: loopwright.register_func('relay.ext.{name}', compile)"
    if name in _LIBRARIES.split():
        hint = f"this library is not linked here: leave out the pass that partitions for {name}, and the model compiles"
    raise NoSuchCompiler(f"no compiler is registered as relay.ext.{name}, which a part of the graph is for", hint=hint)


def _constants(name: str, function: Function, symbol: str) -> dict[str, np.ndarray]:
    updater = get_global_func(f"relay.ext.{name}.constant_updater", allow_missing=True)
    given = {} if updater is None else updater(function, symbol)
    if not isinstance(given, Mapping) and not hasattr(given, "items"):
        raise NoSuchCompiler(f"relay.ext.{name}.constant_updater gave {type(given).__name__}, not a dict by name")
    return {str(key): array_of(value, f"the constant {key}") for key, value in given.items()}
