"""Interleaving: a few channels, each contiguous in memory of its own, become neighbours in the result: stacks, pixels.

    for i, c in T.grid(n, 2):                    →    for b in blockIdx.x, t in threadIdx.x:      two pixels a thread
        C[i, c] = A[i] if c < 1 else B[i]                 A_local[2], B_local[2] = A[…], B[…]     8 bytes a load
                                                          for i, c: C_local[…] = …                registers
                                                          C[…] = C_local[4]                       16 bytes a store

Pixels are as many as make one store: with more of them, a warp would write into every second piece of a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.choices import option
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.gpu.machine import BLOCK_BYTES, USUAL_THREADS, VECTOR_BYTES, GpuMachine
from loopwright.autosched.small_steps import fused, loops_below, operand_of
from loopwright.ir import Buffer
from loopwright.schedule import Schedule


class Pixels(NamedTuple):
    """The axes of pixels and of channels, how many pixels a thread has, and what is read a vector of pixels at once."""

    pixel: int
    channel: int
    lanes: int
    buffers: Sequence[Buffer]


def interleave(sch: Schedule, facts: BlockFacts, pixels: Pixels, machine: GpuMachine, decision: Decision) -> None:
    """A thread loads neighbours of each operand, and stores a vector of pixels, several times."""
    threads, lanes = machine.threads(USUAL_THREADS), pixels.lanes
    several = max(1, BLOCK_BYTES // (threads * VECTOR_BYTES))
    several = option("vectors at once", several, 1, 2, 4, 8)
    block = sch.get_block(facts.name)
    store = sch.cache_write(block, 0, "local")
    loads = [sch.cache_read(block, operand_of(sch, block, buffer), "local") for buffer in pixels.buffers]
    loops = list(sch.get_loops(store))
    vectors, own = sch.split(loops[pixels.pixel], [None, lanes])
    lane = fused(sch, [own, *loops[pixels.pixel + 1 :]])
    blocks, some, thread = sch.split(fused(sch, [*loops[: pixels.pixel], vectors]), [None, several, threads])
    sch.reorder(blocks, thread, some, lane)
    sch.bind(blocks, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.compute_at(block, some)
    for load in loads:
        sch.compute_at(load, some)
        *others, neighbour = loops_below(sch, load, some)
        for loop in others:
            sch.unroll(loop)
        sch.vectorize(neighbour)
    for loop in loops_below(sch, block, some):
        sch.unroll(loop)
    sch.unroll(some)
    sch.vectorize(lane)
    channel, pixel = facts.axes[pixels.channel].name, facts.axes[pixels.pixel].name
    decision.chose(f"{lanes} of {pixel} and all of {channel} a thread", "interleaved in registers, they are one store")
    decision.chose(f"{several} times, {threads} threads a block", "what all blocks move lies close together")
