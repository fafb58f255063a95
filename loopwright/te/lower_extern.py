"""An extern becomes one opaque block: all its inputs are read, all its outputs written, and the rest is its own."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import Analyzer
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    Expr,
    Stmt,
    Var,
    cast,
    const,
    product,
    substitute,
    whole_region,
)
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.extern import ExternOp
from loopwright.te.free_variables import free_variables
from loopwright.te.function_in_making import FunctionInMaking
from loopwright.te.tensor import dim_text


class ExternBufferMismatch(LoopwrightError, ValueError):
    """A buffer declared for an extern does not describe the memory of its tensor.

    Tensors of a graph are compact, row-major and begin where their memory begins. A declared buffer may leave shape,
    strides and offset open as variables; what it states must hold.

    For example:

        from loopwright import te, tir
        A = te.placeholder((4, 4), name="A")
        padded = tir.decl_buffer((4, 4), "float32", "padded", strides=[8, 1])
        B = te.extern((4, 4), [A], lambda ins, outs: te.const(0), in_buffers=[padded])
        te.create_prim_func([A, B])
    """

    code = "LW0439"

    def __init__(self, op: str, declared: Buffer, problem: str, hint: str) -> None:
        super().__init__(
            f"te.extern {op}: buffer {declared.name} {problem}", hint=hint, fields={"op": op, "buffer": declared.name}
        )


def lower_extern(making: FunctionInMaking, op: ExternOp) -> Stmt:
    """The block of one extern."""
    from loopwright.transform import clone_definitions

    inputs = [making.buffers[tensor] for tensor in op.inputs]
    outputs = [making.buffer_of(op.output(k)) for k in range(op.num_outputs)]
    match = _Match(op.name)
    for declared, actual in zip(op.input_placeholders, inputs, strict=True):
        match.add(declared, actual)
    for declared, actual in zip(op.output_placeholders, outputs, strict=True):
        match.add(declared, actual)
    body = clone_definitions(substitute(op.body, match.values, match.buffers))
    sizes = {var: making.index.size_var(var) for var in free_variables(body)}
    body = substitute(body, {var: cast(size, var.dtype) for var, size in sizes.items() if size is not var})
    making.use_all([var for var in free_variables(body) if var.dtype.kind != "handle"], op.name)
    annotations = {key: making.annotation(value) for key, value in op.attrs.items()}
    block = Block(
        (),
        tuple([whole_region(buffer) for buffer in dict.fromkeys(inputs)]),
        tuple([whole_region(buffer) for buffer in outputs]),
        making.block_name(op, op.name),
        body,
        annotations=annotations,
    )
    return BlockRealize((), const(True), block)


class _Match:
    """What the buffers and symbols of an extern's body stand for."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.values: dict[Var, Expr] = {}
        self.buffers: dict[Buffer, Buffer] = {}

    def add(self, declared: Buffer, actual: Buffer) -> None:
        if declared.dtype is not actual.dtype:
            raise ExternBufferMismatch(
                self.op, declared, f"has type {declared.dtype}, its tensor {actual.dtype}", "declare it with that dtype"
            )
        self.values[declared.data] = actual.data
        self._stand_for(declared, "the offset", declared.elem_offset, actual.elem_offset)
        if declared.ndim != actual.ndim:
            # Another view of the same memory, such as a flat one: it stays, on the tensor's own memory.
            self._same_size(declared, actual)
            return
        for axis in range(declared.ndim):
            self._stand_for(declared, f"dimension {axis}", declared.shape[axis], actual.shape[axis])
        strides = actual.effective_strides()
        for axis, stride in enumerate(declared.strides):
            self._stand_for(declared, f"stride {axis}", stride, strides[axis])
        self.buffers[declared] = actual

    def _stand_for(self, buffer: Buffer, what: str, declared: Expr, actual: Expr) -> None:
        known = substitute(declared, self.values)
        if isinstance(known, Var) and known not in self.values and known is not actual:
            self.values[known] = cast(actual, known.dtype)
        elif not Analyzer().can_prove_equal(known, cast(actual, known.dtype)):
            raise ExternBufferMismatch(
                self.op,
                buffer,
                f"declares {what} as {dim_text(known)}, but its tensor has {dim_text(actual)}",
                "declare what the tensor has, or leave it open with a te.var",
            )

    def _same_size(self, declared: Buffer, actual: Buffer) -> None:
        sizes = [substitute(size, self.values) for size in declared.shape]
        if Analyzer().can_prove(_product(sizes) > _product(actual.shape)):
            raise ExternBufferMismatch(
                self.op,
                declared,
                f"has {dim_text(_product(sizes))} elements, its tensor {dim_text(_product(actual.shape))}",
                "declare it no larger than the tensor",
            )


def _product(sizes: Sequence[Expr]) -> Expr:
    return product(sizes)
