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


def result_loop(sch: Schedule, block: BlockRV, after: Sequence[str], kept: int) -> LoopRV:
    """The loop over results, bound to blocks: around `block`, whose last `kept` loops reduce, and those after it."""
    last = sch.get_block(after[-1]) if after else block
    loops = list(sch.get_loops(last))
    results = loops if after else loops[: len(loops) - kept]
    if not results:
        loop = sch.add_unit_loop(loops[0] if loops else last)
    else:
        loop = bound_grid(sch, results)
    if loop is not None and not results:
        sch.bind(loop, "blockIdx.x")
    if after:
        sch.compute_at(block, loop)
    return loop


def bound_grid(sch: Schedule, loops: Sequence[LoopRV]) -> LoopRV:
    """The loops bound to blocks; the innermost bound one. Those inside a size that is not known stay apart."""
    loops = list(loops)
    split = len(loops)
    while split > 1 and extent_of(sch, loops[split - 1]) is not None:
        split -= 1
    inner = fused(sch, loops[split - 1 :]) if split <= len(loops) else None
    assert inner is not None
    if split > 1:
        sch.bind(fused(sch, loops[: split - 1]), "blockIdx.y")
    sch.bind(inner, "blockIdx.x")
    return inner
