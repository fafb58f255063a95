"""A compute becomes a loop nest with a block: one for all fields of a reduction, else one for each output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.arith import reduced_ranges
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    IterVar,
    LetStmt,
    Range,
    Reduce,
    Stmt,
    Var,
    cell_region,
    const,
    seq,
)
from loopwright.ir.annotations import STORED_BY
from loopwright.runtime.dtype import DataType
from loopwright.te.assumed_sizes import ASSUMED
from loopwright.te.block_accesses import BlockAccesses
from loopwright.te.function_in_making import FunctionInMaking, Names, identifier
from loopwright.te.lower_body import BodyLowering
from loopwright.te.operation import ComputeOp, PlaceholderOp
from loopwright.te.tensor import Operation, Tensor

LAYOUT_FREE = "layout_free_placeholders"
FOR_FUNCTION = (LAYOUT_FREE, ASSUMED)  # attributes for the function, not for the block


def layout_free(op: Operation) -> list[Tensor]:
    """The tensors whose layout somebody else may choose."""
    value = op.attrs.get(LAYOUT_FREE)
    return [tensor for tensor in value if isinstance(tensor, Tensor)] if isinstance(value, (list, tuple)) else []


class Steps(NamedTuple):
    """Which axis of a compute is time, and the steps to compute. With a `loop`, that loop runs over them already."""

    axis: int
    domain: Range
    loop: Var | None = None
    below: Expr | None = None  # only steps below this one exist


def compute_nest(making: FunctionInMaking, op: ComputeOp, steps: Steps | None = None) -> Stmt:
    """The loops of one compute around its block, or around one block an output where there is no reduction."""
    names = Names([] if steps is None or steps.loop is None else [steps.loop.name])
    axes = [*op.axis, *op.reduce_axis]
    loops: list[Var] = []
    for k, axis in enumerate(axes):
        if steps is not None and steps.loop is not None and k == steps.axis:
            loops.append(steps.loop)
        else:
            loops.append(Var(names.fresh(identifier(axis.var.name)), making.index.of(axis.var)))
    lowering = BodyLowering(making.buffers, dict(zip([axis.var for axis in axes], loops, strict=True)), making.index)
    domains: list[Range] = []
    for k, axis in enumerate(axes):
        assert axis.dom is not None, "reduce_axis and data_axis give every axis a domain"
        domain = steps.domain if steps is not None and k == steps.axis else axis.dom
        low, extent = lowering.index(domain.min), lowering.index(domain.extent)
        making.use([low, extent], op.name, loops[:k])
        domains.append(Range.from_min_extent(low, extent))

    nest = _Nest(making, op, loops, domains, steps)
    if isinstance(op.body[0], Reduce) or making.one_block:
        blocks = [nest.block(op.name, range(op.num_outputs))]
    else:
        blocks = [nest.block(op.output(k).name, [k]) for k in range(op.num_outputs)]
    body = seq(blocks)
    for loop, domain in zip(reversed(loops), reversed(domains), strict=True):
        if steps is None or loop is not steps.loop:
            body = For(loop, domain.min, domain.extent, ForKind.SERIAL, body)
    return body


class _Nest(NamedTuple):
    making: FunctionInMaking
    op: ComputeOp
    loops: Sequence[Var]
    domains: Sequence[Range]
    steps: Steps | None

    def block(self, name: str, outputs: Sequence[int]) -> Stmt:
        """The block that computes `outputs`, with iteration variables of its own."""
        op, making, steps = self.op, self.making, self.steps
        axes = [*op.axis, *op.reduce_axis]
        variables = [Var(f"v_{loop.name}", loop.dtype) for loop in self.loops]
        kinds = [IterType.CommReduce if axis.iter_type is IterType.CommReduce else IterType.DataPar for axis in axes]
        if steps is not None and steps.loop is not None:  # steps outside the loop over time do not read each other
            kinds[steps.axis] = IterType.Ordered
        iter_vars = [
            IterVar(domain, var, kind) for domain, var, kind in zip(self.domains, variables, kinds, strict=True)
        ]
        values: list[Expr] = list(self.loops)
        if not iter_vars:
            # A block stands for at least one iteration: rank 0 gets a unit axis.
            unit = making.index.override or DataType("int32")
            once = Range.from_min_extent(const(0, unit), const(1, unit))
            iter_vars = [IterVar(once, Var("vi", unit), IterType.DataPar)]
            values = [const(0, unit)]

        own = dict(zip([axis.var for axis in axes], variables, strict=True))
        lowering = BodyLowering(making.buffers, own, making.index, making.indices)
        lowering.bind(iter_vars)
        indices = making.indices(op.output(outputs[0]), variables[: len(op.axis)])
        targets = [making.buffers[op.output(k)] for k in outputs]
        first = op.body[outputs[0]]
        init: Stmt | None = None
        if isinstance(first, Reduce):
            init, body = _reduction(op, first, targets, indices, lowering)
        else:
            pairs = zip(targets, outputs, strict=True)
            body = seq([BufferStore(buffer, lowering.value(op.body[k]), indices) for buffer, k in pairs])
        condition = making.store_condition(op)
        if condition is not None:
            body = IfThenElse(lowering.value(condition), body)

        result = BlockAccesses([iter_var.var for iter_var in iter_vars])
        if init is not None:
            result.visit(init)
        result.visit(body)
        making.use_all(result.free, op.name)
        own_results = targets if init is not None else ()
        reads = tuple(result.reads(own_results, indices, lowering.analyzer, reduced_ranges(iter_vars)))
        writes = tuple([cell_region(buffer, indices) for buffer in targets])
        annotations = {key: making.annotation(value) for key, value in op.attrs.items() if key not in FOR_FUNCTION}
        inside = [making.buffers[tensor] for tensor in layout_free(op) if not isinstance(tensor.op, PlaceholderOp)]
        if inside:  # the function says which of its parameters have a free layout; of its own memory, the block does
            annotations[LAYOUT_FREE] = inside
        if op in making.stored_by:
            annotations[STORED_BY] = making.stored_by[op]
        given = steps.axis if steps is not None and steps.loop is not None else None
        label = making.block_name(op, name, given)
        block = Block(tuple(iter_vars), reads, writes, label, body, init, annotations=annotations)
        exists: Expr = const(True)
        if steps is not None and steps.below is not None:
            exists = self.loops[steps.axis] < steps.below
        return BlockRealize(tuple(values), exists, block)


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
