"""suggest_allocation_move: how to compute in a loop whose iterations run at the same time, where they share a buffer.

    for i in T.parallel(4):              compute_at("P", i) is refused: neighbours compute, and write, the same cells
        … P[i] + P[i + 1]                of P. Each of them needs a P of its own, and that is a step after compute_at:

    sch.compute_at("P", i); sch.sink_alloc("P", "P"); sch.parallel(i)

While the loop is serial, all three are legal. Nothing is worked out until somebody reads the message.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import ForKind, Var
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.primitives.memory.sink_alloc import sink_alloc
from loopwright.schedule.proof.find_mismatch import find_race
from loopwright.schedule.view import View

MOVES: Final = ("compute_at", "reverse_compute_at")  # steps that put computation into a loop that stands already
_MARKED_BY: Final = {
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorize",
}


def suggest_allocation_move(method: str, after: View, var: Var, buffer: object) -> str:
    """What to do in which order; nothing, where that is not proved to work. `after` is the program that was refused."""
    loop = after.loop(var)
    users = [one for one in after.blocks_below(loop) if buffer in [region.buffer.name for region in one.block.writes]]
    step = _MARKED_BY.get(loop.kind)
    if not users or step is None or not isinstance(buffer, str):
        return ""
    serial = View(after.replaced(after.loop_path(var), loop.with_(kind=ForKind.SERIAL)))
    block = users[0].block
    try:
        sunk = View(sink_alloc(serial, serial.realize(block_key(block)), buffer).after)
    except ScheduleError:
        return ""
    marked = sunk.replaced(sunk.loop_path(var), sunk.loop(var).with_(kind=loop.kind))
    if find_race(marked, var) is not None:
        return ""
    own = f'sink_alloc("{block.name_hint}", "{buffer}")'
    then = f"each iteration of {var.name} then has a {buffer} of its own (proved)"
    return f"{method} before {step}, and {own} between them: {then}"
