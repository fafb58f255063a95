"""compute_at: a producer moves under a loop of its consumers and computes there what one iteration needs.

    for i in range(64):                          →    for i_0 in range(8):
        with T.block("B"): B[vi] = A[vi] + 1              for ax0 in range(8):
    for i_0, i_1 in T.grid(8, 8):                             with T.block("B"):
        with T.block("C"): C[vi] = B[vi] * 2                      vi = T.axis.spatial(64, i_0 * 8 + ax0)
                                                                  B[vi] = A[vi] + 1
                                                          for i_1 in range(8):
                                                              with T.block("C"): C[vi] = B[vi] * 2

The block gets new loops `ax0, ax1, …` over the part of its axes that the consumers under the loop touch, reductions
whole. What several iterations need is computed several times, a reduction then in memory of its own (`privatize.py`).
Memory that the threads of a block share ("shared") gets what all of them need: the part does not depend on loops bound
to threads. Memory that each thread has for itself gets what that thread needs. Proved: every read sees the value it saw
before.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize, For, Var
from loopwright.schedule.handles import Mark, block_key
from loopwright.schedule.primitives.compute.compute_inline import compute_inline
from loopwright.schedule.proof.speculative_runs import check_speculative_runs
from loopwright.schedule.rewrite.privatize import privatize
from loopwright.schedule.rewrite.regions import Solver, Span, relaxed_over_threads, touched_under
from loopwright.schedule.rewrite.relocate import NothingUnderLoop, Relocation
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def compute_at(
    view: View, block: BlockRealize, loop: For | Mark, preserve_unit_loops: bool = False, index: int = -1
) -> Step:
    """Move `block` into `loop`: before its first consumer there (-1), after its last producer (-2), or at `index`.

    A sampled location may also be where the block stands (nothing happens) or in its consumers (it is inlined).
    """
    if isinstance(loop, Mark):
        return compute_inline(view, block) if loop is Mark.INLINE else Step(view.function, Proof.ORDER_KEPT, at=block)
    move = Relocation("compute_at", view, block, loop)
    needed = touched_under(move.body, move.touched_by_name.writes, False, move.facts(), move.around)
    if not needed:
        arguments = {buffer.data for buffer in view.function.argument_buffers()}
        is_output = any([region.buffer.data in arguments for region in block.block.writes])
        raise NothingUnderLoop("compute_at", block, loop, "reads what is written by", is_output)
    solver = Solver(move.runs.domain, move.facts())
    spans: dict[Var, Span | None] = {}
    parts: list[dict[Var, Span]] = []
    for buffer, boxes in needed.items():
        regions = [region for region in block.block.writes if region.buffer is buffer]
        wide = [relaxed_over_threads(box, buffer.scope(), move.around, move.facts()) for box in boxes]
        for region in regions:
            parts += [solver.axes_touching(region, box) for box in wide]
        if not regions:
            parts.append({})  # the same memory under another name
    for axis in block.block.iter_vars:
        spans[axis.var] = parts[0].get(axis.var)
        for part in parts[1:]:
            spans[axis.var] = solver.hull(spans[axis.var], part.get(axis.var))
    known = {axis: span for axis, span in spans.items() if span is not None}
    after = move.finish(known, index, preserve_unit_loops)
    if not move.runs.is_exact:
        check_speculative_runs("compute_at", after, [block_key(block.block)], loop)
    after = privatize(after, block_key(block.block), loop.loop_var)
    return Step(after, Proof.VALUES, at=block, buffers=move.buffers())
