"""prefetch: each iteration asks for what the block touches some iterations later.

    for k in range(256):               →     for k in range(256):
        with T.block("C"):                       T.prefetch(T.address_of(A[k + 8]), 0, 3, 1)
            … A[vk] …                            with T.block("C"):
                                                     … A[vk] …

Here `prefetch(C, k, "A", distance=8)`. The address is that of the first element of the window that the later iteration
touches (of fused loops, whose window is no box: the one that its first iteration touches); past the end of the buffer
it is still only a hint, which never faults. Nothing is read, so nothing is proved; so that computing the address reads
nothing and cannot fail either, an index that data decides, or that may divide by 0 that much later, is taken as 0.
With `levels=1` the iterations are those of the loop around `loop`: each row of a tile asks for its row of a later tile.
With `lines=4` three more cache lines are asked for after that of the address.
What the block only writes is asked for to be written: a cache that shares lines with others then owns it in time.

The loop may also stand beside the block, in a nest of the same shape: its iterations then ask for what those of the
block's own loop touch. So the last pass over a row of a matrix can ask for the next row, which the first pass reads.

    for i in range(4):
        for j in range(8): …                 reads A[i, j]
        for k in range(8): …                 prefetch(first, k, "A", distance=1, levels=1) asks for A[i + 1, k]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.analysis.may_fail import is_safe, risks_in
from loopwright.arith import Analyzer
from loopwright.ir import (
    BlockRealize,
    BufferLoad,
    Evaluate,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    Mul,
    Stmt,
    Var,
    collect,
    const,
    seq,
    structural_equal,
    substitute,
)
from loopwright.ir.intrinsics import address_of, call_intrin
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.allocations import OutsideAllocation, check_visible
from loopwright.schedule.rewrite.blocks import leaves_of
from loopwright.schedule.rewrite.buffers import BufferName, find_buffer
from loopwright.schedule.rewrite.insertion_points import doing_in, visible_from
from loopwright.schedule.rewrite.regions import facts_under
from loopwright.schedule.rewrite.windows import first_cell, loops_within, window_of
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View

_READ, _WRITE, _KEEP, _DATA = 0, 1, 3, 1  # what tir.prefetch takes beside the address; kept: in the nearest cache
_LINE_BYTES: Final = 64  # on every CPU we compile for


def prefetch(
    view: View,
    block: BlockRealize,
    loop: For,
    buffer: BufferName,
    distance: int = 1,
    levels: int = 0,
    lines: int = 1,
) -> Step:
    """Ask at the start of each iteration of `loop` for what `block` touches `distance` iterations later.

    They are iterations of `loop`, or of the loop that is `levels` loops further out.
    """
    chosen = find_buffer("prefetch", block, buffer, "touches")
    path = view.block_path(block_key(block.block))
    if distance < 0:
        raise BadStepArgument("prefetch", f"distance is {distance}", loop, "ask for later iterations: 0 or more")
    if lines < 1:
        raise BadStepArgument("prefetch", f"lines is {lines}", loop, "ask for 1 or more")
    own = next((item for item in view.loops_of(block_key(block.block)) if item is loop), None)
    twins: dict[Var, Expr] = {}
    if own is None:
        own, twins = _beside(view, block, loop)
        apart = next(k for k, item in enumerate(path) if isinstance(item, For) and item.loop_var in twins)
        if visible_from(path, chosen) > apart:
            raise OutsideAllocation("prefetch", chosen, loop, own)
    else:
        check_visible("prefetch", path, chosen, loop)
    counted = _further_out(view, loop, levels)
    position = next(k for k, statement in enumerate(path) if statement is own)
    scope = view.scope_of(path)
    still = loops_within(path[: position + 1], scope)
    window = window_of(view, leaves_of(view, block), chosen, scope, still)
    later = counted.loop_var + const(distance, counted.loop_var.dtype)
    facts = facts_under([*still, *view.loops_to(loop.loop_var)] if twins else still, [scope])
    cell = first_cell(view, leaves_of(view, block), chosen, scope, still)
    is_digits = cell is not None and any([collect(index, FloorDiv, FloorMod) for index in cell])
    moved = [substitute(low, twins) for low in (cell if cell is not None and is_digits else window.origin)]
    first = [facts.simplify(substitute(low, {counted.loop_var: later})) for low in moved]
    around = view.loops_to(loop.loop_var)
    first = [low if _is_harmless(low, facts, around) else const(0, low.dtype) for low in first]
    step = max(1, _LINE_BYTES // chosen.dtype.nbytes)
    hints: list[Stmt] = []
    for line in range(lines):
        indices = first
        if line:
            indices = [*first[:-1], facts.simplify(first[-1] + const(line * step, first[-1].dtype))]
        address = address_of(BufferLoad(chosen, tuple(indices)))
        hint = call_intrin("void", "tir.prefetch", address, _READ if window.reads else _WRITE, _KEEP, _DATA)
        hints.append(Evaluate(hint))
    if twins:
        path = view.block_path(block_key(view.blocks_below(loop)[0].block))
        position = next(k for k, statement in enumerate(path) if statement is loop)
    target = doing_in(path, position, chosen)
    after = view.replaced(path[: target + 1], seq([*hints, path[target]]))
    return Step(after, Proof.ORDER_KEPT, at=loop)


def _is_harmless(index: Expr, facts: Analyzer, around: Sequence[For]) -> bool:
    """Whether an index can be computed after the last iteration, too, where the program computes none."""
    for risk in risks_in(index):
        if isinstance(risk, BufferLoad) or not (is_safe(risk, facts) or _is_nonzero(risk.b, facts, around)):
            return False
    return True


def _is_nonzero(divisor: Expr, facts: Analyzer, around: Sequence[For]) -> bool:
    """Whether one of the loops around would be empty if a factor of the divisor were 0, as fused loops of n · m are."""
    if isinstance(divisor, Mul):
        return _is_nonzero(divisor.a, facts, around) and _is_nonzero(divisor.b, facts, around)
    if not isinstance(divisor, Var):
        return isinstance(divisor, IntImm) and divisor.value != 0
    extents = [facts.simplify(substitute(loop.extent, {divisor: const(0, divisor.dtype)})) for loop in around]
    return any([isinstance(extent, IntImm) and extent.value <= 0 for extent in extents])


def _beside(view: View, block: BlockRealize, loop: For) -> tuple[For, dict[Var, Expr]]:
    """The block's own loop that a loop beside it goes along with, and what its loops are called there."""
    name = block.block.name_hint
    own, others = view.loops_of(block_key(block.block)), view.loops_to(loop.loop_var)
    shared = sum(1 for mine, other in zip(own, others, strict=False) if mine is other)
    path, far = view.block_path(block_key(block.block)), view.loop_path(loop.loop_var)
    if view.scope_of(path) is not view.scope_of(far) or not shared or len(own) < len(others):
        problem = f"loop {loop.loop_var.name} is neither around block {name!r} nor beside it in a loop around both"
        raise BadStepArgument("prefetch", problem, loop, "name one of get_loops(block)")
    pairs = list(zip(own, others, strict=False))[shared:]
    for mine, other in pairs:
        if not structural_equal(mine.extent, other.extent) or not structural_equal(mine.min, other.min):
            problem = f"loop {other.loop_var.name} is not as long as {mine.loop_var.name}, which is around {name!r}"
            raise BadStepArgument("prefetch", problem, loop, "split one of them, so that both take as many steps")
    return pairs[-1][0], {mine.loop_var: other.loop_var for mine, other in pairs}


def _further_out(view: View, loop: For, levels: int) -> For:
    around = view.loops_to(loop.loop_var)
    position = len(around) - 1 - levels
    if levels < 0 or position < 0:
        problem = f"levels is {levels}, and {len(around) - 1} loops are around {loop.loop_var.name}"
        raise BadStepArgument("prefetch", problem, loop, "count iterations of `loop` (0) or of a loop around it")
    return around[position]
