"""Operands on their way to shared memory, with zeros beyond their ends.

    A[1000, 777]        →    A_pad[1024, 832] = A or 0        a kernel of its own: rows are multiples of 16 bytes
                             A_shared = A_pad[…]              boxes of one thread

Tensor copies fill in zeros themselves where rows lie as they can move them; then there is no such kernel.
"""

from __future__ import annotations

from typing import Any, Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.gpu.machine import USUAL_THREADS, GpuMachine
from loopwright.autosched.gpu.rules.tensor_gemm.matmul import Side
from loopwright.autosched.gpu.rules.tensor_gemm.planning import Plan
from loopwright.autosched.gpu.rules.transpose import Transpose
from loopwright.autosched.program import Program
from loopwright.autosched.small_steps import extent_of, fused, operand_of
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, Schedule

_SHARED: Final = "shared.dyn"


def shared_copies(sch: Schedule, block: BlockRV, plan: Plan) -> tuple[list[BlockRV], list[BlockRV]]:
    """The blocks that copy both operands to shared memory, and those that copy some to other rows before."""
    paddings = _padded(sch, block, plan)
    copies, first_copies = [], []
    for side in plan.matmul.sides:
        given = side.access.buffer
        padding = paddings.get(given)
        if side.is_copied_first:
            first = _copied_first(sch, block, side, padding)
            first_copies.append(first)
            given, padding = sch.get(first).writes[0].buffer, None
        if padding is None:
            copies.append(sch.cache_read(block, operand_of(sch, block, given), _SHARED))
        else:
            sch.set_scope(padding, 0, _SHARED)
            copies.append(padding)
    return copies, first_copies


def _padded(sch: Schedule, block: BlockRV, plan: Plan) -> dict[Buffer, BlockRV]:
    """The blocks that pad operands to whole tiles, by what they read."""
    matmul = plan.matmul
    given = [side.access.buffer for side in matmul.sides]
    wanted = {
        matmul.m_side.axis.var: plan.tile.rows,
        matmul.n_side.axis.var: plan.tile.columns,
        matmul.k_axis.var: plan.size.slab,
    }
    sizes = [wanted.get(axis.var, 1) for axis in matmul.facts.axes]
    if not any([(axis.extent or 0) % size for axis, size in zip(matmul.facts.axes, sizes, strict=True)]):
        return {}
    sch.pad_einsum(block, sizes)
    result: dict[Buffer, BlockRV] = {}
    for producer in sch.get_producers(block):
        made = sch.get(producer)
        if made.reads[0].buffer in given and made.writes[0].buffer not in given:
            result[made.reads[0].buffer] = producer
    return result


def _copied_first(sch: Schedule, block: BlockRV, side: Side, padding: BlockRV | None) -> BlockRV:
    """The block that copies an operand to rows that a tensor copy can move, along K where that has to be."""
    if not side.is_transposed_first:
        assert padding is not None, "rows that are no multiples of 16 bytes are padded"
        return padding
    buffer = side.access.buffer if padding is None else sch.get(padding).writes[0].buffer
    copy = sch.cache_read(block, operand_of(sch, block, buffer), "global")
    if padding is not None:
        sch.compute_inline(padding)

    def layout(*index: Any) -> list[Any]:
        others = [value for at, value in enumerate(index) if at not in (side.along, side.k)]
        return [*others, index[side.along], index[side.k]]

    sch.transform_layout(copy, ("write", 0), layout)
    return copy


def schedule_first_copies(
    sch: Schedule, copies: list[BlockRV], program: Program, machine: GpuMachine, decision: Decision
) -> None:
    """Give the copies kernels of their own."""
    for copy in copies:
        made = sch.get(copy)
        source, target = made.reads[0].buffer, made.writes[0].buffer
        after = program.after(sch)
        entry, transpose = after.entry(made.name_hint), Transpose()
        if transpose.take([entry], after):
            transpose.schedule(sch, [entry], after, machine, Decision((entry.name,), transpose.name))
        else:
            _copy_rows(sch, copy, machine)
        why = "its rows are multiples of 16 bytes then, and tensor copies move them"
        decision.chose(f"{source.name} copied to {target.name} first", why)


def _copy_rows(sch: Schedule, copy: BlockRV, machine: GpuMachine) -> None:
    """A block copies a row: where it ends, and where the next one begins, takes no division."""
    loops = list(sch.get_loops(copy))
    lanes = machine.lanes(sch.get(copy).writes[0].buffer.dtype.nbytes)
    length = extent_of(sch, loops[-1]) or 1
    threads = machine.threads(min(USUAL_THREADS, -(-length // lanes // machine.warp) * machine.warp))
    _, thread, lane = sch.split(loops[-1], [None, threads, lanes])
    sch.vectorize(lane)
    sch.bind(thread, "threadIdx.x")
    sch.bind(fused(sch, loops[:-1]), "blockIdx.x")
