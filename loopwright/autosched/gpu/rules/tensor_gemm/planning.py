"""The plan of a product for tensor cores: which tile, in which order tiles are walked, and what the report says of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

from loopwright.autosched.choices import option, pick
from loopwright.autosched.decision import Choice, ChoiceKind, Decision, Roofline
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.tensor_gemm.matmul import Matmul
from loopwright.autosched.gpu.rules.tensor_gemm.tiles import Size, Tile, seconds, slab_cycles, tiles_for

_GROUPS: Final = (12, 11, 13, 10, 14, 9, 15, 8, 16, 7, 6, 5, 4)  # rows of tiles that are walked together, best first
_FEW_ROWS: Final = 64  # rows of a result of which tensor cores compute the transposed one


class Plan(NamedTuple):
    """How a product is computed."""

    matmul: Matmul
    size: Size
    tile: Tile
    group: int  # rows of tiles that are walked column by column before the next ones
    blocks: int  # that are there at once, and compute tile after tile; 0 where each tile has a block


def plan_of(matmul: Matmul, machine: GpuMachine, result_itemsize: int) -> Plan:
    """The tile that should be fastest; NotWorthIt where there is none."""
    if matmul.m <= _FEW_ROWS and matmul.n > matmul.m:
        matmul = matmul.transposed()
    size = Size(matmul.m, matmul.n, matmul.k, matmul.batch, matmul.itemsize, result_itemsize)
    tiles = tiles_for(size, machine, *[1 if side.is_k_major else 64 for side in matmul.sides])
    if not tiles:
        raise NotWorthIt("no tile of the product fits the threads and the memory of a block")
    tile = pick("tile", tiles, lambda tile: seconds(tile, size, machine))
    rows, _ = size.grid(tile)
    usual = next((group for group in _GROUPS if rows % group == 0), 1) if rows > 1 else 1
    group = option("group", usual, 1, 4, 8, 16)
    if rows % group:
        group = 1
    blocks = machine.multiprocessors * tile.resident
    return Plan(matmul, size, tile, group, blocks if size.tiles(tile) > blocks else 0)


def note_plan(decision: Decision, plan: Plan, entries: Sequence[object], machine: GpuMachine) -> None:
    """Say why, and what is expected."""
    tile, size = plan.tile, plan.size
    peak = machine.matrix_flops * (2 / size.itemsize)
    arithmetic, memory = size.flops / peak, size.bytes / machine.bandwidth_of(size.bytes)
    expected = seconds(tile, size, machine)
    groups = f"{tile.groups} warpgroups" if tile.groups > 1 else "1 warpgroup"
    cycles = slab_cycles(tile, size, machine)
    decision.choices.append(
        Choice(
            f"tile {tile.text()}",
            f"{groups} with {tile.accumulators} accumulators a thread; a slab of {size.slab} along K takes them "
            f"{cycles:.0f} cycles",
            ChoiceKind.TILES,
        )
    )
    if plan.matmul.is_transposed:
        decision.chose("the transposed product", "tensor cores have 64 rows at least, and 8 columns")
    why = f"{tile.shared / 1024:.0f} KiB; one warp loads them by tensor copies (TMA), as far ahead"
    decision.chose(f"{tile.stages} stages of {tile.slab / 1024:.0f} KiB", why)
    tiles = size.tiles(tile)
    waves = tiles / (machine.multiprocessors * tile.resident)
    where = f"{plan.blocks} blocks that stay" if plan.blocks else f"{tiles} blocks"
    decision.chose(f"{tiles} tiles in {where}, {waves:.2f} waves", "as many multiprocessors as possible end together")
    if plan.group > 1:
        decision.chose(f"groups of {plan.group} rows of tiles", "blocks that run together share operands in L2")
    padded = ceil(size.m / tile.rows) * tile.rows * ceil(size.n / tile.columns) * tile.columns
    decision.tile_use = size.m * size.n / padded
    decision.roofline = Roofline(arithmetic, memory, expected)
    decision.chose(
        f"{expected * 1e6:.1f} µs, {size.flops / expected / 1e12:.0f} TFLOP/s",
        f"{size.flops / expected / peak:.0%} of the peak of tensor cores",
    )
