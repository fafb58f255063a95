"""cache_inplace: a block updates a copy of a buffer, which is copied in before it and out after it.

    for i in range(8):                     →     A_local[v0] = A[v0]               in a block before
        with T.block("A"):                       for i in range(8):
            A[vi] = A[vi] * 2                        with T.block("A"): A_local[vi] = A_local[vi] * 2
                                                 A[v0] = A_local[v0]               in a block after

Proved: every read sees the value it saw before, looking through both copies.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize, Buffer, substitute
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.rewrite.blocks import leaves_of
from loopwright.schedule.rewrite.buffers import (
    BufferName,
    check_plain_use,
    check_scope,
    find_buffer,
    fresh_buffer,
    touches,
)
from loopwright.schedule.rewrite.copies import around_copy, cell_copy_nest
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.insertion_points import place_after, visible_from
from loopwright.schedule.rewrite.windows import loops_within, window_of
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View


class NotInPlace(ScheduleError):
    """cache_inplace is for a buffer that the block both reads and writes.

    For what it only reads use `cache_read`, for what it only writes `cache_write`.

    For example:

        from loopwright import te, tir
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.cache_inplace("B", 0, "local")
    """

    code = "LW0217"

    def __init__(self, realize: BlockRealize, buffer: Buffer) -> None:
        name = realize.block.name_hint
        super().__init__(
            f"cache_inplace: block {name!r} reads {buffer.name}, but does not write it",
            at=realize,
            hint=f'sch.cache_read("{name}", "{buffer.name}", …) makes a copy to read',
        )


def cache_inplace(view: View, block: BlockRealize, read_buffer_index: BufferName, storage_scope: str) -> Step:
    """Have `block` work on a copy of a buffer that it reads and writes."""
    buffer = find_buffer("cache_inplace", block, read_buffer_index, "reads")
    if not touches(block.block.writes, buffer):
        raise NotInPlace(block, buffer)
    check_scope("cache_inplace", storage_scope, block)
    check_plain_use("cache_inplace", block, buffer)
    path = view.block_path(block_key(block.block))
    scope = view.scope_of(path)
    others = [item for item in view.blocks_below(scope.block.body) if item is not block]
    users = [item for item in others if touches((*item.block.reads, *item.block.writes), buffer)]
    paths = [view.block_path(block_key(item.block)) for item in users]
    location = place_after(view, scope, path, paths, visible_from(path, buffer))
    still = loops_within(location[:-1], scope)
    window = window_of(view, leaves_of(view, block), buffer, scope, still)
    around = around_copy("cache_inplace", view, scope, still, buffer)
    name = view.fresh_block_name(f"{buffer.name}_{storage_scope}")
    cache = fresh_buffer(name, buffer.shape, buffer, storage_scope)
    into, first = cell_copy_nest(name, window, around, buffer, cache)
    out, last = cell_copy_nest(view.fresh_block_name(f"{name}_out"), window, around, cache, buffer)

    edits = Edits()
    edits.replaced[block] = substitute(block, {}, {buffer: cache})
    edits.before[location[-1]] = [into]
    edits.after[location[-1]] = [out]
    edits.allocated[scope] = [cache]
    copies = [block_key(first), block_key(last)]
    return Step(
        edits.apply(view.function),
        Proof.VALUES,
        Origins(copies=frozenset(copies)),
        results=[BlockResult(key) for key in copies],
        several=True,
        at=block,
        buffers=[buffer],
    )
