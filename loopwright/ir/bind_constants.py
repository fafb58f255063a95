"""bind_constants: a function that holds some of its arguments itself, weights for example.

    dense(A, W, C):                                          dense(A, C):
        C[i, j] += A[i, k] * W[k, j]     {"W": array}            W = the array's values, part of the compiled code
                                                                 C[i, j] += A[i, k] * W[k, j]

The values are copied: a later change of the array changes nothing. What is computed from constants alone (a packed
layout of the weights, weights times their scale) is computed when the function is built, not at each call.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopwright.ir.buffer import Buffer, decl_buffer
from loopwright.ir.deep import deep
from loopwright.ir.expr import Expr, IntImm, Producer, Var
from loopwright.ir.function import PrimFunc
from loopwright.ir.specialize import specialize
from loopwright.ir.stmt import AllocateConst, Block, BlockRealize, BufferStore, DeclBuffer, Stmt
from loopwright.ir.visitor import Visitor
from loopwright.runtime.errors import LoopwrightError


class CannotBind(LoopwrightError, ValueError, TypeError):
    """`bind_constants` was given something that cannot stand for a parameter of the function.

    A buffer takes an array of its data type and shape (a size that is a variable takes the array's); a scalar takes a
    number. What the function writes cannot be constant.

    For example:

        import numpy
        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        tir.bind_constants(te.create_prim_func([A, B]), {"A": numpy.zeros(8)})  # float64 for a float32
    """

    code = "LW0551"

    def __init__(self, func: PrimFunc, problem: str, hint: str | None = None) -> None:
        super().__init__(f"bind_constants: {func.name}: {problem}", hint=hint)


@deep
def bind_constants(func: PrimFunc, values: Mapping[object, object]) -> PrimFunc:
    """A copy of `func` without the parameters in `values`: {a parameter or its name: the array it always is}."""
    numbers: dict[Var, object] = {}
    arrays: dict[Var, np.ndarray] = {}
    for key, given in values.items():
        param = _parameter(func, key)
        buffer = func.buffer_map.get(param)
        if param in numbers or param in arrays:
            raise CannotBind(func, f"parameter {param.name} is bound twice")
        if buffer is None:
            numbers[param] = given
        else:
            arrays[param] = _array(func, buffer, given)
    shapes = {param: decl_buffer(array.shape, func.buffer_map[param].dtype) for param, array in arrays.items()}
    for param in arrays:
        _require_read_only(func, func.buffer_map[param])
    # Sizes that are variables take the arrays' values; a size that differs is an error that names it.
    func = specialize(func, {**numbers, **shapes})
    body = func.body
    for param, array in arrays.items():
        body = _within_root(body, func.buffer_map[param], array)
    params = tuple([param for param in func.params if param not in arrays])
    buffers = {param: buffer for param, buffer in func.buffer_map.items() if param not in arrays}
    return func.with_(params=params, body=body, buffer_map=buffers)


def _parameter(func: PrimFunc, key: object) -> Var:
    """The parameter that a key means: itself, its buffer, or the name of either; a te tensor goes by its name."""
    name = getattr(key, "name", None) if isinstance(key, Producer) else key
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if key is param or (buffer is not None and key is buffer):
            return param
        if isinstance(name, str) and name in (param.name, buffer.name if buffer is not None else param.name):
            return param
    shown = getattr(key, "name", None) or repr(key)
    known = ", ".join(_shown(func, param) for param in func.params) or "none"
    raise CannotBind(func, f"{shown} is none of its parameters, which are {known}")


def _shown(func: PrimFunc, param: Var) -> str:
    buffer = func.buffer_map.get(param)
    return param.name if buffer is None else buffer.name


def _array(func: PrimFunc, buffer: Buffer, given: object) -> np.ndarray:
    """A copy of what was given, as an array that fits the buffer and cannot be written."""
    wanted = buffer.dtype.numpy()
    array = given if isinstance(given, np.ndarray) else np.asarray(given)
    if array.dtype != wanted:
        raise CannotBind(
            func,
            f"buffer {buffer.name} holds {buffer.dtype}, and was given {array.dtype}",
            f'convert it: array.astype("{wanted.name}")',
        )
    if array.ndim != len(buffer.shape):
        raise CannotBind(
            func, f"buffer {buffer.name} has {len(buffer.shape)} dimensions, and was given shape {array.shape}"
        )
    for axis, (size, got) in enumerate(zip(buffer.shape, array.shape, strict=True)):
        if isinstance(size, IntImm) and size.value != got:
            raise CannotBind(
                func, f"dimension {axis} of buffer {buffer.name} is {size.value}, and was given {got}: {array.shape}"
            )
    copy = np.array(array, order="C", copy=True, subok=False)
    copy.flags.writeable = False
    return copy


class _Writes(Visitor):
    """The memory that a program writes, as far as it says so."""

    def __init__(self) -> None:
        self.found: set[Expr] = set()

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.found.add(store.buffer.data)

    def visit_Block(self, block: Block) -> None:
        self.found.update(region.buffer.data for region in block.writes)
        self.visit_children(block)


def _require_read_only(func: PrimFunc, buffer: Buffer) -> None:
    writes = _Writes()
    writes.visit(func.body)
    if buffer.data in writes.found:
        raise CannotBind(func, f"buffer {buffer.name} is written, so it cannot be constant", "bind its inputs only")


def _within_root(body: Stmt, buffer: Buffer, array: np.ndarray) -> Stmt:
    """`body` with the constant; inside the root block where there is one, since schedules begin with that block."""
    if isinstance(body, BlockRealize) and not body.block.iter_vars:
        block = body.block
        return body.with_(block=block.with_(body=_with_constant(block.body, buffer, array)))
    return _with_constant(body, buffer, array)


def _with_constant(body: Stmt, buffer: Buffer, array: np.ndarray) -> Stmt:
    return AllocateConst(buffer.data, buffer.dtype, buffer.shape, array, DeclBuffer(buffer, body))
