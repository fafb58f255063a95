"""A scan becomes one ordered loop over time; the first steps are computed before it, right into the state.

for i in range(n):                                first steps: the init compute, writing to the result
    with T.block("init"): S[0, i] = X[0, i]
for t in range(1, m):
    for i in range(n):                            every stage of the step, then the updates
        with T.block("update"):
            v_t = T.axis.scan((1, m), t)
            S[v_t, i] = S[v_t - 1, i] + X[v_t, i]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer
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
    IterType,
    IterVar,
    Range,
    Stmt,
    Var,
    const,
    no_op,
    seq,
)
from loopwright.ir.operators import maximum
from loopwright.te.function_in_making import FunctionInMaking, identifier
from loopwright.te.lower_compute import Steps, compute_nest
from loopwright.te.operation import ComputeOp
from loopwright.te.scan import ScanOp
from loopwright.te.tensor import Operation, Tensor


class PlacedInits(NamedTuple):
    """First steps that are computed right where they belong: init tensor → the scan's output that begins with it."""

    outputs: dict[Tensor, Tensor]

    def steps_of(self, op: ComputeOp, making: FunctionInMaking) -> Steps | None:
        """How `op` is computed if it is the init of a scan; its buffers are then the states'."""
        states = {op.output(k): self.outputs.get(op.output(k)) for k in range(op.num_outputs)}
        for tensor, state in states.items():
            if state is not None:
                making.buffers[tensor] = making.buffer_of(state)
        given = next(iter(states.values()))
        if given is None:
            return None
        assert isinstance(given.op, ScanOp) and op.axis[0].dom is not None
        return Steps(0, op.axis[0].dom, below=_limit(making, given.op))


def place_inits(order: Sequence[Operation], arguments: Sequence[object]) -> PlacedInits:
    """The inits that nothing else reads: those need no memory of their own."""
    readers: dict[Tensor, int] = {}
    for op in order:
        for tensor in op.dependencies:
            readers[tensor] = readers.get(tensor, 0) + 1
    listed = {argument for argument in arguments if isinstance(argument, Tensor)}
    placed: dict[Tensor, Tensor] = {}
    for op in order:
        if not isinstance(op, ScanOp):
            continue
        for k, first in enumerate(op.init):
            result = [first.op.output(j) for j in range(first.op.num_outputs)]
            alone = all([readers.get(tensor) == 1 and op.init.count(tensor) == 1 for tensor in result])
            inside = any(tensor in op.body.inputs for tensor in result)  # a stage reads it too
            if isinstance(first.op, ComputeOp) and alone and not inside and not listed.intersection(result):
                placed[first] = op.output(k)
    return PlacedInits(placed)


def _limit(making: FunctionInMaking, op: ScanOp) -> Expr | None:
    """The number of steps, where the first ones may be more than that."""
    start, end = op.init[0].shape[0], op.update[0].shape[0]
    return None if Analyzer().can_prove(start <= end) else making.size(end)


def lower_scan(making: FunctionInMaking, op: ScanOp, inits: PlacedInits) -> Stmt:
    """The loop over time, behind what has to be there before it."""
    states = [making.buffer_of(op.output(k)) for k in range(op.num_outputs)]
    for placeholder, state in zip(op.state_placeholder, states, strict=True):
        making.buffers[placeholder] = state
    start, end = making.size(op.init[0].shape[0]), making.size(op.update[0].shape[0])
    making.use([start, end], op.name)
    limit = _limit(making, op)
    before: list[Stmt] = []
    for first, state in zip(op.init, states, strict=True):
        if first not in inits.outputs:
            rows = Range.from_min_extent(const(0, start.dtype), start)
            source = making.buffers[first]
            before.append(_copy_rows(making, f"{op.name}_init", state, source, Steps(0, rows, below=limit)))

    # An update computes right into its state; one that is no compute, or updates two states, is copied.
    copied: list[tuple[Tensor, Buffer]] = []
    placed: list[Tensor] = []
    stages = {stage.op for stage in op.body.stages}
    updated = {update.op for update in op.update}
    for update, state in zip(op.update, states, strict=True):
        if update.op in stages and update not in making.buffers:
            making.buffers[update] = state
            placed.append(update)
        else:
            copied.append((update, state))
    time = Var(_time_name(op), making.index.of(op.scan_axis.var))
    running = Range.from_min_extent(start, end - start)
    nests: list[Stmt] = []
    for stage in op.body.stages:
        for tensor in [stage.op.output(k) for k in range(stage.op.num_outputs)]:
            if tensor not in placed:
                # Memory of this scan's own; of a stage that is read at its own step only, one step is enough.
                making.buffers.pop(tensor, None)
                making.one_step.pop(tensor, None)
                if stage.time is not None and not stage.lag and stage.op not in updated and making.may_fold(stage.op):
                    making.one_step[tensor] = stage.time
            making.buffer_of(tensor)
        if stage.time is None:
            before.append(compute_nest(making, stage.op))
            continue
        if stage.lag:
            low = maximum(start - stage.lag, const(stage.valid_from, start.dtype))
            earlier = Range.from_min_extent(low, start - low)
            before.append(compute_nest(making, stage.op, Steps(stage.time, earlier, below=limit)))
        nests.append(compute_nest(making, stage.op, Steps(stage.time, running, time)))
    for update, state in copied:
        source = making.buffers[update]
        nests.append(_copy_rows(making, f"{op.name}_update", state, source, Steps(0, running, time)))
    for update in placed:  # two scans may share an update: each computes it in its own loop
        del making.buffers[update]
    loop = For(time, running.min, running.extent, ForKind.SERIAL, seq(nests) if nests else no_op())
    return seq([*before, loop])


def _time_name(op: ScanOp) -> str:
    """The loop is named as the update names its first axis."""
    update = op.update[0].op
    return identifier(update.axis[0].var.name if isinstance(update, ComputeOp) and update.axis else "t")


def _copy_rows(making: FunctionInMaking, name: str, target: Buffer, source: Buffer, steps: Steps) -> Stmt:
    """The given steps of `target` copied from `source`."""
    domains = [steps.domain, *[Range.from_min_extent(const(0, size.dtype), size) for size in target.shape[1:]]]
    loops = [
        steps.loop if k == 0 and steps.loop is not None else Var(f"i{k}", domain.extent.dtype)
        for k, domain in enumerate(domains)
    ]
    variables = [Var(f"v_{loop.name}", loop.dtype) for loop in loops]
    kinds = [IterType.DataPar if steps.loop is None else IterType.Ordered, *[IterType.DataPar] * (len(loops) - 1)]
    axes = [IterVar(domain, var, kind) for domain, var, kind in zip(domains, variables, kinds, strict=True)]
    cell = tuple([Range.from_min_extent(var, const(1, var.dtype)) for var in variables])
    block = Block(
        tuple(axes),
        (BufferRegion(source, cell),),
        (BufferRegion(target, cell),),
        making.block_names.fresh(name),
        BufferStore(target, BufferLoad(source, tuple(variables)), tuple(variables)),
    )
    exists = const(True) if steps.below is None else loops[0] < steps.below
    body: Stmt = BlockRealize(tuple(loops), exists, block)
    for loop, domain in zip(reversed(loops), reversed(domains), strict=True):
        if loop is not steps.loop:
            body = For(loop, domain.min, domain.extent, ForKind.SERIAL, body)
    return body
