"""`Array` and `Map` as scripts ask for them: what any list or mapping is.

Our nodes hold tuples and dicts, and our functions return them; those of tvm-ffi cross to native code. A script that
asks `isinstance(x, tvm.ir.Array)` wants to know whether there are items to go through, so each of them is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loopwright.runtime import containers

__all__ = ["Array", "Map"]


class _Lists(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (tuple, list, containers.Array, containers.List))

    def __call__(cls, items: Iterable[object] = ()) -> Any:
        return containers.Array(items)


class _Mappings(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (Mapping, containers.Map, containers.Dict))

    def __call__(cls, items: Mapping[object, object] | None = None) -> Any:
        return containers.Map(items or {})


class Array(metaclass=_Lists):
    """A list that does not change."""


class Map(metaclass=_Mappings):
    """A mapping that does not change."""
