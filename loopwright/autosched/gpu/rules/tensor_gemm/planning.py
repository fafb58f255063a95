"""The plan of a product for tensor cores: which tile, in which order tiles are walked, and what the report says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Final, NamedTuple

from loopwright.autosched.choices import option, pick
from loopwright.autosched.decision import Choice, ChoiceKind, Decision, Roofline
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.tensor_gemm.matmul import Matmul
from loopwright.autosched.gpu.rules.tensor_gemm.tiles import Size, Tile, seconds, slab_cycles, tiles_for
from loopwright.target import describe_gpu

_USUAL_BOARD: Final = "nvidia/nvidia-h200"
_FEW_ROWS: Final = 64  # rows of a result of which tensor cores compute the transposed one


class Plan(NamedTuple):
    """How a product is computed."""

    matmul: Matmul
    size: Size
    tile: Tile
    group: int  # rows of tiles that are walked column by column before the next ones
    blocks: int  # that are there at once, and compute tile after tile; 0 where each tile has a block


def with_figures(machine: GpuMachine) -> GpuMachine:
    """The machine, with the figures of a usual board where only its architecture is known.

    A block for each multiprocessor stays until all tiles are computed, so no fewer must be counted than there are.
    """
    if machine.gpu.name or machine.gpu.is_host:
        return machine
    usual = describe_gpu(_USUAL_BOARD)
    names = ("multiprocessors", "l2_cache_bytes", "memory_bandwidth", "float32_flops", "float16_flops")
    return GpuMachine(replace(machine.gpu, **{name: getattr(usual, name) for name in names}))


def plan_of(matmul: Matmul, machine: GpuMachine, result_itemsize: int) -> Plan:
    """The tile that should be fastest; NotWorthIt where there is none."""
    machine = with_figures(machine)
    if matmul.m <= _FEW_ROWS and matmul.n > matmul.m:
        matmul = matmul.transposed()
    size = Size(matmul.m, matmul.n, matmul.k, matmul.batch, matmul.itemsize, result_itemsize)
    tiles = tiles_for(size, machine, *[1 if side.is_k_major else 64 for side in matmul.sides])
    if not tiles:
        raise NotWorthIt("no tile of the product fits the threads and the memory of a block")
    tile = pick("tile", tiles, lambda tile: seconds(tile, size, machine))
    rows, columns = size.grid(tile)
    blocks = machine.multiprocessors * tile.resident
    together = round((blocks * tile.columns / tile.rows) ** 0.5)  # a square of results at a time
    group = option("group", min(together, rows) if size.tiles(tile) > blocks and columns > 1 else 1, 1, 4, 8, 16)
    return Plan(matmul, size, tile, group, blocks if size.tiles(tile) > blocks else 0)


def note_plan(decision: Decision, plan: Plan, entries: Sequence[object], machine: GpuMachine) -> None:
    """Say why, and what is expected."""
    machine = with_figures(machine)
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
