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


class ShapeTuple(_tvm_ffi.Shape):  # type: ignore[name-defined]
    """Sizes that pass as a shape; equal to any list or tuple of the same numbers."""

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __reduce__(self) -> tuple[type[ShapeTuple], tuple[list[int]]]:
        return ShapeTuple, ([*self],)


class _Texts(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, str)


class String(_tvm_ffi.core.String, metaclass=_Texts):  # type: ignore[name-defined]
    """A text; every text of Python passes as one, so every one of them is one."""

    @property
    def __tvm_object__(self) -> SharedText:
        return SharedText(self)

    def __reduce__(self) -> tuple[type[String], tuple[str]]:
        return String, (str(self),)


class SharedText:
    """A text as an object that others may hold too."""

    def __init__(self, text: str) -> None:
        self.text = text

    def same_as(self, other: object) -> bool:
        """Whether the other is the same object, not just the same text."""
        return isinstance(other, SharedText) and self.text is other.text


def _shown(container: Any) -> str:
    """As lists and dicts are; theirs writes "ffi.OpaquePyObject" for nodes of programs."""
    return repr(dict(container.items()) if isinstance(container, Map) else [*container])


Array.__repr__ = Map.__repr__ = _shown

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
