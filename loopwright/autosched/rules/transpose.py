"""transpose: neighbours in the result are far apart in an operand, whose neighbours are far apart in the result.

    for i, j in T.grid(m, n):       →    for i_0, j_0, i_1, j_1 in …:                blocks of tiles: whole cache lines
        C[i, j] = A[j, i] * 2                A_stage[0:16, 0:16] = A[…].T            16 rows in, shuffles, 16 rows out
                                             for i_2 in T.unroll(16):
                                                 for j_2 in T.vectorized(16):
                                                     C[…] = A_stage[i_2, j_2] * 2

A square tile of the operand is read by rows and transposed in registers (`transpose_16x16_float32` and the like), and
the block works on what came out, by rows of the result. Tiles are done in square blocks, so that every cache line is
used up before it is needed for something else; inside a block they follow the rows of the result. A line must be owned
before any of it is written, and rows of the result lie so far apart that no hardware sees them come: each row of a tile
asks for the line that the row comes to next. What fills no tile is done element by element. Axes that move as one are
joined where tiles fit better into them: 5 × 509 by 6 × 2 elements are 2545 by 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2, prod, sqrt
from typing import Final, NamedTuple

from loopwright.autosched.axis_uses import own_uses
from loopwright.autosched.decision import ChoiceKind, Decision, RuleKind
from loopwright.autosched.facts import Access, BlockFacts, const
from loopwright.autosched.joined_axes import groups_of, innermost, join_axes, read_by_axes
from loopwright.autosched.layouts import dimensions, layout, swapped_last
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.nest_cost import common_lanes, nest_cost
from loopwright.autosched.parallelize import parallelize_outer
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.register_transpose import transpose_intrinsic
from loopwright.autosched.streams import Streams
from loopwright.ir import Buffer, Var
from loopwright.schedule import BlockRV, LoopRV, Schedule

_SIZES: Final = (2, 4, 8, 16)
_CLEARLY: Final = 0.8  # of the cycles: joined axes take more steps, and more instructions for addresses
_SHARE: Final = 2 / 3  # of L1, that a block takes: the rest is for lines that come and go


class _Operand(NamedTuple):
    """A load that is turned: which of its dimensions the result's neighbours and its own neighbours move in."""

    access: Access
    along: int
    across: int
    is_joined: bool = False  # its indices are joined axes; tiles are loaded before they are turned

    def intrinsic(self, size: int) -> str | None:
        """What turns a tile of it in registers; None where there is nothing for that size."""
        if self.is_joined:
            return transpose_intrinsic(size, 0, str(self.access.buffer.dtype))
        after = len(self.access.indices) - 1 - self.across
        return transpose_intrinsic(size, self.across - self.along - 1, str(self.access.buffer.dtype), after)

    @property
    def layout(self) -> str:
        """The tile as the result wants it: its own neighbours as rows, what were rows as neighbours."""
        return self._layout(self.across, self.along)

    @property
    def loaded_layout(self) -> str:
        """The tile as it is loaded."""
        return self._layout(self.along, self.across)

    def _layout(self, rows: int, columns: int) -> str:
        names = dimensions(len(self.access.indices))
        others = [name for dim, name in enumerate(names) if dim not in (self.along, self.across)]
        return layout(names, [*others, names[rows], names[columns]])


class _Transpose(NamedTuple):
    """Axis `along` walks over neighbours of the result, axis `across` over neighbours of the operands."""

    along: int
    across: int
    operands: tuple[_Operand, ...]

    def sizes(self) -> list[int]:
        """The tiles that all operands have."""
        return [size for size in _SIZES if all(operand.intrinsic(size) is not None for operand in self.operands)]


class Transpose:
    """Takes one block that reads an operand across the direction in which it writes."""

    name = "transpose"
    kind = RuleKind.ACROSS_MEMORY

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        if facts is None or not facts.is_injective:
            return 0
        streams = Streams(facts)
        match = _match_transpose(facts, streams)
        return int((match is not None and bool(_fitting(facts, match))) or _joined(facts, streams) is not None)

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        assert facts is not None
        streams = Streams(facts)
        match = _match_transpose(facts, streams)
        lanes = common_lanes(facts, machine)
        joined = _joined(facts, streams)
        copies: list[BlockRV] = []
        if joined is not None and _fits_better(facts, joined, match, streams, machine, lanes):
            facts, copies = _join(sch, facts, joined, program)
            streams = Streams(facts)
            match = _match_transpose(facts, streams, is_joined=True)
            decision.chose(f"{len(facts.axes)} axes", "of those that all loads and stores walk over as one")
        assert match is not None
        size = _tile(facts, match, streams, machine, lanes)
        along, across = facts.axes[match.along], facts.axes[match.across]
        cost = nest_cost([facts], machine)
        cost.note(decision, 0.5)
        decision.chose(
            f"tiles of {size} × {size} in registers",
            f"{along.name} is contiguous in the result, {across.name} in "
            + ", ".join(operand.access.buffer.name for operand in match.operands),
            ChoiceKind.TILES,
        )
        loops = sch.get_loops(sch.get_block(facts.name))
        outer = [loop for position, loop in enumerate(loops) if position not in (match.along, match.across)]
        row, column = loops[match.across], loops[match.along]
        sch.reorder(*outer, row, column)
        rows, row = _cut(sch, row, across.extent, size)
        sch.reorder(column, row)
        columns, column = _cut(sch, column, along.extent, size)
        if along.extent is None or along.extent % size:
            sch.fission(rows)
        if outer and cost.is_known and machine.threads_for(cost.cycles) > 1:
            _set_apart(sch, outer[0], cost.elements, facts, match, size, machine)
        sch.reorder(row, column)
        loaded: list[BlockRV] = []
        for operand in match.operands:
            intrinsic = operand.intrinsic(size)
            assert intrinsic is not None
            if operand.is_joined:
                loaded.append(_stage_joined(sch, facts.name, columns, operand, intrinsic))
                continue
            stage = sch.stage(facts.name, columns, operand.access.buffer.name, "local", layout=operand.layout)
            sch.tensorize(sch.get_loops(stage)[operand.along - len(operand.access.indices)], intrinsic)
        for copy in copies:
            sch.compute_inline(copy)
        for stage in loaded:
            *_, each_row, neighbours = sch.get_loops(stage)
            sch.vectorize(neighbours)
            sch.unroll(each_row)
        sch.vectorize(column)
        sch.unroll(row)
        _add_prefetches(sch, facts, row, size, streams, machine, decision)
        counts = [None if axis.extent is None else axis.extent // size for axis in (across, along)]
        around = _blocked(sch, rows, columns, counts, _block(facts, match, streams, machine, size), decision)
        parallelize_outer(sch, [*outer, *around], size * size, cost, machine, decision)


def _match_transpose(facts: BlockFacts, streams: Streams, is_joined: bool = False) -> _Transpose | None:
    """The two axes of a transposition and what is turned; None when there is none, or none that tiles could do."""
    if len(facts.stores) != 1 or own_uses(facts).compared:
        return None
    moving = [position for position, axis in enumerate(facts.axes) if axis.extent != 1]
    along = next((position for position in moving if streams.stores[0].step(position) == 1), None)
    if along is None:
        return None
    across: int | None = None
    operands: list[_Operand] = []
    for load, access in zip(streams.loads, facts.reads, strict=True):
        if load.step(along) in (0, 1) or load.steps[along] is None:
            continue  # a row, a number, or a gather: neighbours stay neighbours, or never were
        own = next((position for position in moving if position != along and load.step(position) == 1), None)
        if own is None or across not in (None, own):
            return None
        across = own
        operand = _operand(access, facts.axes[along].var, facts.axes[own].var)
        if operand is None or any(other.access.buffer is access.buffer for other in operands):
            return None  # two windows of one operand are a stencil
        operands.append(operand._replace(is_joined=is_joined))
    return None if across is None else _Transpose(along, across, tuple(operands))


class _Joined(NamedTuple):
    """Axes that move as one; the extents of those along the result and along the operands, which are to be turned."""

    groups: list[list[int]]
    extents: tuple[int, int]
    operands: list[Buffer]
    sizes: list[int]
    rows: list[int]  # the distance in bytes between rows of the result and of each operand


def _joined(facts: BlockFacts, streams: Streams) -> _Joined | None:
    """The transposition of joined axes; None where there is none, or it is that of the axes as they are."""
    uses = own_uses(facts)
    if len(facts.stores) != 1 or uses.compared or uses.computed:
        return None
    groups = groups_of(facts, streams)
    inner = [innermost(facts, group) for group in groups]
    extents = [facts.extent([facts.axes[position] for position in group]) for group in groups]
    if len(groups) == len([axis for axis in facts.axes if axis.extent != 1]) or None in extents:
        return None
    along = next((k for k, position in enumerate(inner) if streams.stores[0].step(position) == 1), None)
    if along is None:
        return None
    across: int | None = None
    operands: list[Buffer] = []
    for load in streams.loads:
        if any(load.step(position) is None for position in inner) or load.buffer in operands:
            return None
        if load.step(inner[along]) in (0, 1):
            continue
        own = next((k for k, position in enumerate(inner) if load.step(position) == 1), None)
        if own is None or across not in (None, own):
            return None
        across = own
        operands.append(load.buffer)
    if across is None:
        return None
    shortest, turned = (extents[along] or 0, extents[across] or 0), {str(buffer.dtype) for buffer in operands}
    sizes = [size for size in _SIZES if all(transpose_intrinsic(size, 0, dtype) is not None for dtype in turned)]
    sizes = [size for size in sizes if size <= min(shortest)]
    turned_loads = [load for load in streams.loads if load.buffer in operands]
    rows = [(streams.stores[0], inner[across]), *[(load, inner[along]) for load in turned_loads]]
    distances = [(stream.step(position) or 0) * stream.itemsize for stream, position in rows]
    return _Joined(groups, shortest, operands, sizes, distances) if sizes else None


def _fits_better(
    facts: BlockFacts, joined: _Joined, match: _Transpose | None, streams: Streams, machine: Machine, lanes: int
) -> bool:
    """Whether tiles of joined axes take clearly less time than those of the axes as they are."""
    if match is None or not _fitting(facts, match):
        return True
    size = _tile(facts, match, streams, machine, lanes)
    usual = _cycles(size, _inside(facts, match, size), machine)
    is_aligned = all(distance % machine.line == 0 for distance in joined.rows)
    allowed = _allowed(joined.sizes, is_aligned, streams, machine, lanes)
    return min(_cycles(size, _whole(joined.extents, size), machine) for size in allowed) < _CLEARLY * usual


def _join(sch: Schedule, facts: BlockFacts, joined: _Joined, program: Program) -> tuple[BlockFacts, list[BlockRV]]:
    """The facts of the block with joined axes, and the copies that it reads instead of the operands."""
    join_axes(sch, facts, joined.groups)
    copies = [read_by_axes(sch, program, facts.name, operand) for operand in joined.operands]
    now = program.after(sch).entry(facts.name).facts
    assert now is not None
    return now, copies


def _stage_joined(sch: Schedule, block: str, tile: LoopRV, operand: _Operand, intrinsic: str) -> BlockRV:
    """Load a tile by rows and turn what was loaded; the block that loads."""
    loads = sch.stage(block, tile, operand.access.buffer.name, "local", layout=operand.loaded_layout)
    rank = len(operand.access.indices)
    turns = sch.stage(block, tile, sch.get(loads).writes[0].buffer.name, "local", layout=swapped_last(rank))
    sch.tensorize(sch.get_loops(turns)[-2], intrinsic)
    return loads


def _operand(access: Access, along: Var, across: Var) -> _Operand | None:
    """The operand, if each of the two axes is an index by itself, the second one the last that moves."""
    rows = [dim for dim, form in enumerate(access.forms) if form is None or along in form.variables()]
    columns = [dim for dim, form in enumerate(access.forms) if form is None or across in form.variables()]
    sizes = access.buffer.shape
    last = len(sizes) - 1
    if all(const(size) is not None for size in sizes):  # else the vector of a row would be checked against the 1
        last = max([dim for dim in range(len(sizes)) if const(sizes[dim]) != 1], default=0)
    if len(rows) != 1 or columns != [last] or rows == columns:
        return None
    by_one = access.steps(along)[rows[0]] == 1 and access.steps(across)[last] == 1
    return _Operand(access, rows[0], last) if by_one else None


def _fitting(facts: BlockFacts, match: _Transpose) -> list[int]:
    extents = [facts.axes[position].extent for position in (match.along, match.across)]
    shortest = min([extent for extent in extents if extent is not None], default=max(_SIZES))
    return [size for size in match.sizes() if size <= shortest]


def _tile(facts: BlockFacts, match: _Transpose, streams: Streams, machine: Machine, lanes: int) -> int:
    """The size with which least time goes into shuffles and into elements that fill no tile."""
    is_aligned = _is_aligned(facts, match, streams, machine)
    allowed = _allowed(_fitting(facts, match), is_aligned, streams, machine, lanes)
    return min(allowed, key=lambda size: _cycles(size, _inside(facts, match, size), machine))


def _allowed(sizes: Sequence[int], is_aligned: bool, streams: Streams, machine: Machine, lanes: int) -> Sequence[int]:
    """Rows of at most one register, but of four elements at least: shorter ones are all loop."""
    most = max(4, lanes)
    if not is_aligned:
        # Where rows start anywhere in a cache line, those of half a line meet two lines half as often as those of a
        # whole one.
        widest = max(stream.itemsize for stream in streams.all)
        most = max(4, min(most, machine.line // 2 // widest))
    return [size for size in sizes if size <= most] or sizes[:1]


def _cycles(size: int, inside: float, machine: Machine) -> float:
    """Of an element, where that share of them is in tiles."""
    return inside * (log2(size) + 2) / size + (1 - inside) * machine.element_cycles


def _is_aligned(facts: BlockFacts, match: _Transpose, streams: Streams, machine: Machine) -> bool:
    """Whether the rows of the result and of the operands all start at the same place of a cache line."""
    transposed = [operand.access for operand in match.operands]
    loads = [load for load, access in zip(streams.loads, facts.reads, strict=True) if access in transposed]
    rows = [(streams.stores[0], match.across), *[(load, match.along) for load in loads]]
    steps = [(stream.step(position), stream.itemsize) for stream, position in rows]
    return all(step is not None and step * itemsize % machine.line == 0 for step, itemsize in steps)


def _cut(sch: Schedule, loop: LoopRV, extent: int | None, size: int) -> tuple[LoopRV, LoopRV]:
    """A loop as whole tiles; what is left over becomes a loop of its own after it."""
    tail = "guard" if extent is not None and extent % size == 0 else "peel"
    tiles, inside = sch.split(loop, [None, size], tail=tail)[:2]
    return tiles, inside


def _set_apart(
    sch: Schedule, outermost: LoopRV, elements: int, facts: BlockFacts, match: _Transpose, size: int, machine: Machine
) -> None:
    """What fills no tile leaves the loops around the tiles, so that these are one nest to be shared out; so is it."""
    share = _inside(facts, match, size)
    if share == 1:
        return
    rest = sch.fission(outermost)[1]
    if machine.threads_for((1 - share) * elements * machine.element_cycles) > 1:
        sch.parallel(rest)


def _inside(facts: BlockFacts, match: _Transpose, size: int) -> float:
    """The share of the elements that is in whole tiles."""
    return _whole([facts.axes[position].extent for position in (match.along, match.across)], size)


def _whole(extents: Sequence[int | None], size: int) -> float:
    return prod([extent // size * size / extent if extent else 1.0 for extent in extents])


def _add_prefetches(
    sch: Schedule, facts: BlockFacts, row: LoopRV, size: int, streams: Streams, machine: Machine, decision: Decision
) -> None:
    """Each row of a tile asks for the next cache line of its row of the result, unless all is near already."""
    touched = streams.bytes_touched()
    if touched is not None and touched <= machine.l2 // 2:
        return
    store = streams.stores[0]
    tiles = ceil(machine.line / (size * store.itemsize))
    sch.prefetch(facts.name, row, store.buffer.name, distance=tiles, levels=1)
    decision.chose(
        "rows of the result prefetched a cache line ahead", "their stride is too large for the hardware prefetcher"
    )


def _block(facts: BlockFacts, match: _Transpose, streams: Streams, machine: Machine, size: int) -> tuple[int, int]:
    """How many tiles high and wide a block is, so that it is in L1, in the result and in every operand."""
    bytes_each = streams.stores[0].itemsize + sum(bytes_of(str(op.access.buffer.dtype)) for op in match.operands)
    most = sqrt(machine.l1 * _SHARE / bytes_each) / size
    high = 1 << int(log2(max(1.0, most)))
    # Rows that start anywhere in a cache line share one with the next block at either end: longer rows share fewer.
    # Tiles of a block then have lines of the operands in common; those of the result are done with once they are full.
    return high, high if _is_aligned(facts, match, streams, machine) else 2 * high


def _blocked(
    sch: Schedule,
    rows: LoopRV,
    columns: LoopRV,
    counts: Sequence[int | None],
    block: tuple[int, int],
    decision: Decision,
) -> list[LoopRV]:
    """Tiles in blocks of about that many, high and wide; the loops, outermost first."""
    high, wide = (1 if count is None else block_size(count, most) for count, most in zip(counts, block, strict=True))
    if high == wide == 1:
        return [rows, columns]
    some_rows, row = sch.split(rows, [None, high])
    some_columns, column = sch.split(columns, [None, wide])
    sch.reorder(some_rows, some_columns, row, column)
    why = "adjacent tiles share cache lines"
    decision.chose(f"blocks of {high} × {wide} tiles", why, ChoiceKind.TILES)
    return [some_rows, some_columns]


def block_size(count: int, block: int) -> int:
    """About `block` of `count`: a number that leaves no block unfinished, where one is near enough."""
    if count <= block:
        return count
    near = [size for size in range(ceil(0.75 * block), int(1.5 * block) + 1) if count % size == 0]
    return min(near, key=lambda size: abs(log2(size / block)), default=block)
