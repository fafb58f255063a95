"""set_scope: a buffer lives in another kind of memory.

    B = T.alloc_buffer((128,))         →     B = T.alloc_buffer((128,), scope="local")

Every name of the same memory follows. Cells and order are the same, so every read sees what it saw; where loops are
bound to threads, whose memory may be private to each, that is proved.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import has_threads
from loopwright.ir import BlockRealize, PrimFunc
from loopwright.schedule.rewrite.allocations import home_of
from loopwright.schedule.rewrite.buffers import BufferName, check_scope, exchange, find_buffer, rescoped
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def set_scope(view: View, block: BlockRealize, buffer_index: BufferName, storage_scope: str) -> Step:
    """Put a buffer that `block` writes into `storage_scope` memory."""
    buffer = find_buffer("set_scope", block, buffer_index, "writes")
    check_scope("set_scope", storage_scope, block)
    home_of("set_scope", view, buffer, block)
    if buffer.scope() == storage_scope:
        return Step(view.function, Proof.ORDER_KEPT, at=block)
    moved = rescoped(buffer, storage_scope)
    after = exchange(view.function, buffer, moved)
    # Threads have memory of their own in some scopes; without them a scope is a name.
    if has_threads(view.function.body):
        return Step(after, Proof.VALUES, at=block, buffers=[buffer])

    def again(function: PrimFunc) -> PrimFunc | None:
        return None if has_threads(function.body) else exchange(function, buffer, moved)

    return Step(after, Proof.GIVEN, at=block, buffers=[buffer], again=again)
