"""cache_write: a block writes a new buffer, which is copied out after it.

    for i in range(128):               →     for i in range(128):
        with T.block("B"):                       with T.block("B"):
            B[vi] = …                                B_local[vi] = …
                                             for ax0 in range(128):
                                                 with T.block("B_local"):
                                                     v0 = T.axis.spatial(128, ax0)
                                                     B[v0] = B_local[v0]

The block's own updates, and its init, go to the new buffer. Other blocks keep reading the old one, unless they are
listed. Proved: every read sees the value it saw before, looking through the copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import BlockRealize, Buffer, IfThenElse
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.primitives.memory.cache_read import check_consumers
from loopwright.schedule.rewrite.blocks import leaves_of
from loopwright.schedule.rewrite.buffers import (
    BufferName,
    check_plain_use,
    check_scope,
    find_buffer,
    fresh_buffer,
    touches,
)
from loopwright.schedule.rewrite.copies import around_copy, cell_copy_nest, copy_nest
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.insertion_points import behind, common_path, place_after, visible_from
from loopwright.schedule.rewrite.window_caches import in_window, is_tile
from loopwright.schedule.rewrite.windows import loops_within, window_of
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View


class SeveralWriters(ScheduleError):
    """A buffer is written by more than one block, so no one of them can be the one that writes the copy.

    `cache_write` moves a whole buffer to the block that makes it. Where several blocks share the work (a reduction's
    init and its updates, after `decompose_reduction`), use `stage`: it copies the window in, updates it, and out.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.decompose_reduction("B", sch.get_loops("B")[0])
        sch.cache_write("B_update", 0, "local")
    """

    code = "LW0254"

    def __init__(self, block: BlockRealize, buffer: Buffer, others: Sequence[BlockRealize]) -> None:
        names = ", ".join(repr(item.block.name_hint) for item in others)
        super().__init__(
            f"cache_write: {buffer.name} is written by block {block.block.name_hint!r} and also by {names}",
            at=block,
        )


def cache_write(
    view: View,
    block: BlockRealize,
    consumer_blocks: Sequence[BlockRealize] | None,
    write_buffer_index: BufferName,
    storage_scope: str,
) -> Step:
    """Have `block` write a new buffer, copied out after it; the listed consumers read the new one too."""
    buffer = find_buffer("cache_write", block, write_buffer_index, "writes")
    check_scope("cache_write", storage_scope, block)
    path = view.block_path(block_key(block.block))
    scope = view.scope_of(path)
    siblings = [item for item in view.blocks_below(scope.block.body) if item is not block]
    others = [item for item in siblings if touches(item.block.writes, buffer) and not _runs_instead(view, block, item)]
    if others:
        raise SeveralWriters(block, buffer, others)
    listed = [item for item in consumer_blocks or () if item is not block]
    check_consumers("cache_write", view, listed, buffer, scope)
    for item in (block, *listed):
        check_plain_use("cache_write", item, buffer)

    readers = [
        view.block_path(block_key(item.block))
        for item in siblings
        if touches(item.block.reads, buffer) and not any(item is other for other in listed)
    ]
    location = place_after(view, scope, path, readers, visible_from(path, buffer))
    location = behind(location, [view.block_path(block_key(item.block)) for item in listed], readers)
    still = loops_within(location[:-1], scope)
    window = window_of(view, leaves_of(view, block), buffer, scope, still)
    name = view.fresh_block_name(f"{buffer.name}_{storage_scope}")
    around = around_copy("cache_write", view, scope, still, buffer)
    tile = window if is_tile(view.block_path(block_key(scope.block)), still, window) and not listed else None
    if tile is not None:
        cache = fresh_buffer(name, tile.shape, buffer, storage_scope)
        nest, result = copy_nest(name, tile, around, cache, list, into_other=False)
    else:
        cache = fresh_buffer(name, buffer.shape, buffer, storage_scope)
        nest, result = cell_copy_nest(name, window, around, cache, buffer)

    edits = Edits()
    edits.replaced[block] = in_window(block, buffer, cache, tile, writes=True)
    for item in listed:
        edits.replaced[item] = in_window(item, buffer, cache, None)
    edits.after[location[-1]] = [nest]
    edits.allocated[scope] = [cache]
    return Step(
        edits.apply(view.function),
        Proof.VALUES,
        Origins(copies=frozenset([block_key(result)])),
        results=[BlockResult(block_key(result))],
        at=block,
        buffers=[buffer],
    )


def _runs_instead(view: View, block: BlockRealize, other: BlockRealize) -> bool:
    """Whether one of the two blocks runs if a condition holds, and the other one if it does not."""
    paths = [view.block_path(block_key(item.block)) for item in (block, other)]
    return isinstance(common_path(paths)[-1], IfThenElse)
