"""The parts of te that are still to come: each name is here, and says what works instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from loopwright.runtime.errors import NotBuilt

_FUNCTION = "te.create_prim_func([inputs…, outputs…]) makes a function that loopwright.build compiles"
_INSTEAD = {
    "create_schedule": _FUNCTION,
    "decl_tensor_intrin": _FUNCTION,
}


def _not_built(name: str) -> Callable[..., Any]:
    def function(*_: object, **__: object) -> NoReturn:
        raise NotBuilt(f"te.{name}", _INSTEAD[name])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"te.{name}, which is not built yet."
    return function


create_schedule = _not_built("create_schedule")
decl_tensor_intrin = _not_built("decl_tensor_intrin")
