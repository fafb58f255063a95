"""lift_alloc: a buffer's memory is allocated further out.

    for i in range(4):                     →     B = T.decl_buffer((8,))
        B = T.decl_buffer((8,))                  for i in range(4):
        …                                            …

Where a buffer lives decides whether iterations share it: one memory for all of them lets values be carried from one to
the next, and makes parallel iterations race. Proved: every read sees the value it saw before, and no parallel or
vectorized loop around now races.
"""

from __future__ import annotations

from loopwright.ir import Allocate, BlockRealize, DeclBuffer, For, Stmt
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.rewrite.allocations import allocate, home_of
from loopwright.schedule.rewrite.buffers import BufferName, find_buffer
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def lift_alloc(view: View, block: BlockRealize, buffer: BufferName, levels: int = 1) -> Step:
    """Allocate a buffer that `block` touches `levels` loops further out; past the last loop, in the block around."""
    chosen = find_buffer("lift_alloc", block, buffer, "touches")
    if levels < 1:
        raise BadStepArgument("lift_alloc", f"levels is {levels}", block, "use 1 or more")
    path = home_of("lift_alloc", view, chosen, block).path
    allocation = path[-1]
    if not isinstance(allocation, Allocate):
        name = allocation.block.name_hint if isinstance(allocation, BlockRealize) else ""
        raise NotSupported("lift_alloc", f"{chosen.name} is allocated in block {name!r} already", allocation)

    # Build: take the allocation out, and put it around the loop, or into the block when there is no such loop
    edits = Edits()
    around: Stmt | None = None
    for statement in reversed(path[:-1]):
        if isinstance(statement, BlockRealize):
            edits.allocated[statement] = [chosen]
            around = None
            break
        if isinstance(statement, For):
            around, levels = statement, levels - 1
            if levels == 0:
                break
    body = allocation.body
    inner = body.body if isinstance(body, DeclBuffer) and body.buffer is chosen else body
    edits.replaced[allocation] = inner
    after = edits.apply(view.function)
    if around is not None:
        wrapped = View(after)
        loop_path = wrapped.loop_path(around.loop_var)  # type: ignore[attr-defined]
        after = wrapped.replaced(loop_path, allocate(chosen, loop_path[-1]))
    return Step(after, Proof.VALUES, at=block, buffers=[chosen])
