"""Prefetching: a pass over a row that leaves memory idle prefetches what another pass would wait for.

    for i in parallel:
        m = max of X[i, …]                       finds the row in the caches, since it was prefetched
        e[…] = exp(X[i, …] - m), s = sum of e    computes, and prefetches the lines of Y[i, …], to write them
        Y[i, …] = e[…] / s                       prefetches X[i + 1, …], the next row

The hardware prefetcher sees a stream only once it is read, and not past the end of a page. Rows are prefetched where
they stream from beyond L2, and where what was prefetched will still be in L2 when it is used. A single pass over a
stream that does more than load it (exp, a maximum) prefetches what lies a page ahead; on some machines so does a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from loopwright.autosched.choices import is_chosen, option
from loopwright.autosched.contiguous import size_of
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import Access
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.nest_cost import NestCost
from loopwright.autosched.row_nest import Part, passes_of
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.target.microarchitecture import NONE_AHEAD
from loopwright.transform.parts.constant_work import size_of as whole_bytes

PAST_THE_PAGE = 512  # bytes: what lies exactly a page ahead looks like what was just stored
MANY_WEIGHTS = 1 / 4  # of L2
FEW_WEIGHTS = 1 / 64  # they are there after a few steps anyhow
DEARER = 1.1  # than with prefetches, where they are worth it
FEW_USES = 256  # of each weight: the first is expensive, and those after it pay for the prefetch


def prefetch_distance(machine: Machine) -> int:
    """Bytes: a page and a little, since hardware looks to the end of a page only."""
    usual = machine.page + PAST_THE_PAGE
    return option("prefetch distance", usual, machine.page // 8, machine.page // 2, 2 * usual)


def add_prefetches(
    sch: Schedule, parts: Sequence[Part], rows: int, kept: Sequence[Buffer], machine: Machine, decision: Decision
) -> None:
    """Have the passes of a row nest prefetch the next row that is read, and the row that will be written."""
    passes = passes_of(parts)
    if len(passes) < 2 or not _is_worth_it(parts, passes, rows, kept, machine):
        return
    if not is_chosen("rows prefetched", 1.0, DEARER):
        return
    result = {write.buffer for part in parts for write in part.facts.writes}
    prefetched: dict[Buffer, str] = {}
    for part in passes[0]:
        for access in part.facts.reads:
            if access.buffer not in result and access.buffer not in prefetched and _is_row(access, part, rows):
                prefetched[access.buffer] = f"the next row of {access.buffer.name}"
                _prefetch(sch, part, access, passes[-1][0], 1, machine)
    for before, group in pairwise(passes):
        for part in group:
            for access in part.facts.writes:
                if access.buffer not in kept and _is_row(access, part, rows):
                    prefetched[access.buffer] = f"the row of {access.buffer.name}"
                    _prefetch(sch, part, access, before[0], 0, machine)
    if prefetched:
        decision.chose(
            f"{', '.join(prefetched.values())} prefetched a pass ahead",
            "the previous pass hides its latency",
        )


def prefetch_along(
    sch: Schedule,
    block: str | BlockRV,
    loop: LoopRV,
    buffers: Sequence[Buffer],
    each: int,
    cost: NestCost,
    machine: Machine,
    decision: Decision,
    is_sum: bool = False,
) -> None:
    """Have each iteration of a loop, which does `each` elements, prefetch what later ones need of large `buffers`."""
    core = machine.cpu.microarchitecture
    lookahead = core.lookahead_sums if is_sum else core.lookahead
    if not buffers or not cost.is_known or cost.bytes <= machine.l2 or cost.instructions <= lookahead:
        return
    distance = prefetch_distance(machine)
    for buffer in dict.fromkeys(buffers):
        size = each * bytes_of(str(buffer.dtype))
        lines = max(1, size // machine.line)
        sch.prefetch(block, loop, buffer.name, distance=-(-distance // size), lines=lines)
    why = "with so many instructions per load, too few loads are in flight to hide memory latency at page boundaries"
    if lookahead == NONE_AHEAD:
        why = "hardware has too few loads and stores in flight to hide the latency of L3 and memory"
    names = ", ".join([buffer.name for buffer in dict.fromkeys(buffers)])
    decision.chose(f"{names} prefetched {distance} bytes ahead", why)


def stream_from_memory(size: int, uses: int, machine: Machine) -> bool:
    """Whether steps that use each of so many bytes of weights `uses` times wait for them: others have passed through
    the caches since the last call, so that even few of them stream from memory the first time."""
    return size > machine.l2 * MANY_WEIGHTS or (uses <= FEW_USES and size > machine.l2 * FEW_WEIGHTS)


def prefetch_weights(
    sch: Schedule, block: BlockRV, loop: LoopRV, weights: Buffer, each: int, uses: int, machine: Machine
) -> None:
    """Have each step of a reduction, which takes `each` of them in a row, prefetch the weights of later steps.

    They are read along memory, but a tile computes so long with each line that the hardware prefetcher lags behind.
    """
    whole = whole_bytes(weights)
    if whole is not None and stream_from_memory(whole, uses, machine):
        size = each * bytes_of(str(weights.dtype))
        lines = max(1, size // machine.line)
        sch.prefetch(block, loop, weights.name, distance=-(-prefetch_distance(machine) // size), lines=lines)


def explain_weights(size: int, uses: int, machine: Machine, decision: Decision) -> None:
    """Say so, where weights are prefetched."""
    if stream_from_memory(size, uses, machine):
        decision.chose(
            f"weights prefetched {prefetch_distance(machine)} bytes ahead",
            "they stream from memory, and a tile computes so long on each cache line that the hardware prefetcher lags",
        )


def _prefetch(sch: Schedule, part: Part, access: Access, during: Part, rows_later: int, machine: Machine) -> None:
    loop = sch.get_loops(during.walker)[-2]
    lines = max(1, part.width * bytes_of(str(access.buffer.dtype)) // machine.line)
    sch.prefetch(part.walker, loop, access.buffer.name, distance=rows_later, levels=1, lines=lines)


def _is_row(access: Access, part: Part, rows: int) -> bool:
    """Whether the access walks along memory in a row, and over other memory in the next row."""
    moves = any(access.uses(axis.var) for axis in part.facts.axes[:rows])
    return moves and any(access.stride(axis.var) == 1 for axis in part.facts.axes[rows:])


def _is_worth_it(
    parts: Sequence[Part], passes: Sequence[Sequence[Part]], rows: int, kept: Sequence[Buffer], machine: Machine
) -> bool:
    """Whether all passes are alike, rows come from beyond L2, and two of them fit into it."""
    alike = {(part.extents, part.width) for group in passes for part in group}
    extents, width = next(iter(alike))
    length = extents[0]
    if len(alike) > 1 or len(extents) > 1 or length is None or length < 2 * width:
        return False
    sizes: dict[Buffer, int] = {}
    for part in (part for group in passes for part in group):
        for access in (*part.facts.reads, *part.facts.writes):
            if _is_row(access, part, rows):
                sizes[access.buffer] = length * bytes_of(str(access.buffer.dtype))
    streamed = sum(size for buffer, size in sizes.items() if buffer not in kept)
    # A shorter row is over before a prefetch could arrive.
    is_long = length * bytes_of(parts[0].facts.dtype) >= machine.cpu.microarchitecture.latency_bytes
    is_far = streamed * size_of(parts[0].facts.axes[:rows]) > machine.l2
    return is_long and is_far and 2 * sum(sizes.values()) <= machine.l2
