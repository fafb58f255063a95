"""Result numbers: the loop over results of a reduction, with what is computed of each of them, and its lanes."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.contiguous import seamless_tail
from loopwright.autosched.facts import Axis, BlockFacts, element_strides
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.small_steps import extent_of, fused
from loopwright.schedule import BlockRV, LoopRV, Schedule

_ACCUMULATORS = 64  # bytes of them in a thread, for one load


def lanes_along(facts: BlockFacts, along: Sequence[Axis], others: Sequence[Axis], machine: GpuMachine) -> int:
    """How many neighbours along the axes, taken as one, a thread can load at once: a power of two.

    Vectors begin at multiples of their length where all strides but the innermost one are such multiples. Strides that
    are known only when the program runs are taken for multiples: a kernel for those that are none exists as well.
    """
    moving = [axis for axis in along if axis.extent != 1]
    loads = [access for access in facts.reads if any(access.uses(axis.var) for axis in moving)]
    if not moving or not loads or not all(access.is_affine and access.stride(moving[-1].var) == 1 for access in loads):
        return 1
    widest = max([bytes_of(str(access.buffer.dtype)) for access in loads])
    lanes = machine.lanes(widest)
    while lanes * bytes_of(facts.dtype) > _ACCUMULATORS:
        lanes //= 2
    tail = moving[-seamless_tail(moving, facts) :]
    joined = facts.extent(tail)
    apart = [axis for axis in (*others, *moving[: -len(tail)]) if axis.extent != 1]
    if len(tail) < len(moving) and joined is None:
        return 1
    for access in loads:
        offset = 0
        for form, stride in zip(access.forms, element_strides(access.buffer), strict=True):
            offset += (form.const if form is not None else 0) * (stride or 0)
        steps = [access.stride(axis.var) for axis in apart if access.uses(axis.var)]
        sizes = [offset, *[step for step in steps if step is not None]]
        if len(tail) < len(moving):
            sizes.append(joined or 0)
        while lanes > 1 and any(size % lanes for size in sizes):
            lanes //= 2
    return lanes


def result_loop(sch: Schedule, parts: Sequence[tuple[BlockRV, int]]) -> LoopRV:
    """One nest of all parts, bound to blocks of threads; each part is a block and how many of its last loops reduce."""
    grids: list[list[LoopRV]] = []
    for block, reducing in parts:
        loops = list(sch.get_loops(block))
        results = loops[: len(loops) - reducing]
        grids.append(_grid(sch, results) if results else [sch.add_unit_loop(loops[0] if loops else block)])
    if len(parts) > 1:
        sch.merge(*[grid[-1] for grid in grids])
    merged = list(sch.get_loops(parts[-1][0]))[: len(grids[-1])]
    for axis, loop in zip(("blockIdx.y", "blockIdx.x")[-len(merged) :], merged, strict=True):
        sch.bind(loop, axis)
    return merged[-1]


def bound_grid(sch: Schedule, loops: Sequence[LoopRV]) -> LoopRV:
    """The loops bound to blocks; the innermost bound one."""
    grid = _grid(sch, loops)
    for axis, loop in zip(("blockIdx.y", "blockIdx.x")[-len(grid) :], grid, strict=True):
        sch.bind(loop, axis)
    return grid[-1]


def _grid(sch: Schedule, loops: Sequence[LoopRV]) -> list[LoopRV]:
    """The loops as one, or as two: those inside a size that is not known stay apart, as quotients by it are none."""
    split = len(loops)
    while split > 1 and extent_of(sch, loops[split - 1]) is not None:
        split -= 1
    outer, inner = list(loops[: split - 1]), list(loops[split - 1 :])
    return [*([fused(sch, outer)] if outer else []), fused(sch, inner)]
