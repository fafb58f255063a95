"""ProvedInBounds: which loads stay within memory that is there: what the function allocated, or was called with.

The size of an argument is checked at the call. Such a load may happen where the program would leave it out: of two
sides of an if_then_else, both may be evaluated.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.arith.index_arithmetic import IndexArithmetic
from loopwright.ir import Allocate, Buffer, BufferLoad, IntImm, Var
from loopwright.runtime.dtype import DataType


class ProvedInBounds:
    """The memory that is allocated around a statement, and the ranges of the loops around it."""

    def __init__(self) -> None:
        self.facts = Analyzer()
        self.numbers = IndexArithmetic()  # which variables hold data
        self._sizes: dict[Var, tuple[DataType, int]] = {}

    def add(self, node: Allocate) -> None:
        """Take note of memory; variables are defined once, so it need not be forgotten."""
        is_there = isinstance(node.condition, IntImm) and bool(node.condition.value)
        if is_there and len(node.extents) == 1 and isinstance(node.extents[0], IntImm):
            self._sizes[node.buffer_var] = (node.dtype, int(node.extents[0].value))

    def add_argument(self, buffer: Buffer) -> None:
        """Take note of an argument whose size is known and checked: all of it is there."""
        if buffer.strides or not isinstance(buffer.elem_offset, IntImm) or buffer.elem_offset.value != 0:
            return
        count = 1
        for extent in buffer.shape:
            if not isinstance(extent, IntImm):
                return
            count *= extent.value
        self._sizes[buffer.data] = (buffer.dtype, count)

    def holds(self, load: BufferLoad) -> bool:
        """Whether a load is within its memory, whatever the values of the loops around it are."""
        dtype, size = self._sizes.get(load.buffer.data, (None, 0))
        if len(load.indices) != 1 or load.buffer.dtype != dtype or load.dtype.lanes > 1:
            return False
        offset = load.buffer.elem_offset
        if offset is not None and not (isinstance(offset, IntImm) and offset.value == 0):
            return False
        result = self.facts.const_int_bound(load.indices[0])
        return result.min_value >= 0 and result.max_value < size
