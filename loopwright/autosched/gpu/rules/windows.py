"""windows: pooling, depthwise convolutions and the like: a thread reduces the windows of a few neighbours in a column.

    for i, j, y, x: P[i, j] = …A…           →    for b in blockIdx.x, t in threadIdx.x:       neighbours along a row
    for i, j, y, x: S[i, j] += P[i+y, j+x]           for r, y, x: s[r] += A[…] or 0           registers
    for i, j:       B[i, j] = S[i, j] / 9            for r: B[i * 4 + r, j] = s[r] / 9

A warp's threads are neighbours along the rows of the result, so each load is of whole lines; what a thread's windows
share it loads once, and what those of its block share comes from L1. A padding is computed where it is read. Channels
that come last are vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.choices import option
from loopwright.autosched.contiguous import size_of
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import Access, BlockFacts, const, element_strides
from loopwright.autosched.gpu.machine import USUAL_THREADS, GpuMachine
from loopwright.autosched.gpu.roofline import note_roofline
from loopwright.autosched.inlining import is_window
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.injective import memory_order
from loopwright.autosched.small_steps import extent_of, fused, loops_below
from loopwright.autosched.streams import Streams
from loopwright.ir import IterType, Var, uses_var
from loopwright.schedule import BlockRV, LoopRV, Schedule

_MOST_TAPS: Final = 64  # of a window: larger ones have work for several threads
_MOST_UNROLLED: Final = 160  # statements of a thread
_VECTOR: Final = 16  # bytes
_NARROWEST: Final = 8  # threads along vectors
_NEIGHBOURS: Final = 4  # in a column, whose windows a thread reduces


class Windows:
    """Takes a reduction over small windows, with a padding before it and element-wise work after it."""

    name = "windows"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        start = int(_is_padding(pending, program))
        if start >= len(pending) or not _is_reduction(pending[start].facts):
            return 0
        return start + 1 + int(_is_epilogue(pending[start:], program))

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        at = next(k for k, entry in enumerate(entries) if entry.facts is not None and entry.facts.is_reduction)
        padding = entries[0] if at else None
        facts = entries[at].facts
        assert facts is not None
        last = entries[-1].facts
        assert last is not None
        if last is facts:
            store = sch.cache_write(sch.get_block(facts.name), 0, "local")
        else:
            store = sch.get_block(last.name)
            sch.set_scope(sch.get_block(facts.name), 0, "local")
        _schedule(sch, facts, last, store, padding, machine, decision)
        note_roofline(decision, [entry.facts for entry in entries if entry.facts is not None], machine)


def _is_padding(pending: Sequence[Entry], program: Program) -> bool:
    facts = pending[0].facts
    if len(pending) < 2 or facts is None or not facts.is_injective or len(facts.stores) != 1 or facts.costly_calls:
        return False
    buffer = facts.write.buffer
    return not program.is_output(buffer) and program.is_read_by(buffer, pending[1])


def _is_reduction(facts: BlockFacts | None) -> bool:
    """Whether each result has a small window of its own, which moves over what it reads."""
    if facts is None or not facts.is_reduction or len(facts.stores) != 1 or facts.reads_itself:
        return False
    if any([axis.extent is None or axis.extent == 0 for axis in facts.axes]) or size_of(facts.reduce) > _MOST_TAPS:
        return False
    moving = [axis.var for axis in facts.spatial if axis.extent != 1]
    data = [access for access in facts.reads if access.is_affine and is_window(facts, access)]
    return any([all([access.uses(var) for var in moving]) for access in data])


def _is_epilogue(pending: Sequence[Entry], program: Program) -> bool:
    """Whether the next block takes each result of the reduction once, where it is."""
    facts, after = pending[0].facts, pending[1].facts if len(pending) > 1 else None
    assert facts is not None
    if after is None or not after.is_injective or len(after.stores) != 1:
        return False
    buffer = facts.write.buffer
    if program.is_output(buffer) or not program.is_read_by(buffer, pending[1]):
        return False
    if [axis.extent for axis in after.axes] != [axis.extent for axis in facts.spatial]:
        return False
    reads = [access for access in after.reads if access.buffer is buffer]
    return all([_is_cell(read, facts, after) for read in reads])


def _is_cell(read: Access, facts: BlockFacts, after: BlockFacts) -> bool:
    """Whether the block is at the cell that the reduction wrote in the same iteration."""
    names = dict(zip([axis.var for axis in after.axes], [axis.var for axis in facts.spatial], strict=True))
    for form, written in zip(read.forms, facts.write.forms, strict=True):
        if form is None or written is None or form.parts() or form.const != written.const:
            return False
        if {names.get(var): step for var, step in form.terms.items() if isinstance(var, Var)} != dict(written.terms):
            return False
    return True


def _schedule(
    sch: Schedule,
    facts: BlockFacts,
    last: BlockFacts,
    store: BlockRV,
    padding: Entry | None,
    machine: GpuMachine,
    decision: Decision,
) -> None:
    """Threads over the results; each reduces its windows in registers, and stores."""
    axes = last.spatial
    order = [position for position in memory_order(last, Streams(last)) if not last.axes[position].is_reduce]
    row = next((position for position in reversed(order) if axes[position].extent != 1), order[-1])
    lanes = _lanes(facts, last, row)
    vectors = (axes[row].extent or 1) // lanes
    threads = machine.threads(USUAL_THREADS)
    is_uneven = lanes > 1 and bool(vectors & (vectors - 1))
    width = max([k for k in range(1, threads + 1) if vectors % k == 0])
    if is_uneven and width < min(vectors, _NARROWEST):
        lanes, is_uneven = 1, False  # threads along vectors would be too few
    column = _column(facts, order, row)
    several = 1 if column is None else _several(facts, column, lanes, threads, machine)
    several = option("neighbours", several, *([1, 2, 4] if column is not None else []))

    if padding is not None and (several == 1 or is_uneven):
        sch.compute_inline(padding.name)
        decision.chose(f"{padding.name} computed where it is read", "a comparison takes less than memory")
        padding = None
    loops = list(sch.get_loops(store))
    inner: list[LoopRV] = []
    if column is not None and several > 1:
        loops[column], neighbour = sch.split(loops[column], [None, several])
        inner.append(neighbour)
    if lanes > 1:
        loops[row], lane = sch.split(loops[row], [None, lanes])
        inner.append(lane)
    outer = [loops[position] for position in order]
    sch.reorder(*outer, *inner)
    if is_uneven:
        # Vectors are an axis of threads: fused with pixels, their number would be a divisor of everything.
        pieces, thread = sch.split(loops[row], [None, width])
        pixels = fused(sch, [*[loop for loop in outer if loop is not loops[row]], pieces])
        block, pixel = sch.split(pixels, [None, threads // width])
        sch.reorder(block, pixel, thread)
        sch.bind(pixel, "threadIdx.y")
        threads = threads // width * width
    else:
        block, thread = sch.split(fused(sch, outer), [None, threads])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    reduction = sch.get_block(facts.name)
    sch.compute_at(reduction, thread)
    _unroll(sch, reduction, thread, lanes)
    if padding is not None:
        _pad(sch, padding, thread, lanes)
        decision.chose(f"{padding.name} in registers", "what several windows share is compared and loaded once")
    if several > 1:
        sch.unroll(inner[0])
        decision.chose(f"{several} neighbours along {axes[column].name} a thread", "their windows overlap")  # type: ignore[index]
    if lanes > 1:
        sch.vectorize(inner[-1])
        decision.chose(f"vectors of {lanes}", f"{axes[row].name} is contiguous in all that moves")
    decision.chose(f"{threads} threads a block", f"neighbours along {axes[row].name}")


def _unroll(sch: Schedule, reduction: BlockRV, thread: LoopRV, lanes: int) -> None:
    """The taps and neighbours of a thread written out, the outermost of the taps not where they are many."""
    loops = loops_below(sch, reduction, thread)
    kinds = sch.view().realize(reduction.key)
    reduced = {
        loop.var
        for loop in loops
        for axis, value in zip(kinds.block.iter_vars, kinds.iter_values, strict=True)
        if axis.iter_type is IterType.CommReduce and uses_var(value, lambda var, own=loop.var: var is own)  # type: ignore[misc]
    }
    taps = [loop for loop in loops if loop.var in reduced]
    cells = [loop for loop in loops if loop.var not in reduced]
    sch.reorder(*taps, *cells)
    if lanes > 1:
        sch.vectorize(cells[-1])
        cells = cells[:-1]
    count = 1
    for loop in reversed([*taps, *cells]):
        count *= extent_of(sch, loop) or 1
        if count > _MOST_UNROLLED:
            break
        sch.unroll(loop)


def _pad(sch: Schedule, padding: Entry, thread: LoopRV, lanes: int) -> None:
    """The padded cells of a thread's windows, in registers."""
    block = sch.get_block(padding.name)
    sch.set_scope(block, 0, "local")
    sch.compute_at(block, thread)
    loops = loops_below(sch, block, thread)
    if lanes > 1 and loops and extent_of(sch, loops[-1]) == lanes:
        sch.vectorize(loops.pop())
    for loop in loops:
        sch.unroll(loop)


def _lanes(facts: BlockFacts, last: BlockFacts, row: int) -> int:
    """The widest vectors along the rows of the result that are vectors of all that is read; 1 where windows move."""
    size = facts.spatial[row].extent or 1
    accesses = [(facts, access) for access in (*facts.writes, *facts.reads)]
    accesses += [(last, access) for access in (*last.writes, *last.reads)] if last is not facts else []
    widest = max([bytes_of(str(access.buffer.dtype)) for _, access in accesses])
    lanes = max(1, _VECTOR // widest)
    while lanes > 1 and not (size % lanes == 0 and all([_is_vector(lanes, row, *one) for one in accesses])):
        lanes //= 2
    return lanes


def _is_vector(lanes: int, row: int, block: BlockFacts, access: Access) -> bool:
    """Whether so many neighbours are one vector there, or one number."""
    var = block.spatial[row].var
    if not access.uses(var):
        return True
    dimension = access.own_dimension(var)
    if dimension is None or access.stride(var) != 1 or not access.is_affine:
        return False
    strides = element_strides(access.buffer)
    return all(
        [
            stride is not None and stride % lanes == 0
            for k, stride in enumerate(strides)
            if k != dimension and const(access.buffer.shape[k]) != 1
        ]
    )


def _column(facts: BlockFacts, order: Sequence[int], row: int) -> int | None:
    """The innermost axis but that of rows along which windows move."""
    reduced = {axis.var for axis in facts.reduce}
    for position in reversed(order):
        var = facts.spatial[position].var
        if position == row or facts.spatial[position].extent == 1:
            continue
        for access in facts.reads:
            forms = [form for form in access.forms if form is not None and var in form.variables()]
            if any([form.variables() & reduced for form in forms]):
                return position
    return None


def _several(facts: BlockFacts, column: int, lanes: int, threads: int, machine: GpuMachine) -> int:
    """As many neighbours as leave work for all multiprocessors, and whose taps can be written out."""
    extent, cells = facts.spatial[column].extent or 1, size_of(facts.spatial)
    several = _NEIGHBOURS
    while several > 1 and (
        extent % several
        or several * lanes * size_of(facts.reduce) > _MOST_UNROLLED
        or cells < several * lanes * threads * machine.blocks_at_once(threads)
    ):
        several //= 2
    return several
