"""create_prim_func: a graph of tensors becomes one function, a loop nest with a block for every compute.

    A = te.placeholder((n, l), name="A")            for i, j, k in T.grid(n, m, l):
    k = te.reduce_axis((0, l), name="k")                with T.block("C"):
    C = te.compute((n, m), lambda i, j:       →             v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
        te.sum(A[i, k] * B[k, j], axis=k),                  with T.init():
        name="C")                                               C[v_i, v_j] = T.float32(0)
                                                            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]

Every compute gets variables of its own, so axes and expressions may be shared freely between computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    IterVar,
    LetStmt,
    PrimFunc,
    Range,
    Reduce,
    Stmt,
    Var,
    const,
    decl_buffer,
    deep,
    seq,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.te.block_accesses import BlockAccesses
from loopwright.te.lower_body import BodyLowering, IndexTypes
from loopwright.te.operation import ComputeOp, Operation, PlaceholderOp
from loopwright.te.tensor import Tensor


class MissingPlaceholder(LoopwrightError, ValueError):
    """The function would read an input that is not among its parameters."""

    code = "LW0416"

    def __init__(self, missing: Mapping[Tensor, str], given: Sequence[str]) -> None:
        names = list(missing)
        told = ", ".join([f"{tensor.name} (read by {reader})" for tensor, reader in missing.items()])
        plural = len(names) > 1
        super().__init__(
            f"create_prim_func: placeholder{'s' * plural} {told} {'are' if plural else 'is'} not in the list "
            f"[{', '.join(given)}]",
            hint="the list gives the parameters of the function: add " + ", ".join([tensor.name for tensor in names]),
            fields={"missing": [tensor.name for tensor in names]},
        )


class NoOutput(LoopwrightError, ValueError):
    """None of the tensors given is computed, so the function would do nothing."""

    code = "LW0417"

    def __init__(self, given: Sequence[str]) -> None:
        super().__init__(
            f"create_prim_func: [{', '.join(given)}] holds no output: none of the tensors is computed",
            hint="the list gives inputs and outputs: add the tensor that te.compute returned",
        )


class UndefinedVariable(LoopwrightError, ValueError):
    """The function would use a variable that no parameter gives a value.

    A symbol gets its value from a parameter: a tensor that has it, alone, as one of its dimensions, or the variable
    itself in the list.
    """

    code = "LW0418"

    def __init__(self, var: Var, user: str) -> None:
        super().__init__(
            f"create_prim_func: {user} uses the variable {var.name}, which has no value: no parameter has a dimension "
            f"of exactly {var.name}",
            hint=f"add {var.name} to the list to make it a parameter",
            fields={"variable": var.name, "user": user},
        )


class BadFunctionArgument(LoopwrightError, TypeError):
    """Something in the list given to `create_prim_func` cannot be a parameter, or is given twice."""

    code = "LW0419"

    def __init__(self, position: int, problem: str, hint: str) -> None:
        super().__init__(f"create_prim_func: entry {position} of the list {problem}", hint=hint)


class _Names:
    """Fresh identifiers: X, X_1, X_2, …"""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self.next: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        if name not in self.taken:
            self.taken.add(name)
            return name
        k = self.next.get(name, 1)
        while f"{name}_{k}" in self.taken:
            k += 1
        self.next[name] = k + 1
        self.taken.add(f"{name}_{k}")
        return f"{name}_{k}"


def _identifier(name: str) -> str:
    text = re.sub(r"\W", "_", name) or "_"
    return f"_{text}" if text[0].isdigit() else text


@deep
def create_prim_func(
    ops: Tensor | Sequence[Tensor | Var], index_dtype_override: str | DataType | None = None
) -> PrimFunc:
    """The function that computes every computed tensor in `ops` from the placeholders in `ops`.

    The order of the list is the order of the parameters; a variable in it becomes a scalar parameter. Tensors that are
    needed but not listed live inside the function. Loops and indices have the type of the shapes, unless
    `index_dtype_override` gives another. `where=` of a reduction guards its updates; `init=` is its start value.
    """
    arguments = _check_arguments(ops)
    return _Function(arguments, IndexTypes(index_dtype_override, arguments)).build()


def _check_arguments(ops: object) -> list[Tensor | Var]:
    given = list(ops) if isinstance(ops, Sequence) else [ops]
    arguments: dict[Tensor | Var, None] = {}
    for position, argument in enumerate(given):
        if isinstance(argument, Operation):
            raise BadFunctionArgument(position, f"is the operation {argument.name}", "give its tensors: op.output(0)")
        if not isinstance(argument, (Tensor, Var)):
            what = f"is {type(argument).__name__} {argument!r}"
            raise BadFunctionArgument(position, what, "give te tensors, or variables for scalar parameters")
        if argument in arguments:
            raise BadFunctionArgument(position, f"repeats {argument.name}", "give each parameter once")
        arguments[argument] = None
    if all(isinstance(argument, Var) or isinstance(argument.op, PlaceholderOp) for argument in arguments):
        raise NoOutput([argument.name for argument in arguments])
    return list(arguments)


def _in_order(arguments: Sequence[Tensor | Var]) -> list[Operation]:
    """Every operation needed, each after those it reads."""
    order: list[Operation] = []
    state: dict[Operation, bool] = {}  # False: being visited; True: placed
    # A loop with its own stack: chains of computes may be long.
    stack: list[Operation] = [argument.op for argument in reversed(arguments) if isinstance(argument, Tensor)]
    while stack:
        op = stack[-1]
        if op in state:
            stack.pop()
            if not state[op]:
                state[op] = True
                order.append(op)
            continue
        state[op] = False
        stack += [tensor.op for tensor in reversed(op.input_tensors) if tensor.op not in state]
    return order


class _Function:
    """One function in the making."""

    def __init__(self, arguments: Sequence[Tensor | Var], index: IndexTypes) -> None:
        self.arguments = arguments
        self.index = index
        self.order = _in_order(arguments)
        self.names = _Names()
        self.block_names = _Names(["root"])
        self.buffers: dict[Tensor, Buffer] = {}
        self.used: dict[Var, str] = {}  # free variables, and who uses them first

    def build(self) -> PrimFunc:
        self.check_placeholders()
        params: list[Var] = []
        buffer_map: dict[Var, Buffer] = {}
        defined: set[Var] = set()
        for argument in self.arguments:
            if isinstance(argument, Var):
                params.append(argument)
                defined.add(argument)
                continue
            buffer = self.declare(argument)
            params.append(Var(f"var_{buffer.name}", "handle"))
            buffer_map[params[-1]] = buffer
            defined.update([size for size in buffer.shape if isinstance(size, Var)])

        nests: list[Stmt] = []
        allocated: list[Buffer] = []
        for op in self.order:
            if isinstance(op, ComputeOp):
                for tensor in [op.output(k) for k in range(op.num_outputs)]:
                    if tensor not in self.buffers:
                        allocated.append(self.declare(tensor))
                nests.append(self.nest(op))
            elif not isinstance(op, PlaceholderOp):
                raise NotBuilt(f"create_prim_func of {type(op).__name__} {op.name}", "use te.compute")
        for var, user in self.used.items():
            if var not in defined:
                raise UndefinedVariable(var, user)

        root = Block((), (), (), "root", seq(nests), alloc_buffers=tuple(allocated))
        attrs: dict[str, object] = {"global_symbol": "main", "tir.noalias": True}
        free = [tensor for op in self.order for tensor in _layout_free(op)]
        if free:
            positions = [k for k, argument in enumerate(self.arguments) if isinstance(argument, Tensor)]
            attrs["layout_free_buffers"] = [k for k in positions if any(self.arguments[k] is tensor for tensor in free)]
        return PrimFunc(params, BlockRealize((), const(True), root), None, buffer_map, attrs)

    def check_placeholders(self) -> None:
        listed = {argument.op for argument in self.arguments if isinstance(argument, Tensor)}
        missing: dict[Tensor, str] = {}
        for op in self.order:
            for tensor in op.input_tensors:
                if isinstance(tensor.op, PlaceholderOp) and tensor.op not in listed:
                    missing.setdefault(tensor, op.name)
        if missing:
            raise MissingPlaceholder(missing, [argument.name for argument in self.arguments])

    def declare(self, tensor: Tensor) -> Buffer:
        name = self.names.fresh(_identifier(tensor.name))
        shape = [self.index.convert(size) for size in tensor.shape]
        self.use(shape, tensor.name)
        self.buffers[tensor] = buffer = decl_buffer(shape, tensor.dtype, name)
        return buffer

    def use(self, values: Sequence[Expr], user: str, bound: Sequence[Var] = ()) -> None:
        """Note the variables that `values` need from outside."""
        found = BlockAccesses(bound)
        for value in values:
            found.visit(value)
        for var in found.free:
            self.used.setdefault(var, user)

    def nest(self, op: ComputeOp) -> Stmt:
        """The loops of one compute around its block, or around one block an output where there is no reduction."""
        names = _Names()
        axes = [*op.axis, *op.reduce_axis]
        loops = [Var(names.fresh(_identifier(axis.var.name)), self.index.of(axis.var)) for axis in axes]
        lowering = BodyLowering(self.buffers, dict(zip([axis.var for axis in axes], loops, strict=True)), self.index)
        domains: list[Range] = []
        for k, axis in enumerate(axes):
            assert axis.dom is not None, "reduce_axis and data_axis give every axis a domain"
            low, extent = lowering.index(axis.dom.min), lowering.index(axis.dom.extent)
            self.use([low, extent], op.name, loops[:k])
            domains.append(Range.from_min_extent(low, extent))

        if isinstance(op.body[0], Reduce):
            blocks = [self.block(op, op.name, range(op.num_outputs), loops, domains)]
        else:
            blocks = [self.block(op, op.output(k).name, [k], loops, domains) for k in range(op.num_outputs)]
        body = seq(blocks)
        for loop, domain in zip(reversed(loops), reversed(domains), strict=True):
            body = For(loop, domain.min, domain.extent, ForKind.SERIAL, body)
        return body

    def block(
        self, op: ComputeOp, name: str, outputs: Sequence[int], loops: Sequence[Var], domains: Sequence[Range]
    ) -> Stmt:
        """The block that computes `outputs` of `op`, with iteration variables of its own."""
        axes = [*op.axis, *op.reduce_axis]
        variables = [Var(f"v_{loop.name}", loop.dtype) for loop in loops]
        iter_vars = [
            IterVar(domain, var, IterType.DataPar if axis.iter_type is IterType.DataPar else IterType.CommReduce)
            for axis, var, domain in zip(axes, variables, domains, strict=True)
        ]
        values: list[Expr] = list(loops)
        if not iter_vars:
            # A block stands for at least one iteration: rank 0 gets a unit axis.
            unit = self.index.override or DataType("int32")
            once = Range.from_min_extent(const(0, unit), const(1, unit))
            iter_vars = [IterVar(once, Var("vi", unit), IterType.DataPar)]
            values = [const(0, unit)]

        own = dict(zip([axis.var for axis in axes], variables, strict=True))
        lowering = BodyLowering(self.buffers, own, self.index)
        lowering.bind(iter_vars)
        indices = tuple(variables[: len(op.axis)])
        targets = [self.buffers[op.output(k)] for k in outputs]
        first = op.body[outputs[0]]
        init: Stmt | None = None
        if isinstance(first, Reduce):
            init, body = _reduction(op, first, targets, indices, lowering)
        else:
            body = BufferStore(targets[0], lowering.value(first), indices)

        found = BlockAccesses([iter_var.var for iter_var in iter_vars])
        if init is not None:
            found.visit(init)
        found.visit(body)
        for var in found.free:
            self.used.setdefault(var, op.name)
        reads = tuple(found.reads(targets, lowering.analyzer))
        writes = tuple([_element(buffer, indices) for buffer in targets])
        annotations = {key: self.annotation(value) for key, value in op.attrs.items() if key != _LAYOUT_FREE}
        block = Block(
            tuple(iter_vars), reads, writes, self.block_names.fresh(name), body, init, annotations=annotations
        )
        return BlockRealize(tuple(values), const(True), block)

    def annotation(self, value: object) -> object:
        """An attribute of an operation as an annotation of its block: tensors become their buffers."""
        if isinstance(value, Tensor):
            return self.buffers.get(value, value)
        if isinstance(value, (list, tuple)):
            return [self.annotation(item) for item in value]
        return value


_LAYOUT_FREE = "layout_free_placeholders"


def _layout_free(op: Operation) -> list[Tensor]:
    value = op.attrs.get(_LAYOUT_FREE)
    return [tensor for tensor in value if isinstance(tensor, Tensor)] if isinstance(value, (list, tuple)) else []


def _element(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    return BufferRegion(buffer, tuple([Range.from_min_extent(index, const(1, index.dtype)) for index in indices]))


def _reduction(
    op: ComputeOp, reduce: Reduce, targets: Sequence[Buffer], indices: tuple[Expr, ...], lowering: BodyLowering
) -> tuple[Stmt, Stmt]:
    """The start values, and the update. `targets[k]` holds the field that output `k` of `op` takes."""
    fields = [body.value_index for body in op.body if isinstance(body, Reduce)]
    combiner = reduce.combiner
    start = reduce.init or combiner.identity_element
    pairs = list(zip(targets, fields, strict=True))
    init = seq([BufferStore(buffer, lowering.value(start[k]), indices) for buffer, k in pairs])

    so_far: dict[Var, Expr] = {}
    for buffer, k in pairs:
        so_far[combiner.lhs[k]] = BufferLoad(buffer, indices)
        so_far[combiner.rhs[k]] = lowering.value(reduce.source[k])
    lowering.define(so_far)
    results = [lowering.value(combiner.result[k]) for k in fields]
    if len(targets) == 1:
        update: Stmt = BufferStore(targets[0], results[0], indices)
    else:
        # All fields are combined from the old values before any is stored.
        temporaries = [Var(f"v_{buffer.name}", buffer.dtype) for buffer in targets]
        stores = [BufferStore(buffer, var, indices) for buffer, var in zip(targets, temporaries, strict=True)]
        update = seq(stores)
        for var, result in zip(reversed(temporaries), reversed(results), strict=True):
            update = LetStmt(var, result, update)
    condition = lowering.value(reduce.condition)
    always = isinstance(condition, IntImm) and bool(condition.value)
    return init, update if always else IfThenElse(condition, update)
