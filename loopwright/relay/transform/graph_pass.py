"""graph_pass: what all passes over graph functions share.

    @graph_pass("EliminateNothing", opt_level=1)
    def _eliminate(function, mod, ctx): return function

    def EliminateNothing(): return _eliminate

A pass is a function from a graph function to a graph function; it is run on each of a module, and its result is typed
again. Users' own passes come from `function_pass`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.pass_decorators import NoOptLevel
from loopwright.ir.passes import BadPassResult, Pass
from loopwright.relay.expr import Function
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import infer_module
from loopwright.relay.types import IncompleteType

Change = Callable[[Function, IRModule, PassContext], Function]


class GraphPass(Pass):
    """A pass made from a function `(function, mod, ctx) → function`, run on every graph function of a module."""

    def __init__(self, change: Change, info: PassInfo, typed: bool = True) -> None:
        super().__init__(info)
        self.change = change
        self.typed = typed  # whether types are inferred before and after
        self.__doc__ = change.__doc__

    @overload
    def __call__(self, program: Function) -> Function: ...
    @overload
    def __call__(self, program: PrimFunc) -> PrimFunc: ...
    @overload
    def __call__(self, program: IRModule) -> IRModule: ...
    def __call__(self, program: Function | PrimFunc | IRModule) -> Function | PrimFunc | IRModule:
        if isinstance(program, Function):
            return graph_function(self._run(IRModule({"main": program})))  # type: ignore[dict-item]
        return super().__call__(program)

    def transform(self, mod: IRModule, context: PassContext) -> IRModule:
        if self.typed and not all(map(_has_type, mod.values())):
            infer_module(mod)

        def change(function: object) -> object:
            # A function that another compiler takes over is its business.
            if not isinstance(function, Function) or "Compiler" in function.attrs:
                return function
            result = self.change(function, mod, context)
            if not isinstance(result, Function):
                raise BadPassResult(self.info.name, "Function", result)
            return result

        changed = mod.map_functions(change)
        return infer_module(changed) if self.typed and changed is not mod else changed


FunctionPass = GraphPass  # the name that scripts know


def _has_type(function: object) -> bool:
    """Whether types were inferred before: expressions never change, so they are still right."""
    known = getattr(function, "checked_type_", None)
    return not isinstance(function, Function) or (known is not None and not isinstance(known, IncompleteType))


def graph_pass(
    name: str, opt_level: int = 0, required: Sequence[str] = (), typed: bool = True
) -> Callable[[Change], GraphPass]:
    """Decorator: a function `(function, mod, ctx)` becomes the pass `name`."""

    def result(change: Change) -> GraphPass:
        return GraphPass(change, PassInfo(opt_level, name, tuple(required)), typed)

    return result


def function_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """Decorator for users: a function `(func, mod, ctx)`, or a class with `transform_function`, becomes a pass."""
    if opt_level is None:
        raise NoOptLevel("function_pass")
    level = opt_level

    def decorate(body: Any) -> Any:
        info = PassInfo(level, name or body.__name__, tuple(required or ()))
        if not isinstance(body, type):
            return GraphPass(body, info)

        def make(*args: object, **options: object) -> GraphPass:
            return GraphPass(body(*args, **options).transform_function, info)

        return make

    return decorate if pass_func is None else decorate(pass_func)
