"""Containers that pass to and from packed functions: `Array`, `Map`, `String`, `ShapeTuple`, and tuples with a tag.

They are tvm-ffi's: immutable, shared without copying, compared by what they hold. `ADT` is ours: fields under a number
that says which constructor made them; as an argument it is the array of its fields.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable
from typing import Any

from loopwright.runtime import ffi

_tvm_ffi = ffi.load()

Array = _tvm_ffi.Array
Dict = _tvm_ffi.Dict
List = _tvm_ffi.List
Map = _tvm_ffi.Map
Object = _tvm_ffi.Object
PackedFunc = _tvm_ffi.Function
ShapeTuple = _tvm_ffi.Shape
String = _tvm_ffi.core.String


# Nodes of programs, which they may hold, are known to Python's pickle alone.
copyreg.pickle(Array, lambda array: (Array, ([*array],)))
copyreg.pickle(Map, lambda mapping: (Map, (dict(mapping.items()),)))


class ADT(list[Any]):
    """Fields made by the constructor number `tag`; what a model returns for a tuple is one of number 0."""

    __slots__ = ("tag",)

    def __init__(self, tag: int, fields: Iterable[object] = ()) -> None:
        super().__init__(fields)
        self.tag = int(tag)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ADT) and self.tag != other.tag:
            return False
        return list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((self.tag, tuple(self)))

    def __repr__(self) -> str:
        return f"ADT({self.tag}, {list(self)})"


def tuple_object(fields: Iterable[object] = ()) -> ADT:
    """The fields as a tuple: constructor number 0."""
    return ADT(0, fields)
