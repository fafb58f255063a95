"""reverse_compute_at: a consumer moves under a loop of its producers and uses up there what one iteration made.

    for i_0, i_1 in T.grid(8, 8):                →    for i_0 in range(8):
        with T.block("B"): B[vi] = A[vi] + 1              for i_1 in range(8):
    for i in range(64):                                       with T.block("B"): B[vi] = A[vi] + 1
        with T.block("C"): C[vi] = B[vi] * 2              for ax0 in range(8):
                                                              with T.block("C"):
                                                                  vi = T.axis.spatial(64, i_0 * 8 + ax0)
                                                                  C[vi] = B[vi] * 2

An iteration of the consumer runs once the last cell it reads is there, so a stencil follows its producer at a distance.
Proved: every read sees the value it saw before.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize, For, IterType, Var
from loopwright.schedule.handles import block_key
from loopwright.schedule.proof.speculative_runs import check_speculative_runs
from loopwright.schedule.rewrite.regions import Solver, Span, touched_under
from loopwright.schedule.rewrite.relocate import NothingUnderLoop, Relocation
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def reverse_compute_at(
    view: View, block: BlockRealize, loop: For, preserve_unit_loops: bool = False, index: int = -1
) -> Step:
    """Move `block` into `loop`: before its first consumer there (-1), after its last producer (-2), or at `index`."""
    move = Relocation("reverse_compute_at", view, block, loop)
    result = touched_under(move.body, move.touched_by_name.reads, True, move.facts())
    if not result:
        raise NothingUnderLoop("reverse_compute_at", block, loop, "writes what is read by")
    reduced = [axis.var for axis in block.block.iter_vars if axis.iter_type == IterType.CommReduce]
    solver = Solver(move.runs.domain, move.facts(), reduced)
    spans: dict[Var, Span] = {}
    for buffer, boxes in result.items():
        for region in block.block.reads:
            if region.buffer is not buffer:
                continue
            parts = [solver.axes_touching(region, box, at_end=True) for box in boxes]
            for axis in move.runs.domain:
                span = parts[0].get(axis)
                for part in parts[1:]:
                    span = solver.hull(span, part.get(axis))
                if span is not None:
                    solver.narrow(spans, axis, span)
    after = move.finish(spans, index, preserve_unit_loops)
    if not move.runs.is_exact:
        check_speculative_runs("reverse_compute_at", after, [block_key(block.block)], loop)
    return Step(after, Proof.VALUES, at=block, buffers=move.buffers())
