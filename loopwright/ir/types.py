"""The types a variable or a function result may have."""

from __future__ import annotations

from loopwright.ir.node import Node, node
from loopwright.runtime.dtype import HANDLE, DataType


class Type(Node):
    """The type of a variable or of a function's result."""

    __slots__ = ()


@node
class PrimType(Type):
    """A scalar or vector value."""

    dtype: DataType


@node
class PointerType(Type):
    """A pointer to elements of type `element_type`, in memory of `storage_scope`."""

    element_type: Type
    storage_scope: str = "global"


@node
class TupleType(Type):
    """Several values; with no fields, the type of a function that returns nothing."""

    fields: tuple[Type, ...] = ()


def dtype_of_type(annotation: Type) -> DataType:
    """The dtype a variable of this type shows: pointers are handles."""
    return annotation.dtype if isinstance(annotation, PrimType) else HANDLE
