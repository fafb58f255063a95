"""implicit gemm: convolutions and other contractions as GEMMs whose operands are computed as they are loaded.

    P = padding of A                        →    O'[f, j] += W'[f, k] * P'[k, j]          the steps of a GEMM
    O[n, f, y, x] += P[…] * W[…]                 W', P' in registers: the loads of a slab
    E = max(O + bias, 0)                         E at (j → n, y, x), from registers

A padding is computed where it is loaded: a comparison takes less than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.gemm.add_parts import add_parts
from loopwright.autosched.gpu.rules.gemm.contraction import Contraction, Piece, contraction_of, layout, side_of
from loopwright.autosched.gpu.rules.gemm.planning import is_epilogue, note_plan, plan_of
from loopwright.autosched.gpu.rules.gemm.steps import Steps
from loopwright.autosched.gpu.rules.gemm.tiles import Plan, Size, Tile, seconds, tiles_for, vector_of
from loopwright.autosched.lanes import may_regroup
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.product import product_of
from loopwright.autosched.small_steps import loops_by_axis
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, Schedule

_LEAST_TILE: Final = 4  # rows and columns: fewer are no tile
_LEAST_TERMS: Final = 8  # products of a cell: fewer are no slab
_LEAST_PART: Final = 64  # products of a part of a cell
_MOST_SPLITS: Final = 64
_SPLITS: Final = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
_MUCH: Final = 1.3  # times faster
_DEPTHS: Final = (16, 8, 32, 64)


class ImplicitGemm:
    """Takes a contraction, with what pads an operand before it and the element-wise block after it.

    With `may_split=False` sums stay whole: proofs about parts of them may take too many steps.
    """

    name = "implicit gemm"

    def __init__(self, may_split: bool = True) -> None:
        self.may_split = may_split

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        for start in (1, 0):
            if len(pending) <= start or (start and not _is_padding(pending, program)):
                continue
            facts = pending[start].facts
            contraction = None if facts is None else contraction_of(facts)
            if facts is None or contraction is None:
                continue
            if min(contraction.m, contraction.n) < _LEAST_TILE or contraction.k < _LEAST_TERMS:
                continue
            after = pending[start + 1 : start + 2]
            return start + 1 + int(bool(after) and is_epilogue(after[0], facts, program))
        return 0

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        at = next(k for k, entry in enumerate(entries) if entry.facts is not None and entry.facts.is_reduction)
        facts = entries[at].facts
        contraction = None if facts is None else contraction_of(facts)
        assert contraction is not None
        padding = entries[0] if at else None
        sizes = {depth: size_of_contraction(contraction, padding, depth) for depth in _DEPTHS}
        tiles = [tile for depth, size in sizes.items() for tile in tiles_for(size, machine) if tile.depth == depth]
        stores_vectors = contraction.columns[-1].size % vector_of(bytes_of(contraction.facts.dtype)) == 0
        splits = splits_of(contraction, entries[at], padding)
        if not self.may_split or not _splits_pay(tiles, sizes[_DEPTHS[0]], splits, machine):
            splits = _in_one_part
        plan = plan_of(tiles, sizes[_DEPTHS[0]], machine, stores_vectors, splits)
        size = sizes[plan.tile.depth]
        plan = plan._replace(rows=size.rows, columns=size.columns)
        schedule_contraction(sch, contraction, plan, padding, entries[at + 1 :], program, machine)
        note_plan(decision, plan, size, entries, machine)
        if padding is not None:
            decision.chose(f"{padding.name} computed where it is loaded", "a comparison takes less than memory")


def splits_of(contraction: Contraction, entry: Entry, padding: Entry | None) -> Callable[[Tile], list[int]]:
    """The numbers of parts that the sum may be cut into, for a tile: whole slabs each, padded if need be."""
    axis = contraction.split_axis
    extent = axis.extent or 1
    operands = (contraction.row_operand, contraction.column_operand)
    may_pad = padding is None and None not in [access.own_dimension(axis.var) for access in operands]
    most = min(_MOST_SPLITS, contraction.k // _LEAST_PART) if may_regroup(entry.realize) else 1

    def splits(tile: Tile) -> list[int]:
        counts = [count for count in _SPLITS if count <= most and count * tile.depth <= extent]
        return [1, *[count for count in counts if may_pad or extent % (count * tile.depth) == 0]]

    return splits


def _in_one_part(tile: Tile) -> list[int]:
    return [1]


def _splits_pay(tiles: Sequence[Tile], size: Size, splits: Callable[[Tile], list[int]], machine: GpuMachine) -> bool:
    """Whether parts of a sum take much less time: an index of a part makes all proofs about an operand longer."""
    whole = min([seconds(tile, size, machine) for tile in tiles], default=0.0)
    parts = min([seconds(tile, size, machine, count) for tile in tiles for count in splits(tile)], default=0.0)
    return whole > _MUCH * parts


def schedule_contraction(
    sch: Schedule,
    contraction: Contraction,
    plan: Plan,
    padding: Entry | None,
    after: Sequence[Entry],
    program: Program,
    machine: GpuMachine,
) -> None:
    """All steps; `after` is the element-wise block after it, if there is one."""
    name = contraction.facts.name
    epilogue = sch.get_block(after[0].name) if after else None
    paddings = {} if padding is None else {padding.writes[0]: sch.get_block(padding.name)}
    if plan.splits > 1:
        name = _split_sum(sch, contraction, plan, paddings, after, machine)
        contraction = _contraction_in(sch, name, program)
        epilogue = None
    last, loaders = _as_product(sch, contraction, plan, paddings, epilogue, program)
    facts = program.after(sch).entry(name).facts
    product = None if facts is None else product_of(facts)
    if product is None or product.row is None or len(product.reduce) != 1:
        raise NotWorthIt("the contraction is not seen to be a matrix product")
    Steps(sch, product, plan).run(last, loaders)


def _contraction_in(sch: Schedule, name: str, program: Program) -> Contraction:
    facts = program.after(sch).entry(name).facts
    result = None if facts is None else contraction_of(facts)
    if result is None:
        raise NotWorthIt("the contraction is no longer seen to be one")
    return result


def _split_sum(
    sch: Schedule,
    contraction: Contraction,
    plan: Plan,
    paddings: dict[Buffer, BlockRV],
    after: Sequence[Entry],
    machine: GpuMachine,
) -> str:
    """Parts of the sum as a batch, which a second kernel adds up; the name of the block that computes them."""
    facts, splits = contraction.facts, plan.splits
    block = sch.get_block(facts.name)
    whole = splits * plan.tile.depth
    if (contraction.split_axis.extent or 1) % whole:
        sch.pad_einsum(block, [whole if axis is contraction.split_axis else 1 for axis in facts.axes])
        for producer in sch.get_producers(block):
            paddings[sch.get(producer).writes[0].buffer] = producer
    loops = loops_by_axis(sch, block, facts)
    reduced = contraction.split_axis.var
    parts, _ = sch.split(loops[reduced], [splits, None])
    partial = sch.rfactor(parts, 0)
    own = sch.get_loops(partial)
    at = [axis.var for axis in facts.axes].index(reduced)
    sch.reorder(own[at], *own[:at])
    dtype = contraction.facts.dtype
    add_parts(sch, block, [sch.get_block(entry.name) for entry in after], splits, dtype, machine)
    return sch.get(partial).name_hint


def _is_padding(pending: Sequence[Entry], program: Program) -> bool:
    """Whether the first block computes what the second one reads, and nobody else."""
    facts = pending[0].facts
    if facts is None or not facts.is_injective or len(facts.stores) != 1 or facts.costly_calls:
        return False
    buffer = facts.write.buffer
    return not program.is_output(buffer) and program.is_read_by(buffer, pending[1])


def size_of_contraction(contraction: Contraction, padding: Entry | None, depth: int) -> Size:
    itemsize = bytes_of(contraction.facts.dtype)
    facts = None if padding is None else padding.facts
    rows, columns = [
        side_of(contraction, access, facts, depth, vector_of(itemsize))
        for access in (contraction.row_operand, contraction.column_operand)
    ]
    return Size(contraction.m, contraction.n, contraction.k, contraction.groups, itemsize, rows, columns)


def _as_product(
    sch: Schedule,
    contraction: Contraction,
    plan: Plan,
    paddings: Mapping[Buffer, BlockRV],
    epilogue: BlockRV | None,
    program: Program,
) -> tuple[BlockRV, dict[Buffer, BlockRV]]:
    """Make the block a matrix product: the block that stores its result, and those that load its operands."""
    name = contraction.facts.name
    parts = [contraction.rows, contraction.columns]
    result = layout(contraction.facts.spatial, *([contraction.batch] if contraction.batch else []), *parts)
    block = sch.get_block(name)
    last = epilogue
    if any(piece.step > 1 for piece in contraction.batch):
        store = _split_groups(sch, contraction)
        if epilogue is not None:
            sch.compute_inline(store)
        else:
            last = store
        contraction = _contraction_in(sch, name, program)
    facts = contraction.facts
    reduced = contraction.reduced(plan.tile.depth)
    batch = [contraction.batch] if contraction.batch else []
    loaders: dict[Buffer, BlockRV] = {}
    for access, along, side in (
        (contraction.row_operand, contraction.rows, plan.rows),
        (contraction.column_operand, contraction.columns, plan.columns),
    ):
        own = [*batch, along, reduced] if side.is_transposed else [*batch, reduced, along]
        position = [region.buffer for region in sch.get(block).reads].index(access.buffer)
        loader = sch.reindex_cache_read(block, position, "global", layout(facts.axes, *own))
        if access.buffer in paddings:
            sch.compute_inline(paddings[access.buffer])
        sch.transform_block_layout(loader, layout([axis for axis in facts.axes if access.uses(axis.var)], *own))
        loaders[sch.get(loader).writes[0].buffer] = loader
    parts = [*batch, contraction.rows, contraction.columns]
    store = sch.reindex_cache_write(block, 0, "global", layout(facts.axes, *parts))
    sch.transform_block_layout(block, layout(facts.axes, *parts, reduced))
    if last is None:
        last = store
    else:
        sch.compute_inline(store)
    sch.transform_block_layout(last, result)
    return last, loaders


def _split_groups(sch: Schedule, contraction: Contraction) -> BlockRV:
    """Make two axes of each one whose quotient is a batch; the block that stores the result as it was."""
    facts = contraction.facts
    quotients = {piece.axis.var: piece for piece in contraction.batch if piece.step > 1}
    parts: dict[bool, list[list[Piece]]] = {False: [], True: []}
    for axis in facts.axes:
        group = quotients.get(axis.var)
        own = [Piece(axis, 1, axis.extent or 0)] if group is None else [group, Piece(axis, 1, group.step)]
        parts[axis.is_reduce] += [[piece] for piece in own]
    block = sch.get_block(facts.name)
    store = sch.reindex_cache_write(block, 0, "global", layout(facts.axes, *parts[False]))
    sch.transform_block_layout(block, layout(facts.axes, *parts[False], *parts[True]))
    return store
