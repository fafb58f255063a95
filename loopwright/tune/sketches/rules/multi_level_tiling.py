"""multi_level_tiling: a reduction with reuse becomes the loops of a cache-blocked algorithm, with sampled sizes.

    for i, j, k: C                →      for i0, j0:  i1, j1:  k0:  i2, j2:         "SSRS"
                                             tile in registers ← C                   i3 × j3 sums
                                             for k1, i3, j3:  tile += A · B          "RS"
                                             C ← tile

A block has reuse when some operand does not move with some data axis. Sums stay in registers over the innermost
reduction loops. Variants: the result is written where it belongs; or into a buffer that the tile of the first or second
level has of its own, from which a copy, or the element-wise consumer, takes it (`reuse_write`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loopwright.autosched.facts import Access, Axis, BlockFacts, facts_of
from loopwright.autosched.lanes import sink
from loopwright.autosched.layouts import moved_last
from loopwright.autosched.small_steps import loops_by_axis
from loopwright.schedule import BlockRV, ExprRV, LoopRV, Schedule, ScheduleError
from loopwright.tune.sketches.blocks import is_element_wise_reader, is_padding, only_reader
from loopwright.tune.sketches.panels import lay_out_panels, stage_panels
from loopwright.tune.sketches.rules.rule import ScheduleRule
from loopwright.tune.sketches.tiling import TILED, slab_level, tiling_of


@dataclass(frozen=True)
class ReuseType:
    """Whether a result gets a buffer of its own ("no", "may", "must"), and after which tile levels it is copied."""

    req: str = "may"
    levels: Sequence[int] = (1, 2)
    scope: str = "global"


IN_REGISTERS: Final = -1  # the reduction is not cut: sums begin in registers, and leave them when they are done


class Variant(NamedTuple):
    """One way to tile a block: the axis that vectors run along, where results are copied, what is packed where."""

    vector: Axis
    level: int = 0  # 0: the result is written where it belongs; IN_REGISTERS: from register tiles, once
    packed: tuple[tuple[int, str], ...] = ()  # (which operand, "root" or "slab")


class Nest(NamedTuple):
    """The loops of a tiled block."""

    levels: list[list[LoopRV]]  # by the letters of the structure
    widths: Mapping[str, ExprRV]  # the innermost size of each data axis, by its name
    slab: LoopRV | None  # the innermost loop before the register tiles, around which the reduction goes on
    tile: LoopRV | None  # the loop whose iterations are register tiles


class MultiLevelTiling(ScheduleRule):
    """Tiles what has reuse; the arguments are those of other meta-schedules, of which binds and loads are a GPU's."""

    name = "multi_level_tiling"

    def __init__(
        self,
        structure: str = "SSRSRS",
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int = 64,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = ReuseType("may", (1, 2)),
        filter_fn: Callable[[Schedule, BlockRV], bool] | None = None,
    ) -> None:
        self.structure, self.max_innermost_factor = structure, max_innermost_factor
        self.tile_binds, self.vector_load_lens, self.reuse_read = tile_binds, vector_load_lens, reuse_read
        self.reuse_write, self.filter_fn = reuse_write, filter_fn

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        facts = facts_of(sch.view(), sch.view().realize(block.key))
        if facts is None or not has_reuse(facts) or (self.filter_fn is not None and not self.filter_fn(sch, block)):
            return [sch]
        result = []
        for variant in self.variants(sch, block, facts):
            trial = sch.copy()
            try:
                tile(trial, block, facts, variant, self.structure, self.max_innermost_factor, self.machine.lanes)
            except ScheduleError:
                continue  # the engine shows why it cannot be; another variant may
            result.append(trial)
        return [*result, *self.untouched(sch)] or [sch]

    def untouched(self, sch: Schedule) -> list[Schedule]:
        """The schedule as it came, where later rules shall see that, too."""
        return []

    def variants(self, sch: Schedule, block: BlockRV, facts: BlockFacts) -> list[Variant]:
        """The ways to tile a block, the likeliest first."""
        vector = vector_axis(facts)
        return [Variant(vector, level) for level in self.write_levels(sch, block)]

    def write_levels(self, sch: Schedule, block: BlockRV) -> list[int]:
        """After which tile levels the result is copied; 0 for nowhere."""
        reuse = self.reuse_write
        if reuse is None or reuse.req == "no":
            return [0]
        levels = [level for level in reuse.levels if 0 < level < len(self.structure)]
        return levels if reuse.req == "must" else [*levels, 0, IN_REGISTERS]


def has_reuse(facts: BlockFacts) -> bool:
    """Whether a reduction reads some operand that does not move with some data axis."""
    if not facts.is_reduction or len(facts.stores) != 1 or not facts.spatial:
        return False
    data = [axis for axis in facts.spatial if axis.extent != 1]
    known = all(axis.extent is not None for axis in facts.axes)
    affine = all(access.is_affine for access in (facts.write, *facts.reads))
    return known and affine and any(not access.uses(axis.var) for axis in data for access in facts.reads)


def vector_axis(facts: BlockFacts) -> Axis:
    """The data axis along which results are neighbours in memory; the last one where there is none."""
    wide = [axis for axis in facts.spatial if axis.extent != 1] or list(facts.spatial)
    return next((axis for axis in reversed(wide) if facts.write.stride(axis.var) == 1), wide[-1])


def tile(
    sch: Schedule,
    block: BlockRV,
    facts: BlockFacts,
    variant: Variant,
    structure: str,
    max_innermost: int,
    lanes_of: Callable[[str], int],
) -> None:
    """Tile the block as the variant says."""
    lanes = lanes_of(facts.dtype)
    whole = variant.level == IN_REGISTERS
    if whole:
        first = structure.index("R")
        structure = structure[:first] + structure[first + 1 :] if structure.count("R") > 1 else structure
    copies = {which: _copied(sch, block, facts.reads[which]) for which, where in variant.packed if where == "root"}
    out = _result_copy(sch, block, facts, variant) if variant.level else None
    nest = tile_loops(sch, block, facts, variant.vector, structure, max_innermost)
    for which, where in variant.packed:
        access = facts.reads[which]
        axis = panel_axis(facts, access, variant.vector)
        assert axis is not None
        rank, dimension, width = len(access.indices), access.own_dimension(axis.var), nest.widths[axis.name]
        if where == "root":
            lay_out_panels(sch, copies[which], width, rank=rank, dimension=dimension)
    if not whole:
        sch.decompose_reduction(block, _first(nest.levels, structure, "R"))
    for which, where in variant.packed:
        if where != "root":
            access = facts.reads[which]
            axis = panel_axis(facts, access, variant.vector)
            assert axis is not None and nest.slab is not None
            padding = _padding_of(sch, block, access)
            stage_panels(
                sch,
                block,
                nest.slab,
                nest.widths[axis.name],
                buffer=access.buffer.name,
                rank=len(access.indices),
                dimension=access.own_dimension(axis.var),
                lanes=lanes,
            )
            if padding is not None:
                sch.compute_inline(padding)  # panels are padded as they are packed
    if whole and out is not None:
        _begin_in_registers(sch, block, out, nest, lanes)
    elif out is not None:
        sch.reverse_compute_at(out, _last_data_loop(nest.levels, structure, variant.level))
        sink(sch, block, sch.get(block).writes[0].buffer)
    if not whole:
        _keep_in_registers(sch, block, nest, lanes)
    *rows, columns = nest.levels[-1]
    for loop in rows:
        sch.unroll(loop)
    _vectors(sch, columns, lanes)
    order = [facts.axes.index(axis) for axis in tiled_axes(facts, variant.vector)]
    data = sum(not facts.axes[number].is_reduce for number in order)
    tiling = tiling_of(facts, structure, order, data, variant.level, dict(variant.packed))
    sch.annotate(block, TILED, tiling.to_json())


def tiled_axes(facts: BlockFacts, vector: Axis) -> list[Axis]:
    """The axes that are tiled: data axes, the vectors' last, then those of the reduction."""
    data = [axis for axis in facts.spatial if axis.extent != 1 and axis is not vector]
    return [*data, vector, *[axis for axis in facts.reduce if axis.extent != 1]]


def tile_loops(
    sch: Schedule, block: BlockRV, facts: BlockFacts, vector: Axis, structure: str, max_innermost: int
) -> Nest:
    """Sample the sizes, split, and reorder; axes of one element stay outside."""
    loops = loops_by_axis(sch, block, facts)
    unit = [loops[axis.var] for axis in facts.axes if axis.extent == 1 and axis is not vector]
    tiled = tiled_axes(facts, vector)
    levels: list[list[LoopRV]] = [[] for _ in structure]
    widths: dict[str, ExprRV] = {}
    for axis in tiled:
        own = [position for position, letter in enumerate(structure) if letter == ("R" if axis.is_reduce else "S")]
        factors = sch.sample_perfect_tile(loops[axis.var], len(own), -1 if axis.is_reduce else max_innermost)
        widths[axis.name] = factors[-1]
        for position, part in zip(own, sch.split(loops[axis.var], factors), strict=True):
            levels[position].append(part)
    sch.reorder(*unit, *[loop for level in levels for loop in level])
    last = structure.rindex("R")
    before = [loop for level in levels[:last] for loop in level]
    around = [loop for level in levels[: slab_level(structure)] for loop in level]
    return Nest(levels, widths, around[-1] if around else None, before[-1] if before else None)


def panel_axis(facts: BlockFacts, access: Access, vector: Axis) -> Axis | None:
    """The data axis whose register tile an operand is packed for: that of the vectors, else its longest."""
    own = [axis for axis in facts.spatial if axis.extent != 1 and access.own_dimension(axis.var) is not None]
    if vector in own:
        return vector
    shared = [axis for axis in own if not all(other.uses(axis.var) for other in facts.reads)]
    return max(shared, key=lambda axis: axis.extent or 0, default=None)


def _copied(sch: Schedule, block: BlockRV, access: Access) -> BlockRV:
    """A copy of an operand, before all loops: the one that pads it, or one made here."""
    padding = _padding_of(sch, block, access)
    if padding is not None:
        return padding
    return sch.cache_read(block, access.buffer.name, "global", [block])


def _padding_of(sch: Schedule, block: BlockRV, access: Access) -> BlockRV | None:
    """The block that makes an operand for this block alone, from a smaller one."""
    for producer in sch.get_producers(block):
        if sch.get(producer).writes[0].buffer is access.buffer and is_padding(sch, producer):
            return sch.get_block(producer.name)
    return None


def _result_copy(sch: Schedule, block: BlockRV, facts: BlockFacts, variant: Variant) -> BlockRV:
    """The block that takes the result from its own buffer: the element-wise consumer, or a copy made here."""
    reader = only_reader(sch, block)
    if reader is not None and is_element_wise_reader(sch, reader, facts.write.buffer):
        out = reader
    else:
        out = sch.cache_write(block, 0, "global")
    dimension = facts.write.own_dimension(variant.vector.var)
    rank = len(facts.write.indices)
    if dimension is not None and dimension != rank - 1:
        sch.transform_layout(block, ("write", 0), moved_last(rank, dimension))
    return out


def _first(levels: Sequence[Sequence[LoopRV]], structure: str, letter: str) -> LoopRV:
    return next(level[0] for level, own in zip(levels, structure, strict=True) if own == letter and level)


def _last_data_loop(levels: Sequence[Sequence[LoopRV]], structure: str, level: int) -> LoopRV:
    """The innermost loop of the `level`-th data level."""
    own = [loops for loops, letter in zip(levels, structure, strict=True) if letter == "S" and loops]
    return own[min(level, len(own)) - 1][-1]


def _keep_in_registers(sch: Schedule, block: BlockRV, nest: Nest, lanes: int) -> None:
    """The sums of the innermost tile stay in registers over the innermost reduction loops."""
    if nest.tile is not None:
        result = sch.get(block).writes[0].buffer.name
        load = sch.stage(block, nest.tile, result, "local")
        store = sch.get_consumers(block)[0]
        for copy in (load, store):
            *copied_rows, copied = sch.get_loops(copy)[-len(sch.get(block).writes[0].buffer.shape) :]
            for loop in copied_rows:
                sch.unroll(loop)
            _vectors(sch, copied, lanes)


def _begin_in_registers(sch: Schedule, block: BlockRV, out: BlockRV, nest: Nest, lanes: int) -> None:
    """Sums that are nowhere but in registers until all of them is there; `out` takes them, or their consumer does."""
    assert nest.tile is not None
    sch.reverse_compute_at(out, nest.tile, preserve_unit_loops=True)
    *rows, columns = sch.get_loops(out)[-len(sch.get(out).iter_vars) :]
    sch.set_scope(block, 0, "local")
    for loop in rows:
        sch.unroll(loop)
    _vectors(sch, columns, lanes)


def _vectors(sch: Schedule, loop: LoopRV, lanes: int) -> None:
    outer, lane = sch.split(loop, [None, lanes])
    sch.unroll(outer)
    sch.vectorize(lane)
