"""Places: what the pointers and offsets in calls of instructions mean, as the code of one address.

    T.ptx_cp_async("float16", S.data, i * 8, T.address_of(A[k, 0]), j, 16)         &S[i * 8], &A[k * 64 + j]

An offset counts elements of the type that the call names. A pointer is that of a buffer, the address of an element, or
any other expression of a pointer.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from loopwright import ir
from loopwright.analysis.thread_axes import scope_of
from loopwright.analysis.wide_accesses import aligned_for
from loopwright.codegen.source.code import UNARY, Code, nested
from loopwright.codegen.source.expressions import Bodies
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.names import Names
from loopwright.codegen.source.statements import SourceStatements
from loopwright.codegen.source.types import memory_type
from loopwright.ir.tensor_copy_intrinsics import TensorMapFields
from loopwright.runtime.dtype import DataType


class MemoryWriter(SourceStatements):
    """Writes statements of a kernel, and knows where its memory begins."""

    def __init__(self, helpers: Helpers, names: Names, bodies: Bodies, is_aligned: bool) -> None:
        super().__init__(helpers, names, bodies)
        self.is_aligned = is_aligned  # whether what the kernel is given may be accessed wide
        self.given: dict[ir.Var, int] = {}  # parameters, by position
        self.alignments: dict[ir.Var, int] = {}  # parameters that have to be multiples
        self.wide = frozenset[ir.Var]()  # memory of the kernel's own that is accessed wide
        self.tensor_maps: dict[ir.Var, TensorMapFields] = {}  # among the parameters

    def address(self, buffer: ir.Buffer, index: Code) -> str:
        """Where buffer[index] begins."""
        return str(self.visit_Var(buffer.data)) if index == "0" else f"&{self.element(buffer, index)}"


class Place(NamedTuple):
    """Where an operand of an instruction begins."""

    memory: ir.Var | None  # None: it is not known what the pointer points into
    at: ir.Expr  # in elements of dtype, from the beginning of the memory or from the pointer
    pointer: ir.Expr
    dtype: DataType

    @property
    def scope(self) -> str:
        """The scope of the memory; the empty text where it is not known."""
        return "" if self.memory is None else scope_of(self.memory) or "global"

    def code(self, writer: MemoryWriter) -> Code:
        """The address."""
        index = writer.index(self.at)
        if self.memory is not None:
            buffer = ir.decl_buffer((1,), self.dtype, data=self.memory)
            return Code(writer.address(buffer, index), UNARY, index.depth + 1)
        pointer = writer.value(self.pointer)
        text = f"({memory_type(self.dtype)} *){pointer.within(UNARY)}"
        return Code(text if index == "0" else f"&({text})[{index}]", UNARY, nested(pointer, index))


def place(pointer: ir.Expr, offset: ir.Expr, dtype: DataType) -> Place:
    """`offset` elements of `dtype` after `pointer`."""
    dtype = dtype.element
    if isinstance(pointer, ir.Var):
        return Place(pointer, offset, pointer, dtype)
    element = pointed_element(pointer)
    if element is not None and element.buffer.dtype.nbytes == dtype.nbytes and len(element.indices) == 1:
        first = element.indices[0]
        if isinstance(offset, ir.IntImm) and offset.value == 0:
            return Place(element.buffer.data, first, pointer, dtype)
        return Place(element.buffer.data, first + ir.cast(offset, first.dtype), pointer, dtype)
    if _is_access(pointer) and pointer.args[0].dtype.nbytes == dtype.nbytes:
        data, first = pointer.args[1:3]
        assert isinstance(data, ir.Var)
        is_first = isinstance(offset, ir.IntImm) and offset.value == 0
        return Place(data, first if is_first else first + ir.cast(offset, first.dtype), pointer, dtype)
    return Place(None, offset, pointer, dtype)


def _is_access(pointer: ir.Expr) -> TypeGuard[ir.Call]:
    """Whether it is a pointer that `access_ptr` of a buffer gives."""
    if not isinstance(pointer, ir.Call) or pointer.op.name != "tir.tvm_access_ptr":
        return False
    return isinstance(pointer.args[1], ir.Var)


def pointed_element(pointer: ir.Expr) -> ir.BufferLoad | None:
    """The element that the pointer is the address of."""
    if isinstance(pointer, ir.Call) and pointer.op.name == "tir.address_of":
        element = pointer.args[0]
        return element if isinstance(element, ir.BufferLoad) else None
    return None


def pointed_memory(pointer: ir.Expr) -> ir.Var | None:
    """The memory that the pointer points into."""
    if _is_access(pointer):
        data = pointer.args[1]
        return data if isinstance(data, ir.Var) else None
    element = pointed_element(pointer)
    return pointer if isinstance(pointer, ir.Var) else None if element is None else element.buffer.data


def is_aligned(writer: MemoryWriter, where: Place, size: int) -> bool:
    """Whether the address is a multiple of `size` bytes; takes note of what whoever launches has to give for that."""
    if where.memory is None:
        return False
    if where.memory not in writer.given:
        has_room = size % where.dtype.nbytes == 0 and where.memory in writer.wide
        return has_room and aligned_for(where.at, size // where.dtype.nbytes) is not None
    if not writer.is_aligned or size % where.dtype.nbytes != 0:
        return False
    lanes = size // where.dtype.nbytes
    sizes = aligned_for(where.at, lanes, writer.given)
    if sizes is None:
        return False
    for var, multiple in {**dict.fromkeys(sizes, lanes), where.memory: size}.items():
        writer.alignments[var] = max(multiple, writer.alignments.get(var, 1))
    return True
