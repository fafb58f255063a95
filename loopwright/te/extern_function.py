"""Which buffers of a function are its inputs and which its outputs, for `te.extern_primfunc`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.effects import EffectsWalk, names_on
from loopwright.arith import Analyzer
from loopwright.ir import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    ForKind,
    PrimFunc,
    Stmt,
    Var,
    cast,
    const,
    decl_buffer,
    deep,
    seq,
    substitute,
)
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.tensor import Tensor, dim_text, shape_text


class BadExternFunction(LoopwrightError, AssertionError, ValueError):
    """The function given to `te.extern_primfunc` does not fit the tensors given for it.

    Its buffers that are only written become the outputs; the others take the input tensors, in order and shape for
    shape.

    For example:

        from loopwright import te
        from loopwright.script import tir as T

        @T.prim_func
        def double(A: T.Buffer((4,)), B: T.Buffer((4,))):
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * T.float32(2)

        te.extern_primfunc([te.placeholder((5,), name="X")], double)
    """

    code = "LW0438"

    def __init__(self, function: str, problem: str, hint: str) -> None:
        super().__init__(f"te.extern_primfunc {function}: {problem}", hint=hint, fields={"function": function})


class SplitFunction(NamedTuple):
    """The body of a function, and its buffers by what it does with them."""

    name: str
    inputs: list[Buffer]
    outputs: list[Buffer]
    body: Stmt


class _Touches(EffectsWalk):
    """Which buffers are read and written; what the init of a reduction sets is no input when it is read back."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        super().__init__()
        self.by_data = {buffer.data: buffer for buffer in buffers}
        self.loaded: set[Var] = set()
        self.started: frozenset[Var] = frozenset()  # by the inits of the blocks around

    def visit_Block(self, block: Block) -> None:
        outer = self.started
        if block.init is not None:
            inner = EffectsWalk({**self.names, **names_on([block])})
            inner.visit(block.init)
            self.started = outer | inner.found.changed
        super().visit_Block(block)
        self.started = outer

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.loaded.update([buffer.data for buffer in self.memory(load.buffer) if buffer.data not in self.started])
        super().visit_BufferLoad(load)

    @property
    def read(self) -> set[Buffer]:
        memory = {*self.loaded, *self.found.pointers, *self.found.named}
        return {self.by_data[data] for data in memory & self.by_data.keys()}

    @property
    def written(self) -> set[Buffer]:
        return {self.by_data[data] for data in self.found.changed & self.by_data.keys()}


@deep
def split_function(tensors: Sequence[Tensor], function: PrimFunc) -> SplitFunction:
    """`function` with the buffers that take `tensors`, and those that it gives."""
    if not isinstance(function, PrimFunc):
        raise BadExternFunction(
            type(function).__name__, f"{function!r} is no function", "give a PrimFunc, such as T.prim_func makes"
        )
    name = function.name
    scalars = [param.name for param in function.params if param not in function.buffer_map]
    if scalars:
        raise BadExternFunction(
            name,
            f"its parameter {scalars[0]} is no buffer",
            "give it a value first: function.specialize({parameter: value})",
        )
    buffers = function.argument_buffers()
    touches = _Touches(buffers)
    touches.visit(function.body)
    read, written = touches.read, touches.written
    outputs = [buffer for buffer in buffers if buffer in written and buffer not in read]
    if not outputs:
        changed = [buffer for buffer in buffers if buffer in written]
        if not changed:
            raise BadExternFunction(name, "it writes no buffer, so it has no output", "let it write its result")
        outputs = changed[-1:]
    inputs = [buffer for buffer in buffers if buffer not in outputs]
    body = function.body
    in_place = outputs[0] if len(outputs) == 1 and outputs[0] in read else None
    if in_place is not None and len(tensors) == len(buffers):
        inputs, outputs, body = _in_place(buffers, in_place, body)
    if len(inputs) != len(tensors):
        named = ", ".join([buffer.name for buffer in inputs])
        raise BadExternFunction(
            name,
            f"{len(tensors)} tensor{'s are' if len(tensors) != 1 else ' is'} given, but it reads "
            f"{len(inputs)} ({named or 'none'}) and writes {', '.join([buffer.name for buffer in outputs])}",
            "give one tensor for every buffer that is read",
        )
    sizes: dict[Var, Expr] = {}
    for tensor, buffer in zip(tensors, inputs, strict=True):
        _check_fits(name, tensor, buffer, sizes)
    if sizes:
        # The graph knows the tensors' sizes, not the symbols of the function.
        sized = {buffer: _with_sizes(buffer, sizes) for buffer in (*inputs, *outputs)}
        body = substitute(body, sizes, sized)
        inputs, outputs = [sized[buffer] for buffer in inputs], [sized[buffer] for buffer in outputs]
    return SplitFunction(name, inputs, outputs, body)


def _check_fits(name: str, tensor: Tensor, buffer: Buffer, sizes: dict[Var, Expr]) -> None:
    """Refuse a tensor of another rank, type or shape; sizes that the function leaves open become known."""
    what = f"tensor {tensor.name} of shape {shape_text(tensor.shape)}"
    if tensor.ndim != buffer.ndim:
        raise BadExternFunction(
            name, f"{what} is given for {buffer.name} of shape {shape_text(buffer.shape)}", "give a tensor of that rank"
        )
    if tensor.dtype is not buffer.dtype:
        raise BadExternFunction(
            name,
            f"tensor {tensor.name} of type {tensor.dtype} is given for {buffer.name} of type {buffer.dtype}",
            "convert it in a te.compute with .astype",
        )
    for axis, (given, declared) in enumerate(zip(tensor.shape, buffer.shape, strict=True)):
        if isinstance(declared, Var):
            known = sizes.setdefault(declared, cast(given, declared.dtype))
        else:
            known = substitute(declared, sizes)
        if not Analyzer().can_prove_equal(cast(given, known.dtype), known):
            raise BadExternFunction(
                name,
                f"{what} is given for {buffer.name}, whose dimension {axis} is {dim_text(known)}",
                f"give a tensor of shape {shape_text(buffer.shape)}",
            )


def _with_sizes(buffer: Buffer, sizes: Mapping[Var, Expr]) -> Buffer:
    simplify = Analyzer().simplify
    return buffer.with_(
        shape=tuple([simplify(substitute(size, sizes)) for size in buffer.shape]),
        strides=tuple([simplify(substitute(stride, sizes)) for stride in buffer.strides]),
    )


def _in_place(buffers: Sequence[Buffer], changed: Buffer, body: Stmt) -> tuple[list[Buffer], list[Buffer], Stmt]:
    """A function that changes a buffer, made to copy it first: what comes in stays as it is."""
    source = decl_buffer(changed.shape, changed.dtype, f"{changed.name}_in")
    loops = [Var(f"i{k}", size.dtype) for k, size in enumerate(changed.shape)]
    copy: Stmt = BufferStore(changed, BufferLoad(source, tuple(loops)), tuple(loops))
    for loop, size in zip(reversed(loops), reversed(changed.shape), strict=True):
        copy = For(loop, const(0, size.dtype), size, ForKind.SERIAL, copy)
    inputs = [source if buffer is changed else buffer for buffer in buffers]
    return inputs, [changed], seq([copy, body])
