"""arguments: what a task is measured with: seeded random inputs by type and shape, in memory with canaries around it.

    arguments = make_arguments(task, seed=0)
    call = arguments.fresh()              written arrays are copies, others are shared
    function(*call.values)
    call.damage()                         None, or which array has been written where it must not

Numbers are small, so that sums and exponentials stay finite, and integers that index something are in range. A
parameter that is written gets values as well: a program that leaves an element as it was is found out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from loopwright.analysis.written_memory import written_arguments
from loopwright.display.quantities import bytes_text
from loopwright.ir import Buffer, Expr, IntImm
from loopwright.runtime.dtype import DataType
from loopwright.tune.measure.errors import UnmeasurableTask, WrongArguments
from loopwright.tune.measure.integer_limits import integer_limits
from loopwright.tune.task import Task

_PAGE: Final = 4096
_CANARY: Final = 0xA5
_MARGIN: Final = 4096  # bytes of canary before and behind each array
_SPREAD: Final = 0.125  # of floats: a sum of some thousand products, and its exponential, are of ordinary size
_MOST_INTEGER: Final = 100
_POSITIVE: Final = (0.1, 1.0)


@dataclass(frozen=True)
class Call:
    """The arguments of some calls: values in order, and the memory that each array has to itself."""

    values: tuple[Any, ...]
    rooms: tuple[np.ndarray | None, ...]  # bytes, canaries included
    written: tuple[int, ...]
    sums: dict[int, int]  # of the arrays that are only read

    @property
    def outputs(self) -> list[np.ndarray]:
        """The written arrays, in order."""
        return [self.values[position] for position in self.written]

    def damage(self) -> str | None:
        """Which memory was written that must not be; None where none was."""
        for position, room in enumerate(self.rooms):
            if room is None:
                continue
            margins = (room[:_MARGIN], room[-_MARGIN:])
            for side, margin in zip(("before", "behind"), margins, strict=True):
                if (margin != _CANARY).any():
                    return f"memory {side} argument {position + 1} was written"
            if position in self.sums and _sum(room) != self.sums[position]:
                return f"argument {position + 1}, which is only read, was written"
        return None


@dataclass(frozen=True)
class Arguments:
    """Values for each parameter; `written` are the positions of what the function writes."""

    values: tuple[Any, ...]
    written: tuple[int, ...]

    def fresh(self) -> Call:
        """Arguments of which the written ones are copies, with what they held before."""
        template = self.template
        values, rooms = list(template.values), list(template.rooms)
        for position in self.written:
            values[position], rooms[position] = _guarded(self.values[position])
        return Call(tuple(values), tuple(rooms), self.written, template.sums)

    def absolute(self) -> Arguments:
        """The same with the absolute values of all floats."""
        return Arguments(tuple([_absolute(value) for value in self.values]), self.written)

    @functools.cached_property
    def template(self) -> Call:
        """What all calls share; made before a fork it is there in every child."""
        values, rooms = list(self.values), list[np.ndarray | None]([None] * len(self.values))
        for position, value in enumerate(self.values):
            if isinstance(value, np.ndarray) and position not in self.written:
                values[position], rooms[position] = _guarded(value)
        sums = {position: _sum(room) for position, room in enumerate(rooms) if room is not None}
        return Call(tuple(values), tuple(rooms), self.written, sums)


def make_arguments(task: Task, seed: int, positive: bool = False) -> Arguments:
    """Arguments drawn at random, always the same for a seed; `positive` floats suit logarithms and square roots."""
    function, random = task.function, np.random.default_rng(seed)
    limits, values = integer_limits(function), list[Any]()
    for param in function.params:
        buffer = function.buffer_map.get(param)
        if buffer is not None:
            shape = [_size(task, param.name, extent) for extent in buffer.shape]
            strides = [_size(task, param.name, stride) for stride in buffer.strides]
            # numpy makes a scalar of an array without axes wherever it computes with one
            numbers = np.asarray(_draw(random, shape, buffer.dtype, limits.get(buffer), positive))
            values.append(_strided(numbers, strides) if strides else numbers)
        elif DataType(str(param.dtype)).is_float:
            values.append(0.5)
        elif str(param.dtype) != "handle":
            values.append(1)
        else:
            raise UnmeasurableTask(task.name, param.name, "it is a bare pointer")
    return Arguments(tuple(values), tuple(written_arguments(function)))


def require_room(task: Task, most: int) -> None:
    """Refuse a task whose arrays cannot be made up, or take more bytes than a process may."""
    sizes: dict[str, int] = {}
    for param in task.function.params:
        buffer = task.function.buffer_map.get(param)
        if buffer is not None:
            extents = [_size(task, param.name, extent) for extent in buffer.shape]
            sizes[param.name] = prod(extents) * buffer.dtype.numpy().itemsize * buffer.dtype.lanes
        elif str(param.dtype) == "handle":
            raise UnmeasurableTask(task.name, param.name, "it is a bare pointer")
    if sum(sizes.values()) > most:
        largest = max(sizes, key=lambda name: sizes[name])
        why = f"the arrays take {bytes_text(sum(sizes.values()))}, and a process may take {bytes_text(most)}"
        raise UnmeasurableTask(task.name, largest, why, "tune a smaller size, or allow more: `Measurer(memory=…)`")


def given_arguments(task: Task, values: Sequence[Any]) -> Arguments:
    """The arguments that a user wants to measure with; sizes that are not known may then be any."""
    function = task.function
    if len(values) != len(function.params):
        raise WrongArguments(task.name, f"it has {len(function.params)} parameters, not {len(values)}")
    for position, (param, value) in enumerate(zip(function.params, values, strict=True), 1):
        buffer = function.buffer_map.get(param)
        if (buffer is not None) != isinstance(value, np.ndarray):
            wanted = "an array" if buffer is not None else "a number"
            raise WrongArguments(task.name, f"argument {position} must be {wanted}, not {type(value).__name__}")
        if buffer is not None:
            _check_array(task, position, buffer, value)
    return Arguments(tuple(values), tuple(written_arguments(function)))


def _check_array(task: Task, position: int, buffer: Buffer, value: np.ndarray) -> None:
    wanted = [int(extent) if isinstance(extent, IntImm) else None for extent in buffer.shape]
    fits = len(wanted) == value.ndim and all([w in (None, n) for w, n in zip(wanted, value.shape, strict=True)])
    if not fits or value.dtype != buffer.dtype.numpy():
        shape = ", ".join(map(str, buffer.shape))
        given = f"{value.dtype} of shape {value.shape}"
        raise WrongArguments(task.name, f"argument {position} must be {buffer.dtype} of shape ({shape}), not {given}")


def _size(task: Task, name: str, size: Expr) -> int:
    if not isinstance(size, IntImm):
        raise UnmeasurableTask(task.name, name, f"the size {size} is not a number")
    return int(size)


def _draw(
    random: np.random.Generator, shape: list[int], dtype: DataType, limit: int | None, positive: bool
) -> np.ndarray:
    kind = dtype.numpy()
    lanes = [*shape, dtype.lanes] if dtype.lanes > 1 else shape
    if dtype.is_bool:
        return random.integers(0, 2, lanes).astype(kind)
    if dtype.is_float or dtype.kind.endswith("float"):
        if positive:
            return random.uniform(*_POSITIVE, lanes).astype(kind)
        return (random.standard_normal(lanes, np.float32) * np.float32(_SPREAD)).astype(kind)
    if limit is not None:
        return random.integers(0, max(1, limit), lanes).astype(kind)
    most = min(_MOST_INTEGER, int(dtype.max_value())) if dtype.bits > 16 else int(dtype.max_value())
    least = max(int(dtype.min_value()), -most) if dtype.bits <= 16 else 1
    numbers = random.integers(least, most + 1, lanes)
    return np.where(numbers == 0, 1, numbers).astype(kind)  # it may be divided by


def _strided(numbers: np.ndarray, strides: list[int]) -> np.ndarray:
    """The numbers in memory with these strides, in elements."""
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(numbers.shape, strides, strict=True))
    flat = np.zeros(max(1, reach), numbers.dtype)
    itemsize = numbers.dtype.itemsize
    result = np.lib.stride_tricks.as_strided(flat, numbers.shape, [stride * itemsize for stride in strides])
    result[...] = numbers
    return result


def _guarded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A copy that begins with a page, with the same strides, and its memory with canaries on either side."""
    strides = array.strides if array.size else ()
    compact = array.flags.c_contiguous or not array.size
    reach = array.nbytes
    if not compact:
        reach = array.itemsize + sum((n - 1) * stride for n, stride in zip(array.shape, strides, strict=True))
    whole = np.full(reach + 2 * _MARGIN + _PAGE, _CANARY, np.uint8)
    start = -(whole.ctypes.data + _MARGIN) % _PAGE
    room = whole[start : start + reach + 2 * _MARGIN]
    data = room[_MARGIN : _MARGIN + reach]
    copy = np.ndarray(array.shape, array.dtype, data, strides=None if compact else strides)
    copy[...] = array
    return copy, room


def _absolute(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fV":
        return np.abs(value)
    return value


def _sum(room: np.ndarray) -> int:
    words = room[: room.size // 8 * 8].view(np.uint64)
    return int(words.sum(dtype=np.uint64)) + int(room[room.size // 8 * 8 :].sum())
