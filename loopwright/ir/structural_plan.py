"""What structural equality and structural hash share: which fields bind, and in which order fields are met."""

from __future__ import annotations

import math
import struct
from enum import Enum
from typing import Any, Final

import numpy as np

from loopwright.ir.buffer import MatchBufferRegion
from loopwright.ir.expr import CommReducer, IntImm, Let, Reduce, StringImm
from loopwright.ir.function import PrimFunc
from loopwright.ir.node import FieldKind, Node
from loopwright.ir.stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BufferRealize,
    DeclBuffer,
    For,
    LetStmt,
)
from loopwright.runtime.dtype import BOOL, INT32


class Role(Enum):
    """How a field takes part in a comparison."""

    NODE = "one node, or None"
    NODES = "a tuple of nodes"
    MAPPING = "a mapping to nodes"
    DATA = "plain data"
    BIND = "a variable that is bound here"
    BINDS = "variables that are bound here"
    DECLARE = "a buffer that is declared here"
    DECLARES = "buffers that are declared here"


_ROLES: Final = {
    FieldKind.NODE: Role.NODE,
    FieldKind.OPTIONAL: Role.NODE,
    FieldKind.NODES: Role.NODES,
    FieldKind.MAPPING: Role.MAPPING,
    FieldKind.DATA: Role.DATA,
}
# What is evaluated outside a binding comes before it, what sees it after it.
_ORDER: Final[dict[type[Node], str]] = {
    For: "min extent kind annotations loop_var thread_binding body",
    LetStmt: "value var body",
    Let: "value var body",
    Allocate: "dtype extents condition annotations buffer_var body",
    AllocateConst: "dtype extents data annotations buffer_var body",
    # A block's name is no part of what it computes; the comparisons that want it ask for it.
    Block: "iter_vars alloc_buffers match_buffers reads writes annotations init body",
    MatchBufferRegion: "source buffer",
    Reduce: "combiner axis source condition value_index init",
}
_DECLARES: Final[dict[type[Node], str]] = {
    DeclBuffer: "buffer",
    BufferRealize: "buffer",
    MatchBufferRegion: "buffer",
    Block: "alloc_buffers",
}
# A buffer binds its memory and the variables that are new in its sizes, strides and offset.
BUFFER_FIELDS: Final[dict[str, Role]] = {
    "dtype": Role.DATA,
    "shape": Role.NODES,
    "strides": Role.NODES,
    "elem_offset": Role.NODE,
    "data": Role.NODE,
    "data_alignment": Role.DATA,
    "offset_factor": Role.DATA,
    "buffer_type": Role.DATA,
    "axis_separators": Role.DATA,
}
# Classes at whose end the bindings made inside them end.
SCOPES: Final = (
    For,
    LetStmt,
    Let,
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BufferRealize,
    CommReducer,
    DeclBuffer,
    PrimFunc,
    Reduce,
)


class _Plans(dict[type, tuple[tuple[str, Role], ...]]):
    """Node class → its fields in the order they are met, with their roles."""

    def __missing__(self, cls: type[Node]) -> tuple[tuple[str, Role], ...]:
        fields = {field.name: field for field in cls.node_fields}
        result = []
        for name in _ORDER[cls].split() if cls in _ORDER else fields:
            role = _ROLES[fields[name].kind]
            if _DECLARES.get(cls) == name:
                role = Role.DECLARES if role is Role.NODES else Role.DECLARE
            # A block binds its axes through the IterVar nodes themselves.
            elif fields[name].binds and not (cls is Block and name == "iter_vars"):
                role = Role.BINDS if role is Role.NODES else Role.BIND
            result.append((name, role))
        self[cls] = tuple(result)
        return self[cls]


PLANS: Final = _Plans()


def plain_value(value: object) -> object:
    """A literal inside annotations as the Python value that stands for it."""
    if isinstance(value, IntImm):
        if value.dtype is INT32:
            return value.value
        if value.dtype is BOOL:
            return bool(value.value)
    if isinstance(value, StringImm):
        return value.value
    if isinstance(value, np.generic):
        return value.item()
    return value


def elements(value: object) -> object:
    """The elements of a tensor as an array; anything else as it is."""
    numpy = getattr(value, "numpy", None) if hasattr(value, "__dlpack__") else None
    return value if numpy is None else numpy()


def float_bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("<d", value)


class ByClass(dict[type, Any]):
    """Class → how to treat it, also for subclasses; None for classes without special treatment."""

    def __missing__(self, cls: type) -> Any:
        result = self[cls] = next((self[base] for base in cls.__mro__[1:] if base in self), None)
        return result

    def get(self, cls: type, default: object = None) -> Any:
        return self[cls]
