"""The types a variable or a function result may have."""

from __future__ import annotations

from loopwright.ir.node import Node, node
from loopwright.runtime.dtype import HANDLE, DataType


class Type(Node):
    """The type of a variable or of a function's result; equal by content, but for type variables."""

    __slots__ = ()


@node
class PrimType(Type):
    """A scalar or vector value."""

    dtype: DataType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimType) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((PrimType, str(self.dtype)))


@node
class PointerType(Type):
    """A pointer to elements of type `element_type`, in memory of `storage_scope`."""

    element_type: Type
    storage_scope: str = "global"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PointerType)
            and self.storage_scope == other.storage_scope
            and self.element_type == other.element_type
        )

    def __hash__(self) -> int:
        return hash((PointerType, self.storage_scope))


@node
class TupleType(Type):
    """Several values; with no fields, the type of a function that returns nothing."""

    fields: tuple[Type, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleType) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((TupleType, len(self.fields)))


def dtype_of_type(annotation: Type) -> DataType:
    """The dtype a variable of this type shows: pointers are handles."""
    return annotation.dtype if isinstance(annotation, PrimType) else HANDLE
