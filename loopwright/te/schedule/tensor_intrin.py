"""te.decl_tensor_intrin: an instruction that computes a small tensor expression, and how stages use it.

    x, y = te.placeholder((16,), name="x"), te.placeholder((16,), name="y")
    z = te.compute((16,), lambda i: x[i] + y[i], name="z")                       what it computes
    vadd = te.decl_tensor_intrin(z.op, lambda ins, outs: call, name="vadd")      how the machine does it
    s[C].tensorize(inner, vadd)                                                  where it is used

A reduction whose loops all lie inside the instruction uses `body`; one that goes on outside uses `reduce_update`, with
the start value written by `reduce_init`, or as an ordinary store where there is none. The region is matched with the
declared expression; that the instruction computes it is the word of whoever declares it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    Evaluate,
    Expr,
    For,
    PrimFunc,
    Reduce,
    Rewriter,
    Stmt,
    Var,
    collect_statements,
    const,
    decl_buffer,
    substitute,
    whole_region,
)
from loopwright.te.create_prim_func import create_prim_func
from loopwright.te.operation import ComputeOp, PlaceholderOp
from loopwright.te.schedule.errors import TeScheduleError
from loopwright.te.tensor import Operation, Tensor, TensorSlice
from loopwright.te.tensor_compute import TensorIntrinCall

_numbers: Final = count(1)


class BadTensorIntrin(TeScheduleError, TypeError):
    """A tensor intrinsic is declared from an operation on placeholders, and a function that gives its statements.

    `fcompute(ins, outs)` gets one buffer a tensor, and returns `body`, or `body, reduce_init, reduce_update`, where
    what is not needed may be None.

    For example:

        from loopwright import te
        x = te.placeholder((4,), name="x")
        y = te.compute((4,), lambda i: x[i] + 1, name="y")
        z = te.compute((4,), lambda i: y[i] * 2, name="z")
        te.decl_tensor_intrin(z.op, lambda ins, outs: te.const(0))
    """

    code = "LW0485"

    def __init__(self, name: str, problem: str, hint: str) -> None:
        super().__init__(f"te.decl_tensor_intrin {name}: {problem}", hint=hint, fields={"name": name})


class StatementMissing(TeScheduleError):
    """A tensor intrinsic lacks the statement that this use of it needs.

    Where a reduction goes on outside the instruction, each use adds to what is there already: that is `reduce_update`,
    the third thing that `fcompute` returns. Where the whole reduction lies inside, it is `body`.

    For example:

        import loopwright as lw
        from loopwright import te, tir
        x = te.placeholder((4, 8), name="x")
        k = te.reduce_axis((0, 8), name="k")
        y = te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="y")
        rows = te.decl_tensor_intrin(y.op, lambda ins, outs: tir.call_extern("int32", "rows", outs[0].access_ptr("w")))
        A = te.placeholder((4, 16), name="A")
        r = te.reduce_axis((0, 16), name="r")
        B = te.compute((4,), lambda i: te.sum(A[i, r], axis=r), name="B")
        s = te.create_schedule(B.op)
        ro, ri = s[B].split(r, factor=8)
        s[B].reorder(ro, *B.op.axis, ri)
        s[B].tensorize(B.op.axis[0], rows)
        lw.lower(s, [A, B])
    """

    code = "LW0486"

    def __init__(self, name: str, statement: str, why: str) -> None:
        super().__init__(
            f"tensorize: {name} has no {statement}",
            why=why,
            hint=f"return body, reduce_init and reduce_update from fcompute, with a {statement}",
            fields={"intrinsic": name, "statement": statement},
        )


class TensorIntrin:
    """What an instruction computes (`op`), on which buffers, and the statements that do it."""

    def __init__(
        self,
        name: str,
        op: ComputeOp,
        inputs: Sequence[Tensor],
        buffers: Sequence[Buffer],
        scalar_params: Sequence[Var],
        statements: Sequence[Stmt | None],
    ) -> None:
        self.name, self.op = name, op
        self.inputs, self.buffers = tuple(inputs), tuple(buffers)
        self.scalar_params = tuple(scalar_params)
        self.body, self.reduce_init, self.reduce_update = statements
        self._registered: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name})"

    @property
    def reduces(self) -> bool:
        """Whether the instruction reduces."""
        return bool(self.op.reduce_axis)

    def __call__(self, *args: object, **options: object) -> TensorIntrinCall:
        """The intrinsic on parts of tensors, as the body of a te.compute over tiles."""
        return TensorIntrinCall.of(self, args, options)

    # --- as the engine knows it -----------------------------------------------------------------------------------

    def as_whole(self) -> str:
        """The name under which the engine finds `body`, start value included."""
        if self.body is None:
            raise StatementMissing(self.name, "body", "the whole of the computation lies inside the instruction")
        return self._register("body", self._meaning(), self.body)

    def as_update(self) -> str:
        """The name under which the engine finds `reduce_update`."""
        if self.reduce_update is None:
            raise StatementMissing(
                self.name, "reduce_update", "the reduction goes on in a loop outside, so each use adds to what is there"
            )
        return self._register("update", _WithoutInit().of(self._meaning()), self.reduce_update)

    def as_init(self) -> str | None:
        """The name under which the engine finds `reduce_init`, if there is one."""
        if self.reduce_init is None:
            return None
        return self._register("init", _OnlyInit().of(self._meaning()), self.reduce_init, outputs_only=True)

    def _meaning(self) -> PrimFunc:
        outputs = [self.op.output(k) for k in range(self.op.num_outputs)]
        function = create_prim_func([*self.inputs, *outputs])
        # The operands lie in the memory that the statements find them in.
        given = {
            param: decl_buffer(plain.shape, plain.dtype, plain.name, scope=buffer.scope())
            for (param, plain), buffer in zip(function.buffer_map.items(), self.buffers, strict=True)
        }
        buffers = {function.buffer_map[param]: buffer for param, buffer in given.items()}
        return PrimFunc(function.params, substitute(function.body, {}, buffers), None, given, function.attrs)

    def _register(self, part: str, desc: PrimFunc, statement: Stmt, outputs_only: bool = False) -> str:
        from loopwright.transform.tensor_intrinsics import TensorIntrin as Registered

        name = self._registered.get(part)
        if name is None:
            buffers = self.buffers[len(self.inputs) :] if outputs_only else self.buffers
            if outputs_only:
                params = [param for param in desc.params if desc.buffer_map[param].name in _written(desc)]
                kept = {param: desc.buffer_map[param] for param in params}
                desc = PrimFunc(params, desc.body, None, kept, desc.attrs)
            name = f"te.{self.name}.{part}.{next(_numbers)}"
            Registered.register(name, desc, self._implementation(statement, buffers))
            self._registered[part] = name
        return name

    def _implementation(self, statement: Stmt, buffers: Sequence[Buffer]) -> PrimFunc:
        params = [Var(f"var_{buffer.name}", "handle") for buffer in buffers]
        outputs = self.buffers[len(self.inputs) :]
        reads = tuple([whole_region(buffer) for buffer in buffers if buffer not in outputs])
        writes = tuple([whole_region(buffer) for buffer in buffers if buffer in outputs])
        body = Block((), reads, writes, "root", statement)
        return PrimFunc(params, BlockRealize((), const(True), body), None, dict(zip(params, buffers, strict=True)))


class _Meaning(Rewriter):
    """A part of what an instruction means."""

    def of(self, function: PrimFunc) -> PrimFunc:
        return function.with_(body=self.visit(function.body))


class _WithoutInit(_Meaning):
    """The meaning of an update: the reduction goes on from what is there."""

    def visit_Block(self, block: Block) -> Block:
        block = self.rebuild(block)
        if block.init is None:
            return block
        return block.with_(init=None, reads=(*block.writes, *block.reads))


class _OnlyInit(_Meaning):
    """The meaning of a start value: each cell of the result holds the identity."""

    def __init__(self) -> None:
        self.reducing: set[Var] = set()

    def visit_For(self, loop: For) -> Stmt:
        new = self.rebuild(loop)
        return new.body if loop.loop_var in self.reducing else new

    def visit_BlockRealize(self, realize: BlockRealize) -> BlockRealize:
        block = realize.block
        if block.init is None:
            result: BlockRealize = self.rebuild(realize)
            return result
        pairs = list(zip(block.iter_vars, realize.iter_values, strict=True))
        data = [(axis, value) for axis, value in pairs if axis.iter_type == axis.DataPar]
        self.reducing.update(
            [value for axis, value in pairs if axis.iter_type != axis.DataPar and isinstance(value, Var)]
        )
        made_block = Block(tuple([axis for axis, _ in data]), (), block.writes, f"{block.name_hint}_init", block.init)
        return BlockRealize(tuple([value for _, value in data]), realize.predicate, made_block)


def _written(function: PrimFunc) -> set[str]:
    blocks = collect_statements(function.body, Block)
    return {region.buffer.name for block in blocks for region in block.writes}


def decl_tensor_intrin(
    op: Operation,
    fcompute: Callable[..., object],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, Buffer] | None = None,
    scalar_params: Sequence[Var] | Var | None = None,
    default_buffer_params: Mapping[str, Any] | None = None,
) -> TensorIntrin:
    """Declare an instruction that computes what `op` says; `fcompute(ins, outs)` gives the statements that run it.

    Buffers are compact unless `binds` gives others: with strides and offset left open as variables, an instruction can
    work on a part of a larger tensor.
    """
    if not isinstance(op, Operation):
        hint = "give the operation of a tensor: y.op" if isinstance(op, Tensor) else "give y.op of a te.compute"
        raise BadTensorIntrin(name, f"{type(op).__name__} {op!r} is no operation", hint)
    if not isinstance(op, ComputeOp):
        raise BadTensorIntrin(name, f"{op.name} is no te.compute", "describe the instruction by one te.compute")
    for tensor in op.input_tensors:
        if not isinstance(tensor.op, PlaceholderOp):
            raise BadTensorIntrin(
                name,
                f"its input {tensor.name} is computed",
                "describe the instruction by one te.compute on placeholders",
            )
    if not callable(fcompute):
        raise BadTensorIntrin(name, f"{fcompute!r} is no function", "give a function of (ins, outs)")
    given, options = dict(binds or {}), dict(default_buffer_params or {})
    tensors = [*op.input_tensors, *[op.output(k) for k in range(op.num_outputs)]]
    buffers = [
        given.get(tensor) or decl_buffer(tensor.shape, tensor.dtype, tensor.name, **options) for tensor in tensors
    ]
    inputs = len(op.input_tensors)
    scalars = [scalar_params] if isinstance(scalar_params, Var) else list(scalar_params or [])
    ins, outs = buffers[:inputs], buffers[inputs:]
    returned = fcompute(ins, outs, scalars) if scalar_params is not None else fcompute(ins, outs)
    parts = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if not 1 <= len(parts) <= 3:
        raise BadTensorIntrin(
            name, f"fcompute returned {len(parts)} statements", "return body, reduce_init, reduce_update"
        )
    statements = [_statement(name, part) for part in parts] + [None] * (3 - len(parts))
    if isinstance(op.body[0], Reduce) is False and any(statements[1:]):
        raise BadTensorIntrin(
            name, f"{op.name} is no reduction, but reduce_init or reduce_update is given", "return body"
        )
    return TensorIntrin(name, op, op.input_tensors, buffers, scalars, statements)


def _statement(name: str, given: object) -> Stmt | None:
    if given is None or isinstance(given, Stmt):
        return given
    if isinstance(given, TensorSlice):
        given = given.as_expr()
    if isinstance(given, Expr):
        return Evaluate(given)
    raise BadTensorIntrin(
        name,
        f"fcompute returned {type(given).__name__} {given!r}",
        "return statements or calls; None for those not needed",
    )


__all__ = ["BadTensorIntrin", "StatementMissing", "TensorIntrin", "decl_tensor_intrin"]
