"""Containers that pass to and from packed functions: `Array`, `Map`, `String`, `ShapeTuple`, and tuples with a tag.

They are tvm-ffi's: immutable, shared without copying, compared by what they hold. `ADT` is ours: fields under a number
that says which constructor made them; as an argument it is the array of its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, overload

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


class ADT:
    """Fields made by the constructor number `tag`."""

    __slots__ = ("_fields", "tag")

    def __init__(self, tag: int, fields: Iterable[object] = ()) -> None:
        self.tag = int(tag)
        self._fields = Array([*fields])

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._fields[index]

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ADT) and self.tag == other.tag and list(self) == list(other)

    def __hash__(self) -> int:
        return hash((self.tag, tuple(self)))

    def __repr__(self) -> str:
        return f"ADT({self.tag}, {list(self)})"

    def __tvm_ffi_object__(self) -> object:
        return self._fields


def tuple_object(fields: Iterable[object] = ()) -> ADT:
    """The fields as a tuple: constructor number 0."""
    return ADT(0, fields)
