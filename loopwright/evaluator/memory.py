"""Memory as programs see it: bytes behind a pointer, read and written through a typed view.

Reading a Python memoryview costs 45 ns an element, a third of a numpy array, and a store to a view of C floats rounds
by itself. Types without a C counterpart (float16, bfloat16, float8) are kept as integers and decoded by table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from loopwright.evaluator.arithmetic import to_bytes, wrapping
from loopwright.evaluator.values import Value
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import NotBuilt

_FORMATS: Final = {
    "int1": "b",
    "int2": "b",
    "uint2": "B",
    "int4": "b",
    "uint4": "B",
    "int8": "b",
    "uint8": "B",
    "bool": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "H",
    "bfloat16": "H",
    "e4m3_float8": "B",
    "e5m2_float8": "B",
    "float32": "f",
    "float64": "d",
}


@cache
def decoder(dtype: DataType) -> Sequence[Value] | None:
    """A table from the stored integer to the value, for types whose view holds something else than values."""
    if dtype.is_bool:
        return [False] + [True] * 255
    if dtype.is_int and dtype.bits < 8:
        # A byte each, whose upper bits mean nothing. In the view of a signed type 0xFF is -1: the table's last row.
        wrap = wrapping(dtype)
        return [wrap(byte) for byte in range(256)]
    if not dtype.is_float or dtype.bits > 16:
        return None
    bits = np.arange(1 << dtype.bits, dtype=f"uint{dtype.bits}")
    table: list[float] = bits.view(dtype.numpy()).astype(np.float64).tolist()
    return table


def encoder(dtype: DataType) -> Callable[[Value], Value] | None:
    """From a value to the stored integer, for the same types."""
    if dtype.is_bool:
        return bool
    if not dtype.is_float or dtype.bits > 16:
        return None
    return lambda value: int.from_bytes(to_bytes(value, dtype), "little")


class Memory:
    """A piece of memory; `written` has a flag for each element of `unit` bytes, or is None when all hold values."""

    __slots__ = ("data", "unit", "views", "written")

    def __init__(self, data: memoryview, unit: int, written: bytearray | None) -> None:
        self.data, self.unit, self.written = data, unit, written
        self.views: dict[tuple[str, int], memoryview[Value]] = {}  # by element, and where the first one begins

    @staticmethod
    def allocate(count: int, dtype: DataType, track: bool = True) -> Memory:
        """Fresh memory for `count` elements, all without value."""
        count = max(count, 0)
        # A view of no elements cannot be cast: there is always some memory, and indices are checked elsewhere.
        size = max(-(-count * dtype.nbytes // 16) * 16, 16)
        return Memory(memoryview(bytearray(size)), dtype.nbytes, bytearray(count) if track else None)

    @staticmethod
    def of_array(array: np.ndarray) -> Memory:
        """The memory of a one-dimensional array, shared with it."""
        if array.size == 0:
            return Memory(memoryview(bytearray(16)), array.itemsize, None)
        return Memory(memoryview(array.view(np.uint8).data), array.itemsize, None)

    def view(self, dtype: DataType, begin: int = 0) -> memoryview[Value]:
        """The memory as elements of `dtype`, the first of them `begin` bytes in (less than one element)."""
        name = dtype.element
        result = self.views.get((name, begin))
        if result is None:
            if name not in _FORMATS:
                raise NotBuilt(f"evaluation with memory of {dtype} elements")
            whole = (len(self.data) - begin) // dtype.nbytes * dtype.nbytes
            element: Any = _FORMATS[name]
            result = self.data[begin : begin + whole].cast(element)
            self.views[name, begin] = result
        return result

    def count_as_written(self) -> None:
        """Somebody else had the memory, and may have written all of it."""
        if self.written is not None:
            self.written[:] = b"\x01" * len(self.written)


class _OtherUnit:
    """The flags of memory that is seen with elements of another size than it was allocated with."""

    def __init__(self, written: bytearray, unit: int, size: int, offset: int) -> None:
        self.written, self.unit, self.size, self.offset = written, unit, size, offset

    def _covered(self, index: int) -> range:
        begin = self.offset + index * self.size
        return range(begin // self.unit, (begin + self.size - 1) // self.unit + 1)

    def __getitem__(self, index: int) -> bool:
        return all(self.written[unit] for unit in self._covered(index))

    def __setitem__(self, index: int, value: int) -> None:
        for unit in self._covered(index):
            self.written[unit] = value


class Pointer:
    """A place in memory, `offset` bytes from its start."""

    __slots__ = ("memory", "offset")

    def __init__(self, memory: Memory, offset: int = 0) -> None:
        self.memory, self.offset = memory, offset

    def moved(self, count: int, dtype: DataType) -> Pointer:
        """The pointer `count` elements further on."""
        return Pointer(self.memory, self.offset + count * dtype.nbytes) if count else self

    def view(self, dtype: DataType) -> memoryview[Value]:
        """The elements from here on; what lies before is out of reach."""
        if self.offset == 0:
            return self.memory.view(dtype)
        before, rest = divmod(self.offset, dtype.nbytes)
        return self.memory.view(dtype, rest)[before:]

    def flags(self, dtype: DataType) -> bytearray | _OtherUnit | None:
        """Which elements of that view hold a value: None when all do."""
        memory = self.memory
        if memory.written is None:
            return None
        if memory.unit == dtype.nbytes and self.offset == 0:
            return memory.written
        return _OtherUnit(memory.written, memory.unit, dtype.nbytes, self.offset)
