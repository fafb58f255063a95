"""Calls out of the program: of registered packed functions, and of C functions that this process has loaded.

    T.call_packed("my.sort", A, n)          the function registered under that name, on arrays that share A's memory
    T.call_extern("float32", "sinf", x)     the C symbol, as C would call it

The program's memory is lent for the length of the call. What a call may have written counts as written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from loopwright.evaluator.arithmetic import rounding, wrapping
from loopwright.evaluator.device_functions import DEVICE_FUNCTIONS, word
from loopwright.evaluator.locations import Run
from loopwright.evaluator.memory import Pointer
from loopwright.evaluator.values import Value
from loopwright.ir import Call, Expr, StringImm
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError, NotBuilt, with_article

if TYPE_CHECKING:
    from ctypes import _NamedFuncPointer as CFunction  # of a loaded library
    from ctypes import _SimpleCData

    CType: TypeAlias = type[_SimpleCData[Any]]


class ArgumentCompiler(Protocol):
    """Who compiles the call: arguments are its business."""

    numeric: bool  # values are numbers, not terms

    def visit(self, node: object) -> Value: ...

    def value(self, expr: Expr) -> Run: ...

    def foreign_term(self, call: Call, name: str) -> Run: ...


class UnknownSymbol(LoopwrightError, ValueError):
    """A program calls a C function that no library loaded into this process has.

    For example:

        from loopwright import tir
        from loopwright.evaluator import evaluate
        call = tir.Evaluate(tir.call_extern("int32", "no_such_function_anywhere"))
        evaluate(tir.PrimFunc([], call))
    """

    code = "LW0812"

    def __init__(self, symbol: str) -> None:
        super().__init__(
            f"no library in this process has a function {symbol!r}",
            hint="load the library first: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)",
            fields={"symbol": symbol},
        )


class UnusableResult(LoopwrightError, TypeError):
    """A packed function returned something that the program cannot use as the number it asked for.

    For example:

        import loopwright
        import numpy as np
        from loopwright import tir
        from loopwright.evaluator import evaluate
        loopwright.register_func("give.a.text", lambda: "a text")
        x = tir.decl_buffer((1,), "int32", name="x")
        store = tir.BufferStore(x, tir.call_packed("give.a.text"), [0])
        evaluate(tir.PrimFunc([x], store), np.zeros(1, "int32"))
    """

    code = "LW0813"

    def __init__(self, name: str, result: object, dtype: DataType) -> None:
        super().__init__(
            f"the packed function {name!r} returned {type(result).__name__} {result!r}, "
            f"where {with_article(str(dtype))} is needed",
            hint="return a number, or nothing and write the result to an array argument",
        )


def packed_call(compiler: ArgumentCompiler, call: Call) -> Run:
    """A call of a registered function."""
    name = _name(call)
    if not compiler.numeric:
        return compiler.foreign_term(call, name)
    arguments = [_packed_argument(compiler, argument) for argument in call.args[1:]]
    dtype = call.dtype

    def run() -> Value:
        from loopwright.runtime.registry import get_global_func

        function = get_global_func(name)
        return _as_number(function(*[argument() for argument in arguments]), dtype, name)

    return run


def extern_call(compiler: ArgumentCompiler, call: Call) -> Run:
    """A call of a C function."""
    name = _name(call)
    if not compiler.numeric:
        return compiler.foreign_term(call, name)
    arguments = call.args[1:]
    values = [compiler.value(argument) for argument in arguments]
    device_function = DEVICE_FUNCTIONS.get(name)
    if device_function is not None:
        return lambda: device_function(call.dtype, [word(value()) for value in values])
    types = [_c_type(argument) for argument in arguments]
    function = _symbol(name)
    function.argtypes = types
    function.restype = None if call.dtype.kind == "void" else _c_type_of(call.dtype)
    dtype = call.dtype
    exact = rounding(dtype) if dtype.is_float else bool if dtype.is_bool else (lambda x: x)

    def run() -> Value:
        given = [_c_value(value()) for value in values]
        result = function(*given)
        return 0 if result is None else exact(result)

    return run


def _name(call: Call) -> str:
    first = call.args[0] if call.args else None
    if not isinstance(first, StringImm):
        raise LoopwrightError(f"{call.op.name}: the first argument is the name of the function", at=call)
    return first.value


def _packed_argument(compiler: ArgumentCompiler, argument: Expr) -> Run:
    if isinstance(argument, Call) and argument.op.name == "tir.tvm_stack_make_array":
        return _array(compiler, argument)
    if argument.dtype.lanes > 1:
        raise NotBuilt(f"passing a {argument.dtype} to a packed function", "pass a buffer, or one element")
    value: Run = compiler.value(argument)
    if argument.dtype.kind != "handle" or isinstance(argument, StringImm):
        return value
    return lambda: _c_value(value(), wrapped=True)


def _array(compiler: ArgumentCompiler, call: Call) -> Run:
    """tvm_stack_make_array(data, shape, strides or 0, rank, a zero of the type, offset) as a tensor over the memory."""
    data, shape, strides, _, element, offset = call.args[:6]
    pointer, first = compiler.visit(data), compiler.visit(offset)
    sizes = [compiler.visit(size) for size in _listed(shape)]
    steps = [compiler.visit(stride) for stride in _listed(strides)]
    dtype = element.dtype

    def run() -> Value:
        from loopwright.runtime.tensor import as_argument

        extents = tuple([size() for size in sizes])
        where: Pointer = pointer().moved(first() * dtype.lanes, dtype.element)
        return as_argument(_view(where, dtype, extents, [step() for step in steps]))

    return run


def _listed(expr: Expr) -> Sequence[Expr]:
    return expr.args if isinstance(expr, Call) and expr.op.name == "tir.tvm_stack_make_shape" else ()


def _view(pointer: Pointer, dtype: DataType, extents: tuple[int, ...], strides: Sequence[int]) -> np.ndarray:
    """A numpy array over the program's memory; all of it counts as written from here on."""
    memory = pointer.memory
    memory.count_as_written()
    element = dtype.element.numpy()
    if 0 in extents:
        return np.empty(extents, element)
    if dtype.lanes > 1:
        raise NotBuilt(f"passing a buffer of {dtype} to a packed function from the evaluator")
    whole = np.frombuffer(memory.data, np.uint8)[pointer.offset :]
    whole = whole[: len(whole) // element.itemsize * element.itemsize].view(element)
    if strides:
        return np.lib.stride_tricks.as_strided(whole, extents, [step * element.itemsize for step in strides])
    return whole[: int(np.prod(extents, dtype=np.int64))].reshape(extents)


def _as_number(result: object, dtype: DataType, name: str) -> bool | int | float:
    if result is None or dtype.kind in ("void", "handle"):
        return 0
    if isinstance(result, (bool, int, float, np.generic)):
        if dtype.is_float:
            return rounding(dtype)(float(result))
        if dtype.is_bool:
            return bool(result)
        if isinstance(result, (bool, int, np.integer)):
            return wrapping(dtype)(int(result))
    raise UnusableResult(name, result, dtype)


_C_TYPES: Final[dict[str, CType]] = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


def _c_type(argument: Expr) -> CType:
    if isinstance(argument, StringImm):
        return ctypes.c_char_p
    return _c_type_of(argument.dtype)


def _c_type_of(dtype: DataType) -> CType:
    if dtype.kind == "handle":
        return ctypes.c_void_p
    result = _C_TYPES.get(str(dtype))
    if result is None:
        raise NotBuilt(f"passing a {dtype} to a C function from the evaluator", "cast it to a type that C has")
    return result


def _c_value(value: object, wrapped: bool = False) -> object:
    """A value as C takes it; a pointer into the program's memory as an address."""
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, Pointer):
        return value
    memory = value.memory
    memory.count_as_written()
    address = np.frombuffer(memory.data, np.uint8).ctypes.data + value.offset
    return ctypes.c_void_p(address) if wrapped else address


def _symbol(name: str) -> CFunction:
    process = ctypes.CDLL(None)
    try:
        return process[name]
    except AttributeError:
        raise UnknownSymbol(name) from None


FOREIGN_CALLS: Final[dict[str, Callable[[ArgumentCompiler, Call], Run]]] = {
    "call_packed": packed_call,
    "tvm_call_packed": packed_call,
    "call_extern": extern_call,
    "call_pure_extern": extern_call,
}
