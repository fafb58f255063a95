"""Arguments: numpy arrays and numbers become what the parameters of a function stand for.

Symbolic shapes and strides take their values from the arrays; every other extent, stride and type is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from loopwright.analysis.needed_pointers import needed_handles
from loopwright.analysis.written_memory import written_pointers
from loopwright.evaluator.arithmetic import rounding, wrapping
from loopwright.evaluator.expressions import ExpressionCompiler
from loopwright.evaluator.memory import Memory, Pointer
from loopwright.evaluator.values import Value
from loopwright.ir import Buffer, Expr, IntImm, PrimFunc, Var
from loopwright.ir.argument_sizes import Solution, solved_sizes
from loopwright.ir.buffer import DEFAULT_ALIGNMENT
from loopwright.runtime.call_errors import (
    SEPARATOR,
    ArgumentCountMismatch,
    ArgumentKindMismatch,
    DtypeMismatch,
    MisalignedArgument,
    NullArgument,
    OverlappingArguments,
    RankMismatch,
    ShapeMismatch,
    StrideMismatch,
)
from loopwright.runtime.dlpack import not_exported
from loopwright.runtime.dtype import DataType


class Array(NamedTuple):
    """An array argument; shape and strides are None when only a pointer is known."""

    pointer: Value
    dtype: DataType | None
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None  # in elements
    address: int = 0  # of its first element; 0 when it is not known


def as_array(value: object, name: str, function: str) -> Array:
    """`value` (a numpy array, or anything that speaks DLPack) as an argument; memory is shared, not copied."""
    if not isinstance(value, np.ndarray):
        if not hasattr(value, "__dlpack__"):
            raise ArgumentKindMismatch(
                f"{function}: argument {name} is a {type(value).__name__}, expected an array"
                f"{SEPARATOR}{SEPARATOR}pass a numpy array"
            )
        try:
            value = np.from_dlpack(value)
        except Exception as error:  # whatever the exporting code raises, which is not ours
            raise ArgumentKindMismatch(f"{function}: argument {name}: {not_exported(value, error)}") from error
    size = value.itemsize
    if any(stride % size or stride < 0 for stride in value.strides):
        raise StrideMismatch(
            f"{function}: argument {name} has byte strides {value.strides}, which are not whole, forward steps of its "
            f"{size}-byte elements{SEPARATOR}{SEPARATOR}"
            "pass numpy.ascontiguousarray(...); copy one that is written back"
        )
    strides = tuple([stride // size for stride in value.strides])
    if value.size and not value.flags.c_contiguous:
        span = 1 + sum([(extent - 1) * stride for extent, stride in zip(value.shape, strides, strict=True)])
        flat = np.lib.stride_tricks.as_strided(value, (span,), (size,), writeable=bool(value.flags.writeable))
    else:
        flat = value.reshape(-1)
        strides = _compact(value.shape)
    pointer = Pointer(Memory.of_array(flat))
    return Array(pointer, DataType(value.dtype), tuple(value.shape), strides, value.__array_interface__["data"][0])


def _compact(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def as_scalar(value: object, var: Var, function: str) -> Value:
    """A number as a value of the parameter's type."""
    dtype = var.dtype
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        if dtype.is_bool:
            return bool(value)
        if dtype.is_float:
            return rounding(dtype)(float(value))
        if dtype.is_int and isinstance(value, int):
            if dtype.min_value() <= value <= dtype.max_value():
                return int(value)
            raise DtypeMismatch(f"{function}: argument {var.name} is {value}, which does not fit {dtype}")
    if dtype.kind == "handle" and value is None:
        return None
    raise ArgumentKindMismatch(
        f"{function}: argument {var.name} is a {type(value).__name__}, expected a number of type {dtype}"
    )


class Parameters:
    """Compiles how the arguments of one function give its variables their values."""

    def __init__(
        self, compiler: ExpressionCompiler, func: PrimFunc, functions: Mapping[str, PrimFunc] | None = None
    ) -> None:
        self.compiler, self.func = compiler, func
        self.needed = needed_handles(func, functions or {})
        self.written = written_pointers(func)
        self.setters: list[Callable[[Value], None]] = []
        for param in func.params:
            if param in func.buffer_map:
                self.setters.append(self._array_setter(param, func.buffer_map[param]))
            else:
                self.setters.append(compiler.binder(param))
        # Variables first, everything else in terms of them: a shape may use a variable that a later array gives.
        self.bindings: list[Callable[[Sequence[Value]], None]] = []
        self.checks: list[Callable[[Sequence[Value]], None]] = []
        later: list[Callable[[], None]] = []
        for position, param in enumerate(func.params):
            buffer = func.buffer_map.get(param)
            if buffer is not None:
                for axis, size in enumerate(buffer.shape):
                    self._extent(position, buffer, axis, size, later)
                for axis, stride in enumerate(buffer.strides):
                    self._stride(position, buffer, axis, stride, later)
                self._offset(buffer, later)
        for solution in solved_sizes(func):
            self._solve(solution)
        for make in later:
            make()

    def _array_setter(self, param: Var, buffer: Buffer) -> Callable[[Value], None]:
        frame, slot = self.compiler.frame, self.compiler.slot(param)
        bind = self.compiler.pointer(buffer.data)

        def set_array(array: Array) -> None:
            frame[slot] = array
            bind(array.pointer)

        return set_array

    def _extent(self, position: int, buffer: Buffer, axis: int, size: Expr, later: list[Callable[[], None]]) -> None:
        def actual(values: Sequence[Value]) -> Value:
            return None if values[position].shape is None else values[position].shape[axis]

        def wrong(values: Sequence[Value], expected: int) -> Exception:
            declared = [extent.value if isinstance(extent, IntImm) else None for extent in buffer.shape]
            declared[axis] = expected
            shape = ", ".join(["?" if extent is None else str(extent) for extent in declared])
            return ShapeMismatch(
                f"{self.func.name}: argument {buffer.name} has shape {values[position].shape}, expected "
                f"({shape}{',' * (len(declared) == 1)}){SEPARATOR}dimension {axis} is {actual(values)} instead of "
                f"{expected}"
            )

        self._bind_or_check(size, actual, wrong, later)

    def _stride(self, position: int, buffer: Buffer, axis: int, stride: Expr, later: list[Callable[[], None]]) -> None:
        broadcasts = buffer.buffer_type == "auto_broadcast"

        def actual(values: Sequence[Value]) -> Value:
            array = values[position]
            if array.strides is None:
                return None
            return 0 if broadcasts and array.shape[axis] == 1 else array.strides[axis]

        def wrong(values: Sequence[Value], expected: int) -> Exception | None:
            if values[position].shape[axis] <= 1 and not broadcasts:
                return None  # the stride of a unit dimension is never used
            return StrideMismatch(
                f"{self.func.name}: argument {buffer.name} has stride {actual(values)} in dimension {axis}, "
                f"expected {expected}"
            )

        self._bind_or_check(stride, actual, wrong, later)

    def _offset(self, buffer: Buffer, later: list[Callable[[], None]]) -> None:
        """An array's first element is where its memory begins, so an offset that is declared must be 0."""

        def wrong(values: Sequence[object], expected: int) -> Exception:
            return StrideMismatch(
                f"{self.func.name}: argument {buffer.name} starts 0 bytes into its memory, expected "
                f"{expected * buffer.dtype.nbytes * buffer.dtype.lanes}{SEPARATOR}{buffer.name} is declared with "
                f"elem_offset={buffer.elem_offset}{SEPARATOR}leave elem_offset out, or make it a variable, to accept "
                "any tensor"
            )

        if not isinstance(buffer.elem_offset, IntImm) or buffer.elem_offset.value != 0:
            self._bind_or_check(buffer.elem_offset, lambda values: 0, wrong, later)

    def _solve(self, solution: Solution) -> None:
        """A variable that stands only inside an expression; where it does not come out even, the check refuses."""
        entry, scale = solution.entry, solution.scale
        position = [self.func.buffer_map.get(param) for param in self.func.params].index(entry.buffer)
        rest, bind = self.compiler.visit(solution.rest), self.compiler.binder(solution.var)

        def set_variable(values: Sequence[Value]) -> None:
            numbers = values[position].shape if entry.part == "shape" else values[position].strides
            if numbers is not None:
                difference = numbers[entry.axis] - rest()
                bind(difference // scale if (difference < 0) == (scale < 0) else -(-difference // scale))

        self.bindings.append(set_variable)

    def _bind_or_check(
        self,
        declared: Expr,
        actual: Callable[[Sequence[Value]], Value],
        wrong: Callable[[Sequence[Value], int], Exception | None],
        later: list[Callable[[], None]],
    ) -> None:
        if isinstance(declared, Var) and declared not in self.compiler.slots:
            bind, wrap = self.compiler.binder(declared), wrapping(declared.dtype)

            def bind_actual(values: Sequence[Value]) -> None:
                result = actual(values)
                if result is not None and wrap(result) != result:  # more than the variable can say
                    error = wrong(values, wrap(result))
                    if error is not None:
                        raise error
                    result = wrap(result)
                bind(result)

            self.bindings.append(bind_actual)
            return

        def make() -> None:
            expected = self.compiler.visit(declared)

            def check(values: Sequence[Value]) -> None:
                result = actual(values)
                if result is not None and result != expected():
                    error = wrong(values, expected())
                    if error is not None:
                        raise error

            self.checks.append(check)

        later.append(make)

    def set(self, values: Sequence[object]) -> None:
        """Give every parameter its value (see `convert`), and check the shapes."""
        for setter, value in zip(self.setters, values, strict=True):
            setter(value)
        for bind in self.bindings:
            bind(values)
        for check in self.checks:
            check(values)

    def convert(self, arguments: Sequence[object]) -> list[Value]:
        """The user's arguments as values of the parameters."""
        func = self.func
        check_count(func, arguments)
        values = []
        for param, argument in zip(func.params, arguments, strict=True):
            buffer = func.buffer_map.get(param)
            if buffer is not None:
                array = as_array(argument, buffer.name, func.name)
                values.append(check_array(func.name, buffer, array))
            elif param.dtype.kind == "handle" and argument is not None:
                values.append(as_array(argument, param.name, func.name).pointer)
            elif argument is None and param in self.needed:
                raise NullArgument(
                    f"{func.name}: argument {param.name} is a null pointer{SEPARATOR}"
                    f"{func.name} reads or writes what {param.name} points to{SEPARATOR}pass an array"
                )
            else:
                values.append(as_scalar(argument, param, func.name))
        self._check_apart(values)
        return values

    def _check_apart(self, values: Sequence[Value]) -> None:
        """What is written shares no memory with another argument, and no two of its elements do."""
        name, buffers = self.func.name, self.func.buffer_map
        arrays = [(buffers[p], value) for p, value in zip(self.func.params, values, strict=True) if p in buffers]
        for buffer, array in arrays:
            if buffer.data in self.written and not elements_apart(array.shape, array.strides):
                raise OverlappingArguments(
                    f"{name}: argument {buffer.name} has shape {array.shape} and strides {array.strides}: two of its "
                    f"elements may share memory{SEPARATOR}{buffer.name} is written; each element must have memory of "
                    f"its own{SEPARATOR}pass an array of its own, and copy from it what is needed"
                )
        if not self.func.attrs.get("tir.noalias", True):
            return
        for (first, one), (second, other) in combinations(arrays, 2):
            if not (first.data in self.written or second.data in self.written):
                continue
            (low, high), (begin, end) = _addresses(first, one), _addresses(second, other)
            if low < end and begin < high:
                output, read = (first, second) if first.data in self.written else (second, first)
                raise OverlappingArguments(
                    f"{name}: arguments {first.name} and {second.name} overlap in memory{SEPARATOR}"
                    f"{output.name} is written while {read.name} is in use{SEPARATOR}"
                    f"pass a copy of {read.name}, or write to fresh memory"
                )


def elements_apart(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the stride of each axis reaches beyond all elements along the axes of smaller strides."""
    reach = 0
    for stride, extent in sorted([(abs(stride), extent) for extent, stride in zip(shape, strides, strict=True)]):
        if extent > 1:
            if stride <= reach:
                return 0 in shape
            reach += (extent - 1) * stride
    return True


def _addresses(buffer: Buffer, array: Array) -> tuple[int, int]:
    """Where the memory of an array begins and ends."""
    assert array.shape is not None and array.strides is not None
    if 0 in array.shape:
        return array.address, array.address
    last = sum([(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)])
    return array.address, array.address + (last + 1) * buffer.dtype.nbytes * buffer.dtype.lanes


def check_count(func: PrimFunc, arguments: Sequence[object]) -> None:
    """Refuse too many or too few arguments."""
    if len(arguments) != len(func.params):
        names = [func.buffer_map[p].name if p in func.buffer_map else p.name for p in func.params]
        raise ArgumentCountMismatch(
            f"{func.name} takes {len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)}), "
            f"got {len(arguments)}"
        )


def check_array(function: str, buffer: Buffer, array: Array) -> Array:
    """The array as elements of the buffer; refuses one of the wrong type, rank or layout."""
    assert array.shape is not None and array.dtype is not None and array.strides is not None
    expected = buffer.dtype.element
    # Types that numpy lacks travel as integers of the same size.
    same_bits = expected.bits <= array.dtype.bits == expected.nbytes * 8 and array.dtype.is_int
    travels = same_bits and (expected.is_bool or expected.kind == "bfloat" or expected.bits <= 8)
    if array.dtype is not expected and not travels:
        raise DtypeMismatch(
            f"{function}: argument {buffer.name} has type {array.dtype}, expected {expected}"
            f"{SEPARATOR}{SEPARATOR}convert it with .astype; make one that is written of this type"
        )
    lanes = buffer.dtype.lanes
    rank = len(buffer.shape) + (lanes > 1)
    if len(array.shape) != rank:
        raise RankMismatch(f"{function}: argument {buffer.name} has {len(array.shape)} dimensions, expected {rank}")
    if lanes > 1 and array.shape[-1] != lanes:
        raise ShapeMismatch(
            f"{function}: argument {buffer.name} has shape {array.shape}, expected a last dimension of {lanes}"
            f"{SEPARATOR}its elements are vectors of {lanes}"
        )
    rows = zip(array.shape, array.strides, _compact(array.shape), strict=True)
    compact = 0 in array.shape or all(stride == natural for extent, stride, natural in rows if extent > 1)
    if not compact and (lanes > 1 or not buffer.strides):
        raise StrideMismatch(
            f"{function}: argument {buffer.name} has strides {array.strides}, expected the compact row-major layout"
            f"{SEPARATOR}{SEPARATOR}pass numpy.ascontiguousarray(...); copy one that is written back"
        )
    _check_alignment(function, buffer, array)
    if lanes > 1:
        return array._replace(shape=array.shape[:-1], strides=_compact(array.shape[:-1]))
    return array


def _check_alignment(function: str, buffer: Buffer, array: Array) -> None:
    """The default is not checked: it is what our own memory has, and numpy's has less."""
    unit, address = buffer.data_alignment, array.address
    if unit > 1 and unit != DEFAULT_ALIGNMENT and address % unit:
        raise MisalignedArgument(
            f"{function}: argument {buffer.name} starts at address {address:#x}, which is no multiple of {unit}"
            f"{SEPARATOR}{buffer.name} is declared with an alignment of {unit} bytes{SEPARATOR}pass a copy"
        )
