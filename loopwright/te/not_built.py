"""The parts of te that are still to come: each name is here, and says what works instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from loopwright.runtime.errors import NotBuilt

_FUNCTION = "te.create_prim_func([inputs…, outputs…]) makes a function that loopwright.build compiles"
_INSTEAD = {
    "scan": "write the steps as te.compute over the whole sequence, or write the loop in a script (T.prim_func)",
    "extern": "write the body as te.compute, or call the function from a script with T.call_extern",
    "extern_primfunc": "put the function and the one made by te.create_prim_func in one IRModule",
    "gradient": "write the gradient as te.compute",
    "create_schedule": _FUNCTION,
    "decl_tensor_intrin": _FUNCTION,
}


def _not_built(name: str) -> Callable[..., Any]:
    def function(*_: object, **__: object) -> NoReturn:
        raise NotBuilt(f"te.{name}", _INSTEAD[name])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"te.{name}, which is not built yet."
    return function


scan, extern, extern_primfunc = _not_built("scan"), _not_built("extern"), _not_built("extern_primfunc")
gradient, create_schedule = _not_built("gradient"), _not_built("create_schedule")
decl_tensor_intrin = _not_built("decl_tensor_intrin")


class _Hybrid:
    """te.hybrid, which is not built yet."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotBuilt(f"te.hybrid.{name}", "write the function as a script (T.prim_func) or with te.compute")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise NotBuilt("te.hybrid", "write the function as a script (T.prim_func) or with te.compute")


hybrid = _Hybrid()
