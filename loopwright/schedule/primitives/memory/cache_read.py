"""cache_read: a copy of what blocks read, made once before them.

    with T.block("root"):              →     with T.block("root"):
        for i in range(128):                     A_local = T.alloc_buffer((128,), scope="local")
            with T.block("B"):                   for ax0 in range(128):
                … A[vi] …                            with T.block("A_local"):
                                                         v0 = T.axis.spatial(128, ax0)
                                                         A_local[v0] = A[v0]
                                                 for i in range(128):
                                                     with T.block("B"):
                                                         … A_local[vi] …

The copy stands after the last block that writes the buffer, or at the start of the scope; in loops that a writer and a
consumer share, it stands inside them. Only the box that the consumers read is copied, and with consumers behind these
loops the box that the loops write. The new buffer has the old one's shape, so indices stay. Where a block loads from a
buffer in several places, `load` says which of them alone reads the copy (X[i, k] * X[j, k]: 1 is the second). Proved:
every read sees the value it saw before, looking through the copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import BlockRealize, Buffer, BufferLoad, Expr, Rewriter, collect, deep
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.rewrite.blocks import is_leaf, leaves_of
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
from loopwright.schedule.rewrite.insertion_points import place_before
from loopwright.schedule.rewrite.window_caches import in_window, is_tile
from loopwright.schedule.rewrite.windows import loops_within, region_in, window_of
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import Path, View


class NotAConsumer(ScheduleError, ValueError):
    """`cache_read` and `cache_write` were given a consumer that does not read the buffer, so no read could change.

    The consumers are blocks of the same block around as the one that is named first, and read the buffer themselves.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.cache_read("B", 0, "local", consumer_blocks=["C"])  # C reads B, not A
    """

    code = "LW0259"
    is_tried = False

    def __init__(
        self,
        step: str,
        view: View,
        given: BlockRealize,
        buffer: Buffer,
        scope: BlockRealize,
        readers: Sequence[BlockRealize],
    ) -> None:
        """`readers` are those there are in the block `scope`, where the copy would live."""
        names, name = [item.block.name_hint for item in readers], given.block.name_hint
        reads = list(dict.fromkeys([region.buffer.name for region in given.block.reads]))
        if touches(given.block.reads, buffer):
            problem = f"block {name!r} is not in block {scope.block.name_hint!r}, where the new buffer would live"
        else:
            problem = f"block {name!r} does not read {buffer.name}; it reads {', '.join(reads) or 'nothing'}"
        inside = "" if scope is view.root else f"in block {scope.block.name_hint!r}, "
        super().__init__(
            f"{step}: {problem}",
            at=given,
            hint=f"{inside}{buffer.name} is read by {', '.join(names) or 'no other block'}",
            fields={"block": name, "buffer": buffer.name, "readers": names},
        )


def check_consumers(step: str, view: View, given: Sequence[BlockRealize], buffer: Buffer, scope: BlockRealize) -> None:
    """Each of the blocks that were listed reads the buffer, and stands in `scope`."""
    readers = [item for item in view.blocks_below(scope.block.body) if touches(item.block.reads, buffer)]
    for item in given:
        if not any(item is other for other in readers):
            raise NotAConsumer(step, view, item, buffer, scope, readers)


def cache_read(
    view: View,
    block: BlockRealize,
    consumer_blocks: Sequence[BlockRealize] | None,
    read_buffer_index: BufferName,
    storage_scope: str,
    load: int | None = None,
) -> Step:
    """Copy what the readers of a buffer that `block` reads, or just the listed ones, read of it; they read the copy.

    Of the places where `block` loads from the buffer, `load` is the one that is to read the copy; None for all.
    """
    buffer = find_buffer("cache_read", block, read_buffer_index, "reads")
    check_scope("cache_read", storage_scope, block)
    if load is not None:
        _check_load(block, consumer_blocks, buffer, load)
        consumer_blocks = [block]
    own_path = view.block_path(block_key(block.block))
    scope = view.scope_of(own_path)
    siblings = view.blocks_below(scope.block.body)
    readers = [item for item in siblings if touches(item.block.reads, buffer)]
    if not consumer_blocks:
        consumers = [item for item in readers if item is block or not touches(item.block.writes, buffer)]
    else:
        check_consumers("cache_read", view, consumer_blocks, buffer, scope)
        consumers = [*consumer_blocks]
    for item in consumers:
        check_plain_use("cache_read", item, buffer)

    # Where: right before the first consumer, seen from the statement around them all and the writers.
    paths = [view.block_path(block_key(item.block)) for item in consumers]
    writers = [item for item in siblings if touches(item.block.writes, buffer)]
    writers = [item for item in writers if not any(item is other for other in consumers)]
    offset = place_before(view, scope, paths, [view.block_path(block_key(item.block)) for item in writers])

    still = loops_within(offset[:-1], scope)
    # A consumer behind the loops that the copy stands in may read all that these have written.
    inside = [item for item in consumers if _stands_in(view, item, offset[:-1])]
    written = [] if len(inside) == len(consumers) else [item for item in writers if _stands_in(view, item, offset[:-1])]
    leaves = [leaf for item in (*inside, *written) for leaf in leaves_of(view, item)]
    window = window_of(view, leaves, buffer, scope, still)
    name = view.fresh_block_name(f"{buffer.name}_{storage_scope}")
    around = around_copy("cache_read", view, scope, still, buffer)
    is_part = load is None and is_tile(view.block_path(block_key(scope.block)), still, window)
    tile = window if is_part else None
    if tile is not None:
        cache = fresh_buffer(name, tile.shape, buffer, storage_scope)
        nest, result = copy_nest(name, tile, around, cache, list, into_other=True)
    else:
        cache = fresh_buffer(name, buffer.shape, buffer, storage_scope)
        nest, result = cell_copy_nest(name, window, around, buffer, cache)

    edits = Edits()
    for item in consumers:
        edits.replaced[item] = (
            in_window(item, buffer, cache, tile) if load is None else _with_load(item, buffer, cache, load)
        )
    edits.before.setdefault(offset[-1], []).append(nest)
    edits.allocated[scope] = [cache]
    return Step(
        edits.apply(view.function),
        Proof.VALUES,
        Origins(copies=frozenset([block_key(result)])),
        results=[BlockResult(block_key(result))],
        at=block,
        buffers=[buffer],
    )


def _stands_in(view: View, realize: BlockRealize, around: Path) -> bool:
    return view.block_path(block_key(realize.block))[: len(around)] == around


def _check_load(
    realize: BlockRealize, consumers: Sequence[BlockRealize] | None, buffer: Buffer, load: int
) -> None:
    """There is such a load, in a block that holds no others, and no other block is asked to read the copy."""
    name = realize.block.name_hint
    if not is_leaf(realize.block):
        raise NotSupported("cache_read", f"block {name!r} has blocks inside, and loads are counted in one", realize)
    count = len([item for item in collect(realize.block.body, BufferLoad) if item.buffer is buffer])
    if isinstance(load, bool) or not isinstance(load, int) or not 0 <= load < count:
        problem = f"load is {load!r}, and block {name!r} loads from {buffer.name} in {count} places"
        raise BadStepArgument("cache_read", problem, realize, "count from 0, in the order written")
    if consumers and (len(consumers) > 1 or consumers[0] is not realize):
        problem = f"load {load} is one of block {name!r}, and other blocks are listed as consumers"
        raise BadStepArgument("cache_read", problem, realize, "leave consumer_blocks out")


@deep
def _with_load(realize: BlockRealize, old: Buffer, new: Buffer, load: int) -> BlockRealize:
    """The block with one of its loads of `old` reading `new`."""
    block = realize.block
    moved = block.with_(body=_OneLoad(old, new, load).visit(block.body))
    boxes = [region_in(moved, buffer, writes=False) for buffer in (old, new)]
    reads = [region for region in moved.reads if region.buffer is not old]
    return realize.with_(block=moved.with_(reads=(*reads, *[box for box in boxes if box is not None])))


class _OneLoad(Rewriter):
    """Counts loads as `collect` lists them: those in the indices of another after it."""

    def __init__(self, old: Buffer, new: Buffer, load: int) -> None:
        self.old, self.new, self.load = old, new, load
        self.seen = 0

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer is not self.old:
            return self.rebuild(load)
        is_meant = self.seen == self.load
        self.seen += 1
        load = self.rebuild(load)
        return load.with_(buffer=self.new) if is_meant else load
