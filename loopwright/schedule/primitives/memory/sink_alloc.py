"""sink_alloc: a buffer's memory is allocated as far in as its values allow.

    with T.block("root"):                    →     for i in range(4):
        B = T.alloc_buffer((8,))                       B = T.decl_buffer((8,))
        for i in range(4):                             for j in range(8): … writes B[j]
            for j in range(8): … writes B[j]           for j in range(8): … reads B[j]
            for j in range(8): … reads B[j]

Each iteration then has memory of its own, so that the loop can run in parallel. The place is the innermost one around
all uses across whose iterations no value flows: that is proved, place by place. Where all steps are proved together
afterwards, it is the innermost one in which the first block that uses the buffer writes it; if that was too far in, the
proof fails, and the steps are done again with a proof each.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize, Buffer, For, PrimFunc, Stmt
from loopwright.ir.verifier import NotWellFormed
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.proof.buffer_scopes import verify_inits
from loopwright.schedule.proof.find_mismatch import find_mismatch
from loopwright.schedule.proof.lemmas import memory_named
from loopwright.schedule.rewrite.allocations import allocated_in, common_use, home_of
from loopwright.schedule.rewrite.blocks import blocks_in, is_leaf
from loopwright.schedule.rewrite.buffers import BufferName, find_buffer
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class NothingToSink(ScheduleError):
    """The buffer cannot be allocated further in: its uses have no closer place in common, or a value is carried from
    one iteration of the loop to the next.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.sink_alloc("C", "B")  # one loop writes all of B, the next one reads it
    """

    code = "LW0255"

    def __init__(self, buffer: Buffer, at: BlockRealize, carrier: For | None) -> None:
        name = buffer.name
        problem = f"sink_alloc: {name} has no place further in that holds all its uses"
        if carrier is not None:
            problem = f"sink_alloc: values of {name} flow from one iteration of loop {carrier.loop_var.name} to another"
        super().__init__(problem, at=carrier or at)


def sink_alloc(view: View, block: BlockRealize, buffer: BufferName, is_owed: bool = False) -> Step:
    """Allocate a buffer that `block` touches in the innermost loop across whose iterations no value of it flows."""
    chosen = find_buffer("sink_alloc", block, buffer, "touches")
    home = home_of("sink_alloc", view, chosen, block)
    shared = common_use(view, chosen)
    locations = [k for k in range(len(home.path), len(shared)) if isinstance(shared[k], For)]
    innermost_first = list(reversed(locations))
    for location in innermost_first:
        after = allocated_in(view, home, chosen, shared, location)
        try:
            verify_inits(after)
        except NotWellFormed:
            continue  # the start value of a reduction is written outside
        is_right = _is_written_first(shared[location], chosen) if is_owed else _is_proved(view, after, chosen)
        if is_right:
            return Step(after, Proof.VALUES, at=block, buffers=[chosen])
    carrier = shared[locations[0]] if locations else None
    raise NothingToSink(chosen, block, carrier if isinstance(carrier, For) else None)


def _is_proved(view: View, after: PrimFunc, buffer: Buffer) -> bool:
    return find_mismatch(view.function, after, buffers=[buffer]) is None


def _is_written_first(loop: Stmt, buffer: Buffer) -> bool:
    """Whether the first block in the loop that uses the buffer writes it, and reads none of it."""
    for block in blocks_in(loop):
        if buffer.data in memory_named(block) and is_leaf(block):
            reads = block.init is None and any([region.buffer.data is buffer.data for region in block.reads])
            return not reads and any([region.buffer.data is buffer.data for region in block.writes])
    return False
