"""prefetch: each iteration asks for what the block reads some iterations later.

    for k in range(256):               →     for k in range(256):
        with T.block("C"):                       T.prefetch(T.address_of(A[k + 8]), 0, 3, 1)
            … A[vk] …                            with T.block("C"):
                                                     … A[vk] …

Here `prefetch(C, k, "A", distance=8)`. The address is that of the first element of the window that the later iteration
reads; past the end of the buffer it is still only a hint, which never faults. Nothing is read, so nothing is proved.
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

_READ, _KEEP, _DATA = 0, 3, 1  # what tir.prefetch takes beside the address: for reading, into the nearest cache


def prefetch(view: View, block: BlockRealize, loop: For, buffer: BufferName, distance: int = 1) -> Step:
    """Ask at the start of each iteration of `loop` for what `block` touches `distance` iterations later."""
    chosen = find_buffer("prefetch", block, buffer, "touches")
    path = view.block_path(block_key(block.block))
    if not any(item is loop for item in view.loops_of(block_key(block.block))):
        problem = f"loop {loop.loop_var.name} is not around block {block.block.name_hint!r}"
        raise BadStepArgument("prefetch", problem, loop, "name one of get_loops(block)")
    if distance < 0:
        raise BadStepArgument("prefetch", f"distance is {distance}", loop, "ask for later iterations: 0 or more")
    check_visible("prefetch", path, chosen, loop)
    position = next(k for k, statement in enumerate(path) if statement is loop)
    scope = view.scope_of(path)
    still = loops_within(path[: position + 1], scope)
    window = window_of(view, leaves_of(view, block), chosen, scope, still)
    later = loop.loop_var + const(distance, loop.loop_var.dtype)
    facts = facts_under(still, [scope])
    indices = [facts.simplify(substitute(low, {loop.loop_var: later})) for low in window.origin]
    address = address_of(BufferLoad(chosen, tuple(indices)))
    hint = call_intrin("void", "tir.prefetch", address, _READ, _KEEP, _DATA)
    target = doing_in(path, position, chosen)
    after = view.replaced(path[: target + 1], seq([Evaluate(hint), path[target]]))
    return Step(after, Proof.ORDER_KEPT, at=loop)
