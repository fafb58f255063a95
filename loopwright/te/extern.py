"""te.extern: tensors whose values a statement of your own computes, such as a call into C or into numpy.

    te.extern((n, m), [A, B], lambda ins, outs: tir.call_packed("my.matmul", ins[0], ins[1], outs[0]), dtype="float32")

`fcompute` gets a buffer for every input and output and returns a statement, or an expression that is evaluated for its
effect. `te.extern_primfunc` takes a whole function instead. The graph around an extern knows what it reads and writes
(all of its inputs, all of its outputs), not what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopwright.ir import Buffer, Evaluate, Expr, PrimFunc, Stmt, Var, decl_buffer
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.extern_function import split_function
from loopwright.te.operation import check_shape
from loopwright.te.tags import resolve_tag
from loopwright.te.tensor import Operation, Tensor, TensorSlice


class BadExternArgument(LoopwrightError, ValueError, TypeError):
    """The arguments of `te.extern` do not fit together.

    It takes the shape of the output (or a list of shapes), a list of input tensors, and a function from the buffers of
    the inputs and outputs to a statement.

    For example:

        from loopwright import te
        te.extern((4,), ["A"], lambda ins, outs: te.const(0))
    """

    code = "LW0434"

    def __init__(self, name: str, problem: str, hint: str) -> None:
        super().__init__(f"te.extern {name}: {problem}", hint=hint, fields={"name": name})


class UnknownExternType(LoopwrightError, ValueError):
    """The type of an extern's output was not given and cannot be told from its inputs, which differ or are none.

    For example:

        from loopwright import te
        te.extern((4,), [], lambda ins, outs: te.const(0))
    """

    code = "LW0435"

    def __init__(self, name: str, inputs: Sequence[Tensor]) -> None:
        types = sorted({str(tensor.dtype) for tensor in inputs})
        super().__init__(
            f"te.extern {name}: the type of the output cannot be told: "
            + (f"the inputs have types {', '.join(types)}" if types else "there are no inputs"),
            hint='say it: dtype="float32", or a list with one type an output',
        )


class BufferCountMismatch(LoopwrightError):
    """`in_buffers` or `out_buffers` of an extern has another number of buffers than there are tensors.

    For example:

        from loopwright import te, tir
        A = te.placeholder((4,), name="A")
        buffers = [tir.decl_buffer((4,)), tir.decl_buffer((4,))]
        te.extern((4,), [A], lambda ins, outs: te.const(0), in_buffers=buffers)
    """

    code = "LW0436"

    def __init__(self, name: str, option: str, given: int, expected: int, what: str) -> None:
        super().__init__(
            f"te.extern {name}: {option} has {given} buffer{'s' * (given != 1)} for {expected} {what}"
            f"{'s' * (expected != 1)}",
            hint=f"give one buffer for every {what}, or leave {option} out",
        )


class BadExternBody(LoopwrightError, ValueError, TypeError):
    """The function of an extern returned something that is neither a statement nor an expression.

    For example:

        from loopwright import te
        te.extern((4,), [], lambda ins, outs: None, dtype="float32")
    """

    code = "LW0437"

    def __init__(self, name: str, given: object) -> None:
        super().__init__(
            f"te.extern {name}: the function returned {type(given).__name__} {given!r}",
            hint="return a statement, such as what ir_builder's get() gives, or a call such as tir.call_packed(…)",
        )


class ExternOp(Operation):
    """Tensors computed by `body`, a statement on `input_placeholders` and `output_placeholders` (buffers)."""

    __slots__ = ("body", "input_placeholders", "inputs", "output_placeholders")

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, object] | None,
        inputs: Sequence[Tensor],
        input_placeholders: Sequence[Buffer],
        output_placeholders: Sequence[Buffer],
        body: Stmt,
    ) -> None:
        self.inputs = tuple(inputs)
        self.input_placeholders = tuple(input_placeholders)
        self.output_placeholders = tuple(output_placeholders)
        self.body = body
        super().__init__(name, tag, attrs)

    @property
    def num_outputs(self) -> int:
        return len(self.output_placeholders)

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(dict.fromkeys(self.inputs))

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return self.output_placeholders[index].shape

    def output_dtype(self, index: int) -> DataType:
        return self.output_placeholders[index].dtype


def extern(
    shape: object,
    inputs: Sequence[Tensor],
    fcompute: Callable[[list[Buffer], list[Buffer]], Stmt | Expr],
    name: str = "extern",
    dtype: str | DataType | Sequence[str | DataType] | None = None,
    in_buffers: Buffer | Sequence[Buffer] | None = None,
    out_buffers: Buffer | Sequence[Buffer] | None = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any:
    """The tensor of `shape` (or one for each shape of a list) that the statement `fcompute(ins, outs)` writes.

    The output has the type of the inputs unless `dtype` says another. Buffers of your own, with strides, alignment or
    offsets as symbols, may be given in `in_buffers` and `out_buffers`.
    """
    tag = resolve_tag(name, tag)
    if isinstance(inputs, Tensor):
        inputs = [inputs]
    for k, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor):
            raise BadExternArgument(name, f"input {k} is {type(tensor).__name__} {tensor!r}", "give te tensors")
    if not callable(fcompute):
        raise BadExternArgument(
            name, f"{type(fcompute).__name__} {fcompute!r} is not a function", "give a function of (ins, outs)"
        )
    given = [in_buffers] if isinstance(in_buffers, Buffer) else in_buffers
    if given is None:
        ins = [_own_buffer(tensor.shape, tensor.dtype, tensor.name) for tensor in inputs]
    elif len(given) != len(inputs):
        raise BufferCountMismatch(name, "in_buffers", len(given), len(inputs), "input")
    else:
        ins = list(given)
    shapes = _shapes(name, shape)
    result = [out_buffers] if isinstance(out_buffers, Buffer) else out_buffers
    if result is None:
        types = _types(name, dtype, len(shapes), inputs)
        outs = [_own_buffer(sizes, kind, name) for sizes, kind in zip(shapes, types, strict=True)]
    elif len(result) != len(shapes):
        raise BufferCountMismatch(name, "out_buffers", len(result), len(shapes), "output")
    else:
        outs = list(result)
    body = fcompute(ins, outs)
    if isinstance(body, TensorSlice):
        body = body.as_expr()
    if isinstance(body, Expr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise BadExternBody(name, body)
    op = ExternOp(name, tag, attrs, inputs, ins, outs, body)
    outputs = [op.output(k) for k in range(op.num_outputs)]
    return outputs[0] if len(outputs) == 1 else outputs


def _own_buffer(shape: Sequence[Expr], dtype: DataType, name: str) -> Buffer:
    """A compact buffer that may begin anywhere."""
    offset = Var("elem_offset", shape[0].dtype if shape else "int32")
    return decl_buffer(shape, dtype, name, elem_offset=offset)


def _shapes(name: str, shape: Any) -> list[tuple[Expr, ...]]:
    several = isinstance(shape, Sequence) and bool(shape) and all(isinstance(one, Sequence) for one in shape)
    listed = list(shape) if several else [shape]
    return [check_shape(one, f"te.extern {name}") for one in listed]


def _types(name: str, dtype: object, count: int, inputs: Sequence[Tensor]) -> list[DataType]:
    if dtype is None:
        types = {tensor.dtype for tensor in inputs}
        if len(types) != 1:
            raise UnknownExternType(name, inputs)
        return [types.pop()] * count
    listed = [DataType(one) for one in dtype] if isinstance(dtype, (list, tuple)) else [DataType(dtype)]
    if len(listed) == 1 and not isinstance(dtype, (list, tuple)):
        listed = listed * count
    if len(listed) != count:
        raise BadExternArgument(
            name, f"dtype has {len(listed)} types for {count} outputs", "give one type, or one an output"
        )
    return listed


def extern_primfunc(input_tensors: Sequence[Tensor], primfunc: PrimFunc, **kwargs: Any) -> Any:
    """The tensors that `primfunc` writes when it is run on `input_tensors`; options as for `te.extern`.

    Buffers that the function writes and does not read are its outputs. Where all that it writes is read as well, the
    last such buffer is the output: it works in place, and starts out as that input.
    """
    split = split_function(input_tensors, primfunc)
    kwargs.setdefault("name", split.name)
    return extern(
        [buffer.shape for buffer in split.outputs],
        list(input_tensors),
        lambda ins, outs: split.body,
        in_buffers=split.inputs,
        out_buffers=split.outputs,
        **kwargs,
    )
