"""read_at, write_at: what one iteration of a loop reads (writes) is copied there, by one block that is marked for it.

    for i0 in range(8):                    →    for i0 in range(8):
        for i1 in range(16):                        with T.block("A_shared"):
            with T.block("B"): … A[vi] …                v0 = T.axis.spatial(8, i0)
                                                        T.block_attr({"auto_copy": 1})
                                                        for ax0 in range(16):
                                                            A_shared[v0 * 16 + ax0] = A[v0 * 16 + ax0]
                                                    for i1 in range(16):
                                                        with T.block("B"): … A_shared[vi] …

The loops are inside the block: a later pass decides how the copy is done. The new buffer has the shape of the old one,
so indices stay. Proved: every read sees the value it saw before, looking through the copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    For,
    IfThenElse,
    IterType,
    IterVar,
    Range,
    Stmt,
    Var,
    const,
    logical_and,
    substitute,
    variables_in,
)
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.primitives.compute.decompose_reduction import LoopNotAround
from loopwright.schedule.rewrite.allocations import check_visible
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.blocks import leaves_of
from loopwright.schedule.rewrite.buffers import (
    BufferName,
    check_plain_use,
    check_scope,
    find_buffer,
    fresh_buffer,
    touches,
)
from loopwright.schedule.rewrite.copies import around_copy, loop_range
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.insertion_points import doing_in
from loopwright.schedule.rewrite.nests import counters_over, nest_over
from loopwright.schedule.rewrite.regions import facts_under
from loopwright.schedule.rewrite.window_caches import in_window
from loopwright.schedule.rewrite.windows import Window, inside_shape, loops_within, window_of
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View

AUTO_COPY = "auto_copy"


def read_at(view: View, loop: For, block: BlockRealize, read_buffer_index: BufferName, storage_scope: str) -> Step:
    """Copy what the blocks under `loop` read of a buffer, at the start of each iteration that does so."""
    buffer = find_buffer("read_at", block, read_buffer_index, "reads")
    users = [
        item
        for item in view.blocks_below(loop.body)
        if item is block or (touches(item.block.reads, buffer) and not touches(item.block.writes, buffer))
    ]
    return _copied_at(view, "read_at", loop, block, buffer, storage_scope, users, writes=False)


def write_at(view: View, loop: For, block: BlockRealize, write_buffer_index: BufferName, storage_scope: str) -> Step:
    """Have `block` write another buffer, and copy it out when its part of each iteration is done."""
    buffer = find_buffer("write_at", block, write_buffer_index, "writes")
    return _copied_at(view, "write_at", loop, block, buffer, storage_scope, [block], writes=True)


def _copied_at(
    view: View,
    step: str,
    loop: For,
    block: BlockRealize,
    buffer: Buffer,
    storage_scope: str,
    users: Sequence[BlockRealize],
    writes: bool,
) -> Step:
    # Check
    check_scope(step, storage_scope, block)
    path = view.block_path(block_key(block.block))
    loops = view.loops_of(block_key(block.block))
    if not any(item is loop for item in loops):
        raise LoopNotAround(step, block, loop, loops)
    for item in users:
        check_plain_use(step, item, buffer)
    check_visible(step, path, buffer, loop)

    # Build
    scope = view.scope_of(path)
    paths = [view.block_path(block_key(item.block)) for item in users]
    position = next(k for k, statement in enumerate(path) if statement is loop)
    still = loops_within(path[: position + 1], scope)
    window = window_of(view, [leaf for item in users for leaf in leaves_of(view, item)], buffer, scope, still)
    name = view.fresh_block_name(f"{buffer.name}_{storage_scope}")
    cache = fresh_buffer(name, buffer.shape, buffer, storage_scope)
    source, target = (cache, buffer) if writes else (buffer, cache)
    result = _block(step, name, view, scope, still, window, source, target)
    edits = Edits()
    for item in users:
        edits.replaced[item] = substitute(item, {}, {buffer: cache}) if writes else in_window(item, buffer, cache, None)
    location = paths[0][doing_in(paths[0], position, buffer)]
    (edits.after if writes else edits.before)[location] = [result]
    edits.allocated[scope] = [cache]
    key = block_key(result.block)
    return Step(
        edits.apply(view.function),
        Proof.VALUES,
        Origins(copies=frozenset([key])),
        results=[BlockResult(key)],
        at=loop,
        buffers=[buffer],
    )


def _block(
    step: str,
    name: str,
    view: View,
    scope: BlockRealize,
    still: Sequence[For],
    window: Window,
    source: Buffer,
    target: Buffer,
) -> BlockRealize:
    """The block that copies the window, with its loops inside."""
    moving = set(window.variables())
    named = around_copy(step, view, scope, still, window.buffer).named
    facts = facts_under(still, [scope])
    inner = counters_over(window.shape)
    for var, size in zip(inner, window.shape, strict=True):
        facts.bind(var, Range.from_min_extent(const(0, var.dtype), size))
    conditions = list(inside_shape(window, inner, facts))
    asked = {var for condition in conditions for var in variables_in(condition)}
    needed = [loop for loop in still if loop.loop_var in moving or loop.loop_var in asked or loop in named]
    outer = needed or list(still[-1:])
    axes = {loop.loop_var: Var(f"v{k}", loop.loop_var.dtype) for k, loop in enumerate(outer)}
    for loop in outer:
        facts.bind(axes[loop.loop_var], Range.from_min_extent(loop.min, loop.extent))
    origin = [facts.simplify(substitute(low, axes)) for low in window.origin]
    cell = [facts.simplify(low + var) for low, var in zip(origin, inner, strict=True)]
    body: Stmt = BufferStore(target, BufferLoad(source, tuple(cell)), cell)
    if conditions:
        body = IfThenElse(substitute(logical_and(*conditions), axes), body)
    body = nest_over(inner, window.shape, body)
    box = tuple([Range.from_min_extent(low, size) for low, size in zip(origin, window.shape, strict=True)])
    iter_vars = [
        IterVar(
            loop_range(step, loop, still, facts),
            axes[loop.loop_var],
            IterType.DataPar if loop.loop_var in moving else IterType.Opaque,
        )
        for loop in outer
    ]
    block = Block(
        tuple(iter_vars),
        (BufferRegion(source, box),),
        (BufferRegion(target, box),),
        name,
        body,
        annotations={AUTO_COPY: 1},
    )
    return BlockRealize(tuple(axes), TRUE, block)
