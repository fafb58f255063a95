"""pass_decorators: a user's function or class becomes a pass.

    @prim_func_pass(opt_level=1)
    def mine(func, mod, ctx): return func

    @module_pass(opt_level=0)
    class Mine:
        def transform_module(self, mod, ctx): return mod

Our own passes have a shorter form: `function_pass`, in `passes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from loopwright.ir.pass_context import PassInfo
from loopwright.ir.passes import ModulePass, PrimFuncPass
from loopwright.runtime.errors import LoopwrightError


class NoOptLevel(LoopwrightError, ValueError):
    """A pass decorator was used without the level from which on the pass runs.

    For example:

        from loopwright.tir.transform import prim_func_pass

        @prim_func_pass
        def tidy(func, mod, ctx):
            return func
    """

    code = "LW0522"

    def __init__(self, decorator: str) -> None:
        super().__init__(
            f"{decorator}: the pass has no opt_level",
            why="the level says in which contexts a Sequential runs the pass",
            hint=f"write @{decorator}(opt_level=0) to have it run always",
        )


class NotAPassClass(LoopwrightError, TypeError):
    """A class under a pass decorator lacks the method that does the work.

    For example:

        from loopwright.ir.transform import module_pass

        @module_pass(opt_level=0)
        class Tidy:
            def run(self, mod, ctx):
                return mod
    """

    code = "LW0527"

    def __init__(self, decorator: str, cls: type, method: str) -> None:
        near = get_close_matches(method, [name for name in dir(cls) if not name.startswith("__")], 1)
        super().__init__(
            f"{decorator}: class {cls.__name__} has no method {method}",
            hint=f"rename {near[0]} to {method}" if near else f"give it a method {method}",
        )


def module_pass(
    pass_func: object = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Decorator: a function `(mod, ctx)`, or a class with `transform_module(self, mod, ctx)`, becomes a pass."""
    return _decorate("module_pass", ModulePass, "transform_module", pass_func, opt_level, name, required, traceable)


def prim_func_pass(
    pass_func: object = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Decorator: a function `(func, mod, ctx)`, or a class with `transform_function(self, …)`, becomes a pass."""
    return _decorate(
        "prim_func_pass", PrimFuncPass, "transform_function", pass_func, opt_level, name, required, traceable
    )


def _decorate(
    decorator: str,
    kind: Any,
    method: str,
    given: object,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
    traceable: bool,
) -> Any:
    if opt_level is None:
        raise NoOptLevel(decorator)
    level = opt_level

    def decorate(body: Any) -> Any:
        info = PassInfo(level, name or body.__name__, tuple(required or ()), traceable)
        if not isinstance(body, type):
            return kind(body, info)
        if not hasattr(body, method):
            raise NotAPassClass(decorator, body, method)

        class Made(kind):
            """Making one runs the class's own constructor; calling it runs its method."""

            def __init__(self, *args: object, **kwargs: object) -> None:
                self.instance = body(*args, **kwargs)
                kind.__init__(self, getattr(self.instance, method), info)

            def __getattr__(self, attribute: str) -> object:
                # Only reached for what the pass itself lacks: the user's class keeps its own state.
                if attribute == "instance":
                    raise AttributeError(attribute)
                return getattr(self.instance, attribute)

        Made.__name__, Made.__qualname__, Made.__doc__ = body.__name__, body.__qualname__, body.__doc__
        return Made

    return decorate if given is None else decorate(given)
