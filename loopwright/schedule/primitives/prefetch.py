"""prefetch: each iteration asks for what the block touches some iterations later.

    for k in range(256):               →     for k in range(256):
        with T.block("C"):                       T.prefetch(T.address_of(A[k + 8]), 0, 3, 1)
            … A[vk] …                            with T.block("C"):
                                                     … A[vk] …

Here `prefetch(C, k, "A", distance=8)`. The address is that of the first element of the window that the later iteration
touches; past the end of the buffer it is still only a hint, which never faults. Nothing is read, so nothing is proved.
With `levels=1` the iterations are those of the loop around `loop`: each row of a tile asks for its row of a later tile.
What the block only writes is asked for to be written: a cache that shares lines with others then owns it in time.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize, BufferLoad, Evaluate, For, const, seq, substitute
from loopwright.ir.intrinsics import address_of, call_intrin
from loopwright.schedule.buffers import BufferName, check_visible, find_buffer
from loopwright.schedule.edits import doing_in, leaves_of
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.handles import block_key
from loopwright.schedule.regions import facts_under
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View
from loopwright.schedule.windows import loops_within, window_of

_READ, _WRITE, _KEEP, _DATA = 0, 1, 3, 1  # what tir.prefetch takes beside the address; kept: in the nearest cache


def prefetch(
    view: View, block: BlockRealize, loop: For, buffer: BufferName, distance: int = 1, levels: int = 0
) -> Step:
    """Ask at the start of each iteration of `loop` for what `block` touches `distance` iterations later.

    They are iterations of `loop`, or of the loop that is `levels` loops further out.
    """
    chosen = find_buffer("prefetch", block, buffer, "touches")
    path = view.block_path(block_key(block.block))
    if not any(item is loop for item in view.loops_of(block_key(block.block))):
        problem = f"loop {loop.loop_var.name} is not around block {block.block.name_hint!r}"
        raise BadStepArgument("prefetch", problem, loop, "name one of get_loops(block)")
    if distance < 0:
        raise BadStepArgument("prefetch", f"distance is {distance}", loop, "ask for later iterations: 0 or more")
    check_visible("prefetch", path, chosen, loop)
    counted = _further_out(view, block, loop, levels)
    position = next(k for k, statement in enumerate(path) if statement is loop)
    scope = view.scope_of(path)
    still = loops_within(path[: position + 1], scope)
    window = window_of(view, leaves_of(view, block), chosen, scope, still)
    later = counted.loop_var + const(distance, counted.loop_var.dtype)
    facts = facts_under(still, [scope])
    indices = [facts.simplify(substitute(low, {counted.loop_var: later})) for low in window.origin]
    address = address_of(BufferLoad(chosen, tuple(indices)))
    hint = call_intrin("void", "tir.prefetch", address, _READ if window.reads else _WRITE, _KEEP, _DATA)
    target = doing_in(path, position, chosen)
    after = view.replaced(path[: target + 1], seq([Evaluate(hint), path[target]]))
    return Step(after, Proof.ORDER_KEPT, at=loop)


def _further_out(view: View, block: BlockRealize, loop: For, levels: int) -> For:
    around = view.loops_of(block_key(block.block))
    position = next(k for k, item in enumerate(around) if item is loop) - levels
    if levels < 0 or position < 0:
        problem = f"levels is {levels}, and {position + levels} loops are around {loop.loop_var.name}"
        raise BadStepArgument("prefetch", problem, loop, "count iterations of `loop` (0) or of a loop around it")
    return around[position]
