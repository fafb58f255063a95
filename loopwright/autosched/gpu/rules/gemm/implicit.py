"""implicit gemm: convolutions and other contractions as matrix products whose operands are computed as they are loaded.

    P = padding of A                        →    O'[f, j] += W'[f, k] * P'[k, j]          the steps of a matrix product
    O[n, f, y, x] += P[…] * W[…]                 W', P' in registers: the loads of a slab
    E = max(O + bias, 0)                         E at (j → n, y, x), from registers

A padding is computed where it is loaded: a comparison takes less than memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.gemm.contraction import Contraction, Piece, contraction_of, layout, side_of
from loopwright.autosched.gpu.rules.gemm.planning import is_epilogue, note_plan, plan_of
from loopwright.autosched.gpu.rules.gemm.steps import Steps
from loopwright.autosched.gpu.rules.gemm.tiles import Plan, Size, tiles_for, vector_of
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.product import product_of
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, Schedule

_LEAST_TILE: Final = 16  # rows and columns: fewer are no tile
_LEAST_TERMS: Final = 8  # products of a cell: fewer are no slab


class ImplicitGemm:
    """Takes a contraction, with what pads an operand before it and the element-wise block after it."""

    name = "implicit gemm"

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
        sizes = {depth: _size_of(contraction, padding, depth) for depth in (8, 16, 32, 64)}
        tiles = [tile for depth, size in sizes.items() for tile in tiles_for(size, machine) if tile.depth == depth]
        vector = vector_of(bytes_of(contraction.facts.dtype))
        stores_vectors = contraction.columns[-1].size % vector == 0
        size = sizes[16]
        plan = plan_of(tiles, size, machine, stores_vectors)
        size = sizes[plan.tile.depth]
        plan = plan._replace(rows=size.rows, columns=size.columns)
        last = sch.get_block(entries[at + 1].name) if len(entries) > at + 1 else None
        last, loaders = _as_product(sch, contraction, plan, padding, last, program)
        product = None
        after = program.after(sch).entry(contraction.facts.name).facts
        if after is not None:
            product = product_of(after)
        if product is None or product.row is None or len(product.reduce) != 1:
            raise NotWorthIt("the contraction is not seen to be a matrix product")
        Steps(sch, product, plan).run(last, loaders)
        note_plan(decision, plan, size, entries, machine)
        if padding is not None:
            decision.chose(f"{padding.name} computed where it is loaded", "a comparison takes less than memory")


def _is_padding(pending: Sequence[Entry], program: Program) -> bool:
    """Whether the first block computes what the second one reads, and nobody else."""
    facts = pending[0].facts
    if facts is None or not facts.is_injective or len(facts.stores) != 1 or facts.costly_calls:
        return False
    buffer = facts.write.buffer
    return not program.is_output(buffer) and program.is_read_by(buffer, pending[1])


def _size_of(contraction: Contraction, padding: Entry | None, depth: int) -> Size:
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
    padding: Entry | None,
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
        after = program.after(sch).entry(name).facts
        split = None if after is None else contraction_of(after)
        if split is None:
            raise NotWorthIt("the groups are not seen to be a batch")
        contraction = split
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
        if padding is not None and padding.writes[0] is access.buffer:
            sch.compute_inline(sch.get_block(padding.name))
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
