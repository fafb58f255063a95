"""elementwise: every iteration writes a cell of its own: element-wise work, broadcasts, copies, pads, gathers, concats.

    for i, j in T.grid(1000, 72):      →    for b in T.thread_binding(…, thread="blockIdx.x"):
        C[i, j] = A[i, j] + B[j]                for t in T.thread_binding(256, thread="threadIdx.x"):
                                                    for v in T.vectorized(4): C[…] = …

A thread loads and stores 16 bytes at once where neighbours in the result are neighbours in what is read; a warp's
threads are neighbours, and a block has a few KiB of each operand (`benchmarks/gpu/elementwise_forms.py`). Where rows
begin at any address, or cells are picked, a thread does single elements, 256 apart, so that the warp still reads whole
lines. What is no multiple of a vector is guarded: all threads but those at the end run without the guard
(`separate_full_tiles`). Rows whose length is known only when the program runs are cut into pieces of a block each: a
quotient for each element would take longer than memory. Channels that are few, last in what is read and first in the
result are all done by one thread, which uses up its lines at once. Those that are last in the result, and contiguous
elsewhere, are interleaved in registers (`gpu/interleaving.py`). Blocks over the same cells that share operands are one
kernel, which loads them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from loopwright.arith import Analyzer
from loopwright.autosched.choices import option
from loopwright.autosched.contiguous import size_of
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import Access, BlockFacts, const, element_strides, loads_of
from loopwright.autosched.gpu.interleaving import Pixels, interleave
from loopwright.autosched.gpu.machine import BLOCK_BYTES, IN_FLIGHT, USUAL_THREADS, VECTOR_BYTES, GpuMachine
from loopwright.autosched.gpu.roofline import note_roofline
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.nest_cost import instructions
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.injective import memory_order
from loopwright.autosched.small_steps import fused, loops_below
from loopwright.autosched.streams import Stream, Streams
from loopwright.ir import Buffer, Call, CompareExpr, IntImm, Var, collect, substitute, uses_var
from loopwright.ir.visitor import variables_in
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.transform.parts.lanes_agree import lanes_agree

_WORTH_SHARING: Final = 12  # instructions of an element that is worth sharing some of them
_STORED_BYTES: Final = 8  # of neighbours that are loaded one by one
_LEAST_BYTES: Final = 4  # of a vector: what a thread does alone in a line of its warp
_NARROW: Final = 8  # elements at most, of rows that a thread reads whole
_MOST_TOGETHER: Final = 4  # results in one kernel: their registers are as many as loads under way need
_MUCH_SMALLER: Final = 8  # times smaller than the result: an operand of so few bytes comes from a cache


class Elementwise:
    """Takes one block that computes each of its cells from other buffers."""

    name = "element-wise"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        if facts is None or not facts.is_injective or not facts.axes:
            return 0
        return int(all(axis.extent != 0 for axis in facts.axes))

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        assert facts is not None
        schedule_elementwise(sch, facts, machine, decision)


class Together:
    """Takes several blocks over the same cells that read the same operands: what one loads the others have."""

    name = "element-wise, together"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        first = _plain(pending[0].facts)
        if first is None:
            return 0
        count, stored = 1, {write.buffer for write in first.facts.writes}
        for entry in pending[1:_MOST_TOGETHER]:
            other = _plain(entry.facts)
            if other is None or other.form != first.form or other.order != first.order:
                break
            own = {access.buffer for access in other.facts.reads}
            shared = own & ({access.buffer for access in first.facts.reads} | stored)
            is_open = any([axis.extent is None for axis in other.facts.axes])
            if is_open and own & stored:
                break  # that all lanes read what they wrote themselves is not proved for sizes that are not known
            if not shared or [axis.extent for axis in other.facts.axes] != [axis.extent for axis in first.facts.axes]:
                break
            if any([_bytes_of_buffer(buffer, other.facts) * _MUCH_SMALLER < _stored(other) for buffer in shared]):
                break
            stored |= {write.buffer for write in other.facts.writes}
            count += 1
        return count if count > 1 else 0

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        blocks = [facts for entry in entries if (facts := entry.facts) is not None]
        first = _plain(blocks[0])
        assert first is not None
        form, threads = first.form, machine.threads(USUAL_THREADS)
        several = min([_several(facts, form, threads, machine) for facts in blocks])
        sch.merge(*[sch.get_loops(sch.get_block(facts.name))[-1] for facts in blocks])
        loops = list(sch.get_loops(sch.get_block(blocks[0].name)))
        grid, thread, some, lane = _shared_out(sch, loops, form, several, threads)
        _bind(sch, grid, thread)
        sch.unroll(some)
        if form.lanes > 1:
            sch.vectorize(lane)
        decision.chose("single elements" if form.lanes == 1 else f"vectors of {form.lanes}", form.why)
        decision.chose(f"{len(blocks)} results in one kernel", "what they share is loaded once")
        _note(decision, form, several, threads)
        note_roofline(decision, blocks, machine)


class _Plain(NamedTuple):
    """A block whose cells are spread over threads, one after the other, and how."""

    facts: BlockFacts
    order: list[int]
    form: _Form


def _plain(facts: BlockFacts | None) -> _Plain | None:
    """The block's form; None of blocks that take other steps."""
    if facts is None or not facts.is_injective or not facts.axes or any([axis.extent == 0 for axis in facts.axes]):
        return None
    streams = Streams(facts)
    order = memory_order(facts, streams)
    if order != sorted(order) or _narrow(facts, streams, order) is not None:
        return None
    if _pixels(facts, streams, order) is not None:
        return None
    form = _form(facts, streams, order)
    return None if form.is_guarded else _Plain(facts, order, form)


def _stored(block: _Plain) -> int:
    return sum([_bytes(stream, block.facts) for stream in Streams(block.facts).stores])


def _bytes_of_buffer(buffer: Buffer, facts: BlockFacts) -> int:
    """What is read of an operand."""
    loads = zip(Streams(facts).loads, facts.reads, strict=True)
    return max([_bytes(load, facts) for load, access in loads if access.buffer is buffer])


def schedule_elementwise(sch: Schedule, facts: BlockFacts, machine: GpuMachine, decision: Decision) -> None:
    """Spread the cells of a block over threads."""
    streams = Streams(facts)
    loops = list(sch.get_loops(sch.get_block(facts.name)))
    order = memory_order(facts, streams)
    if order != sorted(order):
        sch.reorder(*[loops[position] for position in order])
        decision.chose("loops reordered", f"{facts.axes[order[-1]].name} is contiguous in the result")
    loops = [loops[position] for position in order]
    narrow = _narrow(facts, streams, order)
    if narrow is not None:
        _all_of_a_pixel(sch, facts, loops, order.index(narrow), machine, decision)
        return
    pixels = _pixels(facts, streams, order)
    if pixels is not None:
        interleave(sch, facts, pixels, machine, decision)
        note_roofline(decision, [facts], machine)
        return
    form = _form(facts, streams, order)
    decision.chose("single elements" if form.lanes == 1 else f"vectors of {form.lanes}", form.why)
    threads = machine.threads(USUAL_THREADS)
    several = option("vectors at once", _several(facts, form, threads, machine), 1, 2, 4, 8)
    block = sch.get_block(facts.name)
    if form.is_cut:
        decision.chose("each block a piece of a row", "a quotient for each element would take longer than memory")
    if form.is_guarded:
        loops = _loaded_one_by_one(sch, block, order)
    grid, thread, some, lane = _shared_out(sch, loops, form, several, threads, block if form.is_guarded else None)
    _bind(sch, grid, thread)
    if form.is_guarded:
        sch.unroll(loops_below(sch, block, thread)[-1])
    sch.unroll(some)
    if form.lanes > 1:
        sch.vectorize(lane)
    if form.is_guarded:
        sch.set_scope(block, 0, "local")
    _note(decision, form, several, threads)
    note_roofline(decision, [facts], machine)


def _loaded_one_by_one(sch: Schedule, block: BlockRV, order: Sequence[int]) -> list[LoopRV]:
    """The loops of what stores the results of a block together. Their memory gets its scope last: until then, no step
    is asked whose it is.
    """
    store = sch.cache_write(block, 0, "global")
    return [sch.get_loops(store)[position] for position in order]


def _shared_out(
    sch: Schedule, loops: Sequence[LoopRV], form: _Form, several: int, threads: int, before: BlockRV | None = None
) -> tuple[list[LoopRV], LoopRV, LoopRV, LoopRV]:
    """The loops over blocks, outermost first, over threads, over the vectors of a thread, and over lanes.

    The block `before` computes a vector at a time; it moves there while loops are those of axes, and proofs are short.
    """
    outer, row = loops[: len(loops) - form.row], loops[len(loops) - form.row :]
    piece = several * threads * form.lanes
    if form.is_cut:
        pieces, rest = sch.split(fused(sch, row), [None, piece])
        grid = [fused(sch, outer), pieces]
        some, thread, lane = sch.split(rest, [several, threads, form.lanes])
    elif before is not None:
        vectors, lane = sch.split(fused(sch, row), [None, form.lanes])
        axes = [*outer, vectors]
        if several == 1:
            sch.compute_at(before, vectors)
            blocks, thread, some = sch.split(fused(sch, axes), [None, threads, 1])
        else:
            some, *axes = _far_apart(sch, axes, several)
            sch.reorder(*axes, some, lane)
            sch.compute_at(before, some)
            blocks, thread = sch.split(fused(sch, axes), [None, threads])
        return [blocks], thread, some, lane
    elif form.row == len(loops):
        blocks, rest = sch.split(fused(sch, row), [None, piece])
        grid = [blocks]
        some, thread, lane = sch.split(rest, [several, threads, form.lanes])
    else:
        vectors, lane = sch.split(fused(sch, row), [None, form.lanes])
        blocks, some, thread = sch.split(fused(sch, [*outer, vectors]), [None, several, threads])
        sch.reorder(blocks, thread, some, lane)
        grid = [blocks]
    sch.reorder(thread, some, lane)
    return grid, thread, some, lane


def _far_apart(sch: Schedule, loops: Sequence[LoopRV], count: int) -> list[LoopRV]:
    """A loop over so many parts of an axis, or over one where no axis but the last has as many; and all loops then."""
    lengths = [sch.get(loop).extent for loop in loops[:-1]]
    fits = [n for n, length in enumerate(lengths) if isinstance(length, IntImm) and length.value % count == 0]
    at = fits[-1] if fits else len(loops) - 1
    parts, rest = sch.split(loops[at], [count if fits else 1, None])
    return [parts, *loops[:at], rest, *loops[at + 1 :]]


def _bind(sch: Schedule, grid: Sequence[LoopRV], thread: LoopRV) -> None:
    for axis, loop in zip(("blockIdx.x", "blockIdx.y"), grid, strict=False):
        sch.bind(loop, axis)
    sch.bind(thread, "threadIdx.x")


def _note(decision: Decision, form: _Form, several: int, threads: int) -> None:
    what = ("element" if form.lanes == 1 else "vector") + "s" * (several > 1)
    decision.chose(f"{several} {what} a thread, {threads} threads a block", "what all blocks move lies close together")


def _narrow(facts: BlockFacts, streams: Streams, order: Sequence[int]) -> int | None:
    """A short outer axis along which an operand is contiguous, but along the rows of the result has a step: channels.

    Rows of the result that lie far apart then read the same lines.
    """
    moving = [position for position in order if facts.axes[position].extent != 1]
    if len(moving) < 2 or any([axis.extent is None for axis in facts.axes]) or len(facts.stores) != 1:
        return None
    for position in moving[:-1]:
        extent = facts.axes[position].extent or 0
        if extent <= _NARROW and any(
            [load.step(position) == 1 and load.step(moving[-1]) == extent for load in streams.loads]
        ):
            return position
    return None


def _pixels(facts: BlockFacts, streams: Streams, order: Sequence[int]) -> Pixels | None:
    """Rows of a few neighbours in the result, whose operands are contiguous along the axis outside them."""
    moving = [position for position in order if facts.axes[position].extent != 1]
    if len(moving) < 2 or any([axis.extent is None for axis in facts.axes]) or len(facts.stores) != 1:
        return None
    if not facts.writes_in_order or len(facts.axes) != len(facts.write.buffer.shape):
        return None
    pixel, channel = moving[-2:]
    store, channels, count = streams.stores[0], facts.axes[channel].extent or 0, facts.axes[pixel].extent or 0
    if channels > _NARROW or store.step(channel) != 1 or store.step(pixel) != channels:
        return None
    widest = max([stream.itemsize for stream in streams.all])
    lanes = VECTOR_BYTES // widest // channels
    if lanes * channels * widest != VECTOR_BYTES:
        return None
    loads = [(load, access) for load, access in zip(streams.loads, facts.reads, strict=True) if load.step(pixel) != 0]
    if lanes < 2 or lanes * widest < _LEAST_BYTES or count % lanes or not loads:
        return None
    if not _agree(facts, facts.axes[pixel].var, lanes):
        return None
    is_chosen = facts.axes[channel].var in _asked(facts)
    others = [position for position in order if position != pixel]
    for load, access in loads:
        is_guarded = is_chosen and load.step(channel) != 0
        if load.step(pixel) != 1 or load.step(channel) in (None, 1) or is_guarded or not access.is_affine:
            return None
        if not _is_aligned(load, access, streams, others, lanes):
            return None
    buffers = list(dict.fromkeys([access.buffer for _, access in loads]))
    if len(buffers) < len({tuple(access.indices) for _, access in loads}):
        return None
    return Pixels(pixel, channel, lanes, buffers)


def _all_of_a_pixel(
    sch: Schedule, facts: BlockFacts, loops: Sequence[LoopRV], narrow: int, machine: GpuMachine, decision: Decision
) -> None:
    """A thread does all cells along a narrow axis, so that lines are used up at once."""
    threads = machine.threads(USUAL_THREADS)
    own = loops[narrow]
    outer = [loop for loop in loops if loop is not own]
    sch.reorder(*outer, own)
    block, thread = sch.split(fused(sch, outer), [None, threads])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.unroll(own)
    decision.chose(f"all of {own.name} a thread, {threads} threads a block", "they are neighbours in what is read")
    note_roofline(decision, [facts], machine)


class _Form(NamedTuple):
    """What a thread does: `lanes` neighbours along the innermost `row` axes, which are one walk."""

    lanes: int
    row: int
    is_cut: bool  # a row has a length that is known only when the program runs
    why: str
    is_guarded: bool = False  # neighbours are loaded one by one, and stored together


def _form(facts: BlockFacts, streams: Streams, order: Sequence[int]) -> _Form:
    """The longest vectors there can be; single elements where there are none."""
    # What stands still along the innermost axis, such as the rows that are picked, is not loaded in vectors.
    widest = max([stream.itemsize for stream in streams.all if stream.is_store or stream.step(order[-1]) != 0])
    lanes = 1 << (max(1, VECTOR_BYTES // widest).bit_length() - 1)
    first = result = _form_of(lanes, facts, streams, order)
    while result.lanes == 1 and lanes > 2 and lanes * widest > _LEAST_BYTES:
        lanes //= 2
        result = _form_of(lanes, facts, streams, order)
    return result if result.lanes > 1 else _guarded(facts, streams, order, widest) or first


def _guarded(facts: BlockFacts, streams: Streams, order: Sequence[int], widest: int) -> _Form | None:
    """A few neighbours that share what is computed of a row: each asks which load it does, as in a padding, or computes
    it at length, as in a resize.
    """
    last = next((position for position in reversed(order) if facts.axes[position].extent != 1), order[-1])
    steps = {stream.step(last) for stream in streams.loads}
    is_long = None in steps and instructions(facts, with_conditions=False) >= _WORTH_SHARING
    if not (is_long or (facts.axes[last].var in _asked(facts) and steps <= {0, 1})):
        return None
    if any([axis.extent is None for axis in facts.axes]) or any([store.step(last) != 1 for store in streams.stores]):
        return None
    if len(facts.stores) != 1 or not facts.writes_in_order or len(order) != len(facts.write.buffer.shape):
        return None
    lanes, count = (VECTOR_BYTES if is_long else _STORED_BYTES) // widest, facts.axes[last].extent or 1
    while lanes > 1 and count % lanes:
        lanes //= 2
    others = [position for position in order if position != last]
    stores = zip(streams.stores, facts.writes, strict=True)
    if lanes < 2 or not all([_is_aligned(stream, access, streams, others, lanes) for stream, access in stores]):
        return None
    why = f"{lanes * widest} bytes are one store; which load a thread does differs between them"
    if is_long:
        why = f"{lanes * widest} bytes are one store, and much of what is computed is the same"
    return _Form(lanes, len(order) - order.index(last), False, why, is_guarded=True)


def _form_of(lanes: int, facts: BlockFacts, streams: Streams, order: Sequence[int]) -> _Form:
    axes = streams.axes
    asked = _asked(facts)
    row = _row_length(streams, order, asked)
    is_cut = False
    if row < len(order) and any(axis.extent is None for axis in axes):
        # The axes from the last one of unknown extent on: quotients are by literals then, and proofs find them.
        start = max(index for index, position in enumerate(order) if axes[position].extent is None)
        is_cut = any(axes[position].extent != 1 for position in order[:start])
        row = len(order) - start if is_cut else row
    outer, inner = order[: len(order) - row], order[len(order) - row :]
    is_whole = all(axes[position].extent == 1 for position in outer)
    last = next((position for position in reversed(inner) if axes[position].extent != 1), inner[-1])
    single = _Form(1, row if is_cut else len(order), is_cut, "")
    if any(stream.step(last) != 1 for stream in streams.stores):
        return single._replace(why=f"{axes[last].name} is not contiguous in the result")
    if lanes == 1 or size_of(facts.axes) < lanes:
        return single._replace(why="they fill a vector" if lanes == 1 else "there are fewer than a vector has")
    if not _agree(facts, axes[last].var, lanes):
        return single._replace(why=f"which load a thread does differs between neighbours along {axes[last].name}")
    large = _large_loads(facts, streams, last)
    for load, _ in large:
        if load.step(last) != 1:
            return single._replace(why=f"neighbours in {load.buffer.name} are not those of the result")
    accesses = [*zip(streams.stores, facts.writes, strict=True), *large]
    count = size_of([axes[position] for position in inner])
    is_open = any(axis.extent is None for axis in axes)
    if not is_whole and not is_cut and count % lanes:
        if asked or is_open or not all(_is_one_walk(stream, streams, order) for stream, _ in accesses):
            return single._replace(why=f"rows of {count} elements begin at any address")
        row, outer, is_whole = len(order), [], True
    if is_cut and not all(_is_one_walk(stream, streams, inner) for stream, _ in accesses):
        return single._replace(why="rows begin at any address")
    for stream, access in accesses:
        if not _is_aligned(stream, access, streams, outer, lanes):
            why = f"what is accessed of {stream.buffer.name} begins at no multiple of {lanes} elements"
            return single._replace(why=why)
    size = lanes * max([stream.itemsize for stream, _ in accesses])
    return _Form(lanes, len(order) if is_whole else row, is_cut, f"{size} bytes are one load, or one store")


def _asked(facts: BlockFacts) -> set[Var]:
    """The axes that decide which of several loads is done: fused with others, they would differ between lanes."""
    own = {axis.var for axis in facts.axes}
    return {var for choice in _choices(facts) for var in variables_in(choice.args[0]) if var in own}


def _choices(facts: BlockFacts) -> list[Call]:
    """The choices between values of which some are loaded."""
    calls = [call for store in facts.stores for call in collect(store.value, Call)]
    chosen = [call for call in calls if call.op.name.removeprefix("tir.") == "if_then_else"]
    return [call for call in chosen if any(loads_of(value) for value in call.args[1:])]


def _agree(facts: BlockFacts, along: Var, lanes: int) -> bool:
    """Whether neighbours that are one vector choose alike."""
    lane, vector = Var("lane", along.dtype), Var("vector", along.dtype)
    index = vector * lanes + lane
    for choice in _choices(facts):
        asked = [node for node in collect(choice.args[0], CompareExpr) if uses_var(node, lambda var: var is along)]
        if not asked and uses_var(choice.args[0], lambda var: var is along):
            return False
        for node in asked:
            if loads_of(node) or not lanes_agree(substitute(node, {along: index}), lane, lanes, Analyzer()):
                return False
    return True


def _row_length(streams: Streams, order: Sequence[int], asked: set[Var]) -> int:
    """How many of the innermost axes are one walk for all streams."""
    length = 1
    while length < len(order):
        outer, inner = order[-length - 1], order[-length:]
        moving = next((position for position in inner if streams.axes[position].extent != 1), inner[0])
        is_unit = streams.axes[outer].extent == 1 or streams.axes[moving].extent == 1
        if not is_unit and asked & {streams.axes[position].var for position in (outer, *inner)}:
            break
        if not is_unit and not (streams.are_affine and streams.follow(outer, moving)):
            break
        length += 1
    return length


def _is_one_walk(stream: Stream, streams: Streams, order: Sequence[int]) -> bool:
    """Whether one stream goes on along all axes."""
    moving = [position for position in order if streams.axes[position].extent != 1]
    return all(streams.follows(stream, outer, inner) for outer, inner in pairwise(moving))


def _large_loads(facts: BlockFacts, streams: Streams, last: int) -> list[tuple[Stream, Access]]:
    """The loads that move along the row, of so much that they come from memory."""
    result = []
    stored = sum([_bytes(store, facts) for store in streams.stores])
    for stream, access in zip(streams.loads, facts.reads, strict=True):
        if stream.step(last) != 0 and _bytes(stream, facts) * _MUCH_SMALLER > stored:
            result.append((stream, access))
    return result


def _bytes(stream: Stream, facts: BlockFacts) -> int:
    moving = [axis for axis, step in zip(facts.axes, stream.steps, strict=True) if step is None or const(step) != 0]
    return size_of(moving) * stream.itemsize


def _is_aligned(stream: Stream, access: Access, streams: Streams, outer: Sequence[int], lanes: int) -> bool:
    """Whether vectors begin at multiples of a vector; where that depends on sizes, the kernel has two versions."""
    strides = element_strides(access.buffer)
    for form, stride in zip(access.forms, strides, strict=True):
        if stride is None or stride % lanes == 0:
            continue
        if form is None or (form.const * stride) % lanes:
            return False
    for position in outer:
        step = stream.step(position)
        if step is not None and streams.axes[position].extent != 1 and step % lanes:
            return False
    return True


def _several(facts: BlockFacts, form: _Form, threads: int, machine: GpuMachine) -> int:
    """How many vectors a thread does: its block has a few KiB of the result, and there is work for all.

    With more, each thread has more loads under way, but what all blocks move at a time is further apart in memory.
    Where one load waits for another, which says what is picked, two of them at once take less time all the same.
    """
    narrowest = min([bytes_of(str(access.buffer.dtype)) for access in facts.writes])
    wanted = max(1, min(IN_FLIGHT, BLOCK_BYTES // (threads * form.lanes * narrowest)))
    if any([loads_of(index) for access in facts.reads for index in access.indices]):
        wanted = max(2, wanted)
    if facts.costly_calls > 2:
        wanted = min(wanted, 2)  # their registers are more than the loads'
    if any(axis.extent is None for axis in facts.axes):
        moving = [axis for axis in facts.axes if axis.extent != 1]
        return min(2, wanted) if len(moving) == 1 else 1
    size = size_of(facts.axes)
    while wanted > 1 and size < wanted * threads * form.lanes * machine.blocks_at_once(threads):
        wanted //= 2
    return wanted
