"""Copies: the nest that moves a window of one buffer into another, one element an iteration.

    for ax0, ax1 in T.grid(16, 32):
        with T.block("A_stage"):
            o0, v0, v1 = T.axis.remap("SSS", [i0, ax0, ax1])
            T.where(i0 * 16 + ax0 < 100)
            A_stage[v0, v1] = A[o0 * 16 + v0, v1]

A copy block stands for the cell it copies: the proof looks through it to whoever wrote that cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer
from loopwright.arith.bounds import FAR
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    IterType,
    IterVar,
    Range,
    Stmt,
    Var,
    cell_region,
    const,
    logical_and,
    substitute,
    uses_var,
)
from loopwright.schedule.errors import NotSupported
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.buffers import touches
from loopwright.schedule.rewrite.nests import axes_over, axis_from_zero, counters_over, nest_over
from loopwright.schedule.rewrite.regions import facts_under
from loopwright.schedule.rewrite.windows import Window, inside_shape
from loopwright.schedule.view import View

Indices = Callable[[Sequence[Expr]], Sequence[Expr]]


class Around(NamedTuple):
    """Where a copy stands: the block and the loops around it, and those whose iterations are copies of their own."""

    step: str  # that asks for the copy
    scope: BlockRealize
    loops: Sequence[For]
    named: Sequence[For]


def loop_range(step: str, loop: For, loops: Sequence[For], facts: Analyzer) -> Range:
    """All values of a loop's variable, whatever the loops around it do: what an axis bound to it ranges over."""
    others = {other.loop_var for other in loops}
    if not uses_var(loop.min, others.__contains__) and not uses_var(loop.extent, others.__contains__):
        return Range.from_min_extent(loop.min, loop.extent)
    low = facts.const_int_bound(loop.min).min_value
    high = facts.const_int_bound(loop.min + loop.extent).max_value
    if not -FAR < low <= high < FAR:
        problem = f"how far loop {loop.loop_var.name} runs depends on loops around it, without a constant bound"
        raise NotSupported(step, problem, loop, "ask for it at a loop further out")
    dtype = loop.loop_var.dtype
    return Range.from_min_extent(const(low, dtype), const(max(high - low, 0), dtype))


def around_copy(step: str, view: View, scope: BlockRealize, loops: Sequence[For], buffer: Buffer) -> Around:
    """Copies of a buffer that changes while the loops run are told apart by the iteration they stand in."""
    changes = bool(loops) and any(touches(item.block.writes, buffer) for item in view.blocks_below(loops[0]))
    return Around(step, scope, loops, loops if changes else ())


def copy_nest(
    name: str, window: Window, around: Around, other: Buffer, location: Indices, into_other: bool
) -> tuple[Stmt, Block]:
    """A nest over the window that copies between it and `other`, and its block.

    `location` gives the indices in `other` of an element, from its offsets in the window. Loops outside that the window
    moves with become axes of the block.
    """
    moving = set(window.variables())
    outer = [loop for loop in around.loops if loop.loop_var in moving or loop in around.named]
    axes = {loop.loop_var: Var(f"o{position}", loop.loop_var.dtype) for position, loop in enumerate(outer)}
    loops = counters_over(window.shape)
    inner = axes_over(window.shape)

    here = [substitute(low, axes) + offset for low, offset in zip(window.origin, inner, strict=True)]
    facts = facts_under(around.loops, [around.scope])
    for loop in outer:
        facts.bind(axes[loop.loop_var], Range.from_min_extent(loop.min, loop.extent))
    for var, size in zip([*loops, *inner], [*window.shape, *window.shape], strict=True):
        facts.bind(var, Range.from_min_extent(const(0, var.dtype), size))
    here = [facts.simplify(index) for index in here]
    there = [facts.simplify(index) for index in location(inner)]

    source, target = (window.buffer, other) if into_other else (other, window.buffer)
    from_indices, to_indices = (here, there) if into_other else (there, here)
    store = BufferStore(target, BufferLoad(source, tuple(from_indices)), to_indices)
    iter_vars = [
        IterVar(
            loop_range(around.step, loop, around.loops, facts),
            axes[loop.loop_var],
            IterType.DataPar if loop.loop_var in moving else IterType.Opaque,
        )
        for loop in outer
    ]
    iter_vars += [axis_from_zero(var, size) for var, size in zip(inner, window.shape, strict=True)]
    block = Block(
        tuple(iter_vars), (cell_region(source, from_indices),), (cell_region(target, to_indices),), name, store
    )
    predicate = logical_and(TRUE, *inside_shape(window, loops, facts))
    return nest_over(loops, window.shape, BlockRealize((*axes, *loops), predicate, block)), block


def cell_copy_nest(name: str, window: Window, around: Around, source: Buffer, target: Buffer) -> tuple[Stmt, Block]:
    """A nest over the window that copies each of its cells to the same cell of `target`, and its block."""
    moving = set(window.variables())
    outer = [loop for loop in around.named if loop.loop_var not in moving]
    loops = counters_over(window.shape)
    axes = axes_over(window.shape)
    facts = facts_under(around.loops, [around.scope])
    for var, size in zip(loops, window.shape, strict=True):
        facts.bind(var, Range.from_min_extent(const(0, var.dtype), size))
    values = [facts.simplify(low + var) for low, var in zip(window.origin, loops, strict=True)]
    iter_vars = [
        IterVar(
            loop_range(around.step, loop, around.loops, facts),
            Var(f"o{position}", loop.loop_var.dtype),
            IterType.Opaque,
        )
        for position, loop in enumerate(outer)
    ]
    iter_vars += [axis_from_zero(axis, extent) for axis, extent in zip(axes, window.buffer.shape, strict=True)]
    store = BufferStore(target, BufferLoad(source, tuple(axes)), axes)
    block = Block(tuple(iter_vars), (cell_region(source, axes),), (cell_region(target, axes),), name, store)
    predicate = logical_and(TRUE, *inside_shape(window, loops, facts))
    realize = BlockRealize((*[loop.loop_var for loop in outer], *values), predicate, block)
    return nest_over(loops, window.shape, realize), block
