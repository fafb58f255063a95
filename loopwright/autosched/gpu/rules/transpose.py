"""transpose: neighbours in the result are far apart in an operand, whose neighbours are far apart in the result.

    for i, j in T.grid(m, n):       →    for b in blockIdx.x:                     a tile of 64 × 64 a block
        C[i, j] = A[j, i] * 2                A_stage[64, 65]                      shared memory, a bank to spare a row
                                             for k, y, x: A_stage[…] = A[…]       x in threadIdx.x along rows of A
                                             for k, y, x: C[…] = A_stage[…] * 2   x in threadIdx.x along rows of C

Either way a warp moves 128 neighbouring bytes, or all there are. A thread has 4 bytes of a row: two or four elements of
the narrow types, of which it turns a little square in registers; the tile then has its spare bank behind each row of
such squares. Of 4-byte types a thread has squares of 4 × 4 where rows are aligned and there are tiles for many waves of
blocks: a warp then moves two pieces of 256 bytes with one instruction. Threads of a warp are in different banks in both
directions. Rows of the result that begin within a sector of 32 bytes are skewed, so that every warp stores whole
sectors: L2 would have to read what is stored in part. Axes that move as one are joined, so that the channels of an
image are turned against all of its pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

from loopwright.autosched.axis_uses import own_uses
from loopwright.autosched.choices import option
from loopwright.autosched.decision import ChoiceKind, Decision, RuleKind
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import Access, BlockFacts, element_strides
from loopwright.autosched.gpu.machine import VECTOR_BYTES, GpuMachine
from loopwright.autosched.gpu.roofline import note_roofline
from loopwright.autosched.joined_axes import groups_of, innermost, join_axes, read_by_axes
from loopwright.autosched.layouts import dimensions, layout
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.injective import memory_order
from loopwright.autosched.small_steps import extent_of, fused
from loopwright.autosched.streams import Stream, Streams
from loopwright.ir import Buffer, structural_equal
from loopwright.schedule import BlockRV, LoopRV, Schedule

_THREADS: Final = 256  # of a block: a warp along each of eight rows, or half a warp along sixteen
_BANK: Final = 4  # bytes
_SHORT_SIDE: Final = 16  # elements either way: fewer are neighbours enough for L1
_WIDE_SIDE: Final = 64  # elements of a tile with squares of 16 bytes
_SECTOR: Final = 32  # bytes that L2 and memory exchange
_WIDE_WAVES: Final = 12  # of blocks with such tiles
_TILE_BYTES: Final = 16 << 10  # with eight blocks on a multiprocessor, as many as have threads
_BLOCKS_ACROSS: Final = 1 << 15  # along y and z a grid has at most 65,535


class Transpose:
    """Takes one block that reads an operand across the direction in which it writes."""

    name = "transpose"
    kind = RuleKind.ACROSS_MEMORY

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        if facts is None or not facts.is_injective or len(facts.stores) != 1 or own_uses(facts).compared:
            return 0
        return int(_match(facts, Streams(facts)) is not None)

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        assert facts is not None
        match = _match(facts, Streams(facts))
        assert match is not None
        copies: list[BlockRV] = []
        if len(match.groups) < len(facts.axes) or not all([_is_tile(facts, match, read) for read in match.operands]):
            facts, match, copies = _joined(sch, facts, match, program)
            decision.chose(f"{len(facts.axes)} axes", "of those that all loads and stores walk over as one")
        tile = _tile(facts, match, machine)
        _schedule(sch, facts, match, tile, machine)
        for copy in copies:
            sch.compute_inline(copy)
        along, across = facts.axes[match.along].name, facts.axes[match.across].name
        names = ", ".join([read.buffer.name for read in match.operands])
        why = f"{along} is contiguous in the result, {across} in {names}"
        decision.chose(f"tiles of {tile.across} × {tile.along} in shared memory", why, ChoiceKind.TILES)
        if tile.lanes > 1:
            widest = max([_itemsize(read.buffer) for read in match.operands])
            why = f"a thread moves {tile.lanes * widest} bytes at once, either way"
            decision.chose(f"squares of {tile.lanes} × {tile.lanes} transposed in registers", why)
        if tile.skew is not None:
            why = f"rows of the result begin anywhere within sectors of {_SECTOR} bytes, which are written whole"
            decision.chose("tiles moved along to sectors", why)
        note_roofline(decision, [facts], machine)


class _Match(NamedTuple):
    """Axis `along` walks over neighbours of the result, axis `across` over neighbours of the operands."""

    along: int
    across: int
    operands: tuple[Access, ...]
    groups: list[list[int]]  # axes that move as one


class _Tile(NamedTuple):
    """The cells of a block of threads: how many along both axes, and how many neighbours a thread moves at once."""

    across: int
    along: int
    lanes: int
    threads: int  # along a row
    skew: tuple[int, int] | None = None  # of how many elements a row is, and a sector


def _match(facts: BlockFacts, streams: Streams) -> _Match | None:
    """The two axes of a transposition and what is turned; None when there is none, or its rows are short."""
    groups = groups_of(facts, streams)
    if own_uses(facts).computed:
        groups = [[position] for position in range(len(facts.axes))]  # joined, they would be quotients
    inner = [innermost(facts, group) for group in groups]
    along = next((k for k, axis in enumerate(inner) if streams.stores[0].step(axis) == 1 and _moves(facts, axis)), None)
    if along is None:
        return None
    across: int | None = None
    operands: list[Access] = []
    for load, access in zip(streams.loads, facts.reads, strict=True):
        if load.steps[inner[along]] is None or load.step(inner[along]) in (0, 1):
            continue  # a row, a number, or a gather: neighbours stay neighbours, or never were
        if any([one.buffer is access.buffer and _same_cell(one, access) for one in operands]):
            continue
        own = next((k for k, axis in enumerate(inner) if load.step(axis) == 1 and _moves(facts, axis)), None)
        if own is None or across not in (None, own) or any([one.buffer is access.buffer for one in operands]):
            return None  # two windows of one operand are a stencil
        across = own
        operands.append(access)
    if across is None:
        return None
    for group in (groups[along], groups[across]):
        extent = facts.extent([facts.axes[position] for position in group])
        if extent is not None and extent < _SHORT_SIDE:
            return None
    if len(groups) == len(facts.axes):
        return _Match(inner[along], inner[across], tuple(operands), groups)
    return _Match(along, across, tuple(operands), groups)


def _moves(facts: BlockFacts, axis: int) -> bool:
    return facts.axes[axis].extent != 1


def _same_cell(first: Access, second: Access) -> bool:
    return all(structural_equal(x, y) for x, y in zip(first.indices, second.indices, strict=True))


def _is_tile(facts: BlockFacts, match: _Match, read: Access) -> bool:
    """Whether each of the two axes is an index by itself, so that what a block needs is a tile of the operand."""
    along, across = facts.axes[match.along].var, facts.axes[match.across].var
    rows, columns = _dimensions(read, along), _dimensions(read, across)
    if len(rows) != 1 or len(columns) != 1 or rows == columns:
        return False
    return read.steps(along)[rows[0]] == 1 and read.steps(across)[columns[0]] == 1


def _dimensions(read: Access, var: object) -> list[int]:
    """The dimensions that move with an axis."""
    return [k for k, form in enumerate(read.forms) if form is None or var in form.variables()]


def _joined(
    sch: Schedule, facts: BlockFacts, match: _Match, program: Program
) -> tuple[BlockFacts, _Match, list[BlockRV]]:
    """The block over joined axes, which are indices of copies of the operands: names only, to be inlined."""
    if len(match.groups) < len(facts.axes):
        join_axes(sch, facts, match.groups)
    copies = [read_by_axes(sch, program, facts.name, read.buffer) for read in match.operands]
    now = program.after(sch).entry(facts.name).facts
    again = _match(now, Streams(now)) if now is not None else None
    if now is None or again is None or not all([_is_tile(now, again, read) for read in again.operands]):
        raise NotWorthIt("the axes of the transposition are no indices of the operand")
    return now, again, copies


# --- sizes --------------------------------------------------------------------------------------------------------


def _tile(facts: BlockFacts, match: _Match, machine: GpuMachine) -> _Tile:
    """256 bytes of a row, if there are enough tiles for all multiprocessors then."""
    streams = Streams(facts)
    extents = [facts.axes[position].extent for position in (match.across, match.along)]
    widest = max([stream.itemsize for stream in [streams.stores[0], *_turned(match, streams)]])
    wide = VECTOR_BYTES // widest
    is_long = all([extent is not None and extent >= _WIDE_SIDE for extent in extents])
    if widest == _BANK and is_long and _is_aligned(facts, match, streams, wide):
        usual = 1 if _are_few(_WIDE_SIDE, facts, extents, match, machine, _WIDE_WAVES) else wide
        if option("neighbours a thread moves", usual, 1, wide) == wide:
            return _Tile(_WIDE_SIDE, _WIDE_SIDE, wide, _WIDE_SIDE // wide)
    lanes = max(1, _BANK // widest)
    while lanes > 1 and not (_fit(lanes, machine, extents) and _is_aligned(facts, match, streams, lanes)):
        lanes //= 2
    row = machine.warp * lanes
    side = row * max(1, min(4 // lanes, 256 // (row * widest)))
    sides = [row << k for k in range(4) if row << k <= side]
    while side > row and _are_few(side, facts, extents, match, machine):
        side //= 2
    side = option("side of a tile", side, *sides)
    across, along = (side if extent is None else min(side, ceil(extent / row) * row) for extent in extents)
    while along > row and across * along * widest > _TILE_BYTES:
        along //= 2
    skew = _skew(facts, match, streams) if lanes == 1 and along > row else None
    return _Tile(across, along, lanes, machine.warp, skew)


def _skew(facts: BlockFacts, match: _Match, streams: Streams) -> tuple[int, int] | None:
    """How far apart rows of the result are, where they begin within sectors, and how many elements a sector has."""
    store = streams.stores[0]
    sector = _SECTOR // store.itemsize
    others = [position for position in range(len(facts.axes)) if position not in (match.across, match.along)]
    steps = [store.step(position) for position in others]
    apart = store.step(match.across)
    if apart is None or apart % sector == 0 or any([step is None or step % sector for step in steps]):
        return None
    extent = facts.axes[match.along].extent
    return (apart % sector, sector) if extent is not None and extent >= _WIDE_SIDE else None


def _fit(lanes: int, machine: GpuMachine, extents: Sequence[int | None]) -> bool:
    """Whether rows have neighbours for all threads of a warp."""
    return all([extent is None or extent >= machine.warp * lanes for extent in extents])


def _are_few(
    side: int, facts: BlockFacts, extents: Sequence[int | None], match: _Match, machine: GpuMachine, waves: int = 1
) -> bool:
    """Whether there are fewer tiles than multiprocessors have room for, so many times over."""
    others = [axis for position, axis in enumerate(facts.axes) if position not in (match.across, match.along)]
    count = facts.extent(others)
    if count is None or None in extents:
        return False
    tiles = count
    for extent in extents:
        tiles *= ceil((extent or 1) / side)
    return tiles < waves * machine.blocks_at_once(machine.threads(_THREADS))


def _turned(match: _Match, streams: Streams) -> list[Stream]:
    buffers = [read.buffer for read in match.operands]
    return [load for load in streams.loads if load.buffer in buffers]


def _is_aligned(facts: BlockFacts, match: _Match, streams: Streams, lanes: int) -> bool:
    """Whether the vectors of all rows begin at multiples of a vector; sizes that are not known are taken for such.

    Where they are none when the program runs, it is another version of the kernel that does.
    """
    turned = [read.buffer for read in match.operands]
    for stream, access in zip(streams.all, (*facts.writes, *facts.reads), strict=True):
        moving = match.across if access.buffer in turned else match.along
        if stream.step(moving) == 0:
            continue
        strides = element_strides(access.buffer)
        for form, stride in zip(access.forms, strides, strict=True):
            if form is None or (form.const * (stride or 0)) % lanes:
                return False
        for position, axis in enumerate(facts.axes):
            step = stream.step(position)
            if axis.extent == 1 or position == moving:
                continue
            if stream.steps[position] is None or (step is not None and step % lanes):
                return False
        if stream.step(moving) != 1:
            return False
    return True


# --- steps --------------------------------------------------------------------------------------------------------


def _schedule(sch: Schedule, facts: BlockFacts, match: _Match, tile: _Tile, machine: GpuMachine) -> None:
    loops = sch.get_loops(sch.get_block(facts.name))
    order = memory_order(facts, Streams(facts))
    outer = [loops[position] for position in order if position not in (match.across, match.along)]
    rows = max(1, machine.threads(_THREADS) // tile.threads)
    across, row = sch.split(loops[match.across], [None, tile.across])
    stored = loops[match.along]
    if tile.skew is not None:
        sch.reorder(*outer, across, row, stored)
        stored = sch.skew(stored, row, *tile.skew)
    along, column = sch.split(stored, [None, tile.along])
    sch.reorder(*outer, across, along, row, column)
    block = _bind_tiles(sch, facts, outer, across, along, tile.skew is None)
    stages = [_load(sch, facts, match, read, block, tile, rows) for read in match.operands]
    share = _share(sch, row, column, (tile.lanes, tile.lanes), tile.threads, rows)
    if tile.lanes > 1:
        for stage in stages:
            square = sch.stage(facts.name, share.step, sch.get(stage).writes[0].buffer.name, "local")
            own_row, lane = sch.get_loops(square)[-2:]
            sch.unroll(own_row)
            sch.vectorize(lane)
        sch.unroll(share.rows)
        sch.vectorize(share.lanes)


def _bind_tiles(
    sch: Schedule, facts: BlockFacts, outer: Sequence[LoopRV], across: LoopRV, along: LoopRV, may_fuse: bool
) -> LoopRV:
    """Tiles as blocks; the innermost loop of them."""
    order = [*outer, across, along]
    open_loops = [loop for loop in order if extent_of(sch, loop) is None]
    if len(open_loops) <= 1 and may_fuse:
        # Outermost, the loop of unknown extent is never a divisor.
        order = [*open_loops, *[loop for loop in order if loop not in open_loops]]
        sch.reorder(*order)
        block = fused(sch, order)
        sch.bind(block, "blockIdx.x")
        return block
    if outer:
        # A grid is no longer than that along z: where there are more matrices, a block does several.
        far, near = sch.split(fused(sch, outer), [None, _BLOCKS_ACROSS])
        sch.reorder(near, across, along, far)
        sch.bind(near, "blockIdx.z")
        sch.bind(across, "blockIdx.y")
        sch.bind(along, "blockIdx.x")
        return far
    else:
        far, across = sch.split(across, [None, _BLOCKS_ACROSS])
        sch.bind(far, "blockIdx.z")
    sch.bind(across, "blockIdx.y")
    sch.bind(along, "blockIdx.x")
    return along


def _load(
    sch: Schedule, facts: BlockFacts, match: _Match, read: Access, block: LoopRV, tile: _Tile, rows: int
) -> BlockRV:
    """Load the tile of an operand, threads along each row."""
    row = _dimensions(read, facts.axes[match.along].var)[0]
    column = _dimensions(read, facts.axes[match.across].var)[0]
    names = dimensions(len(read.indices))
    others = [name for k, name in enumerate(names) if k not in (row, column)]
    squares = [f"{names[row]} // {tile.lanes}", f"{names[row]} % {tile.lanes}"] if tile.lanes > 1 else [names[row]]
    stage = sch.stage(facts.name, block, read.buffer.name, "shared", layout(names, [*others, *squares, names[column]]))
    itemsize = _itemsize(read.buffer)
    sch.storage_align(stage, 0, len(others), tile.across * tile.lanes, max(tile.lanes, _BANK // itemsize))
    own = sch.get_loops(stage)[-len(names) :]
    sch.reorder(*[loop for k, loop in enumerate(own) if k not in (row, column)], own[row], own[column])
    share = _share(sch, own[row], own[column], (1, tile.lanes), tile.threads, rows)
    if tile.lanes > 1:
        sch.vectorize(share.lanes)
    return stage


class _Shares(NamedTuple):
    """The loops inside a thread: the inner one over steps, and those of a square of neighbours."""

    step: LoopRV
    rows: LoopRV
    lanes: LoopRV


def _share(sch: Schedule, row: LoopRV, column: LoopRV, lanes: tuple[int, int], threads: int, rows: int) -> _Shares:
    """Threads in a grid over rows and columns, each with so many rows and columns of neighbours."""
    row_step, y, own_row = sch.split(row, [None, rows, lanes[0]])
    column_step, x, lane = sch.split(column, [None, threads, lanes[1]])
    sch.reorder(y, x, row_step, column_step, own_row, lane)
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    sch.unroll(row_step)
    sch.unroll(column_step)
    return _Shares(column_step, own_row, lane)


def _itemsize(buffer: Buffer) -> int:
    return bytes_of(str(buffer.dtype))
