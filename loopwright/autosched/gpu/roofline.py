"""The least time that blocks take on a GPU: bytes over bandwidth, operations over what all multiprocessors do."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.autosched.contiguous import size_of
from loopwright.autosched.decision import Decision, Roofline
from loopwright.autosched.facts import Access, Axis, BlockFacts
from loopwright.autosched.facts import const as number_of
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.nest_cost import instructions


def bytes_moved(facts: Sequence[BlockFacts]) -> int:
    """Bytes that cross memory at least: each cell once, however often it is touched; unknown sizes are guessed."""
    cells: dict[object, int] = {}
    for block in facts:
        for access in (*block.writes, *block.reads):
            size = _cells(access, block.axes) * bytes_of(str(access.buffer.dtype))
            cells[access.buffer] = max(cells.get(access.buffer, 0), size)
    return sum(cells.values())


def note_roofline(
    decision: Decision,
    facts: Sequence[BlockFacts],
    machine: GpuMachine,
    share: float = 0.95,
    flops: float | None = None,
) -> None:
    """Note the limit of these blocks, in seconds, and that `share` of it is expected beside the launch."""
    moved = bytes_moved(facts)
    computed = sum([instructions(block) * size_of(block.axes) for block in facts]) if flops is None else flops
    memory, arithmetic = moved / machine.bandwidth_of(moved), computed / machine.flops
    expected = max(memory, arithmetic) / share + machine.launch
    decision.roofline = Roofline(arithmetic, memory, expected)
    rate = machine.bandwidth_of(moved) / 1e12
    decision.chose(
        f"{expected * 1e6:.1f} µs",
        f"{moved / 1e6:.3g} MB at {rate:.2f} TB/s, and {machine.launch * 1e6:.1f} µs to launch",
    )


def _cells(access: Access, axes: Sequence[Axis]) -> int:
    """Different cells that are touched, at most: no more than the buffer has, nor than there are iterations."""
    moving = [axis for axis in axes if access.uses(axis.var)]
    sizes = [number_of(size) for size in access.buffer.shape]
    count = size_of(moving)
    if any(size is None for size in sizes):
        return count
    return min(count, prod([size for size in sizes if size is not None]))
