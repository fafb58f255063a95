"""The plan of a product: which tile, in which order tiles are walked, and what the report says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

from loopwright.autosched.choices import option, pick
from loopwright.autosched.decision import Choice, ChoiceKind, Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.roofline import bytes_moved, note_roofline
from loopwright.autosched.gpu.rules.gemm.tiles import Plan, Size, Tile, efficiency, occupied, seconds
from loopwright.autosched.program import Entry, Program

_GROUP: Final = 16  # columns of tiles at most that are walked together
_MOST_BLOCKS: Final = 65535  # along y and z


def plan_of(
    tiles: Sequence[Tile],
    size: Size,
    machine: GpuMachine,
    stores_vectors: bool,
    splits: Callable[[Tile], Sequence[int]],
    gain: float = 1.0,
) -> Plan:
    """The tile that should be fastest; NotWorthIt where there is none. Sides are those of `size`.

    `splits` says into how many parts a sum may be cut, `gain` how many times faster that must be.
    """
    if not tiles:
        raise NotWorthIt("no tile of the product fits the threads and the memory of a block")

    def price(tile: Tile, count: int) -> float:
        return seconds(tile, size, machine, count) * (gain if count > 1 else 1.0)

    tile = pick("tile", tiles, lambda tile: min([price(tile, count) for count in splits(tile)]))
    split = pick("splits", splits(tile), lambda count: price(tile, count))
    size = size.split(split)
    columns = ceil(size.n / tile.columns)
    usual = next((group for group in range(_GROUP, 3, -1) if columns % group == 0), 1)
    group = option("group", usual if columns > _GROUP else 1, 1, 4, 8, 16)
    if columns % group:
        group = 1
    if max(ceil(size.m / tile.rows), columns // group * size.batch) > _MOST_BLOCKS:
        raise NotWorthIt("the product has more tiles than a grid has blocks")
    scope = "shared" if tile.shared(size.itemsize) <= machine.static_shared_memory else "shared.dyn"
    # No more blocks than there are: registers that no other block needs hide latencies.
    resident = min(tile.resident(size.itemsize, machine), ceil(size.blocks(tile) / machine.multiprocessors))
    return Plan(tile, group, resident, scope, size.rows, size.columns, stores_vectors, split)


def note_plan(decision: Decision, plan: Plan, size: Size, entries: Sequence[Entry], machine: GpuMachine) -> None:
    """Say why, and what is expected."""
    tile, resident = plan.tile, plan.resident
    whole = seconds(tile, size, machine, plan.splits)
    blocks = size.blocks(tile) * plan.splits
    rows, columns = tile.of_thread
    waves = machine.waves(blocks, tile.threads, tile.shared(size.itemsize), tile.registers(size.itemsize))
    decision.choices.append(
        Choice(
            f"tile {tile.text()}",
            f"{rows * columns} accumulators a thread, {tile.threads} threads a block, {resident} blocks a "
            f"multiprocessor; {efficiency(tile, size) * occupied(tile, resident):.0%} of the slots are multiply-adds",
            ChoiceKind.TILES,
        )
    )
    decision.chose(f"{blocks} blocks, {waves:.2f} waves", "as many multiprocessors as possible end together")
    kept = tile.shared(size.itemsize) / 1024
    decision.chose(f"2 stages of {kept / 2:.1f} KiB", "the next slab is loaded while this one is computed")
    if plan.splits > 1:
        decision.chose(f"{plan.splits} parts of the sum", "the tiles are too few to keep all multiprocessors busy")
    if plan.group > 1:
        decision.chose(f"groups of {plan.group} columns of tiles", "blocks that run together share operands in L2")
    padded = ceil(size.m / tile.rows) * tile.rows * ceil(size.n / tile.columns) * tile.columns
    decision.tile_use = size.m * size.n / padded
    facts = [entry.facts for entry in entries if entry.facts is not None]
    flops = size.flops * max(1, size.itemsize // 4)
    moved = bytes_moved(facts)
    limit = max(flops / machine.flops, moved / machine.bandwidth_of(moved))
    note_roofline(decision, facts, machine, min(0.95, limit / whole), flops)


def is_epilogue(entry: Entry, facts: BlockFacts, program: Program) -> bool:
    """Whether the block computes each of its cells from the same cell of the product, which nobody else reads."""
    after, result = entry.facts, facts.write.buffer
    if after is None or not after.is_injective or len(after.stores) != 1 or program.is_output(result):
        return False
    readers = program.readers(result)
    if len(readers) != 1 or readers[0] is not entry or not after.writes_in_order:
        return False
    axes = [axis.var for axis in after.axes]
    reads = [access for access in after.reads if access.buffer is result]
    same = [[access.own_dimension(var) for var in axes] == list(range(len(axes))) for access in reads]
    return [axis.extent for axis in after.axes] == [axis.extent for axis in facts.spatial] and bool(same) and all(same)
