"""The plan of a product for tensor cores: which tile, in which order tiles are walked, what the report says of it."""

from __future__ import annotations

from math import ceil, prod
from typing import Final, NamedTuple

from loopwright.autosched.choices import option, pick
from loopwright.autosched.decision import Choice, ChoiceKind, Decision, Roofline
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import const
from loopwright.autosched.gpu.machine import GpuMachine, with_figures
from loopwright.autosched.gpu.rules.tensor_gemm.epilogue import is_tensor
from loopwright.autosched.gpu.rules.tensor_gemm.matmul import TMA_BYTES, Matmul, Side
from loopwright.autosched.gpu.rules.tensor_gemm.tiles import Size, Tile, seconds, slab_cycles, tiles_for
from loopwright.ir import Buffer

_PARTS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_SHORTEST: Final = 256  # products of a part
_TRANSPOSED_ROWS: Final = 32  # rows of a result of which tensor cores compute the transposed one


class Plan(NamedTuple):
    """How a product is computed."""

    matmul: Matmul
    size: Size
    tile: Tile
    group: int  # rows of tiles that are walked column by column before the next ones
    blocks: int  # that are there at once, and compute tile after tile; 0 where each tile has a block
    splits: int  # parts of the sums, which other blocks compute


def plan_of(matmul: Matmul, machine: GpuMachine, result: Buffer) -> Plan:
    """The tile that should be fastest; NotWorthIt where there is none."""
    machine = with_figures(machine)
    if matmul.m <= _TRANSPOSED_ROWS and matmul.n > matmul.m:
        matmul = matmul.transposed()
    size = Size(matmul.m, matmul.n, matmul.k, matmul.batch, matmul.itemsize, result.dtype.nbytes)
    rows, columns = [1 if side.is_k_major else 64 for side in matmul.sides]
    tiles = tiles_for(size, machine, rows, columns, not matmul.is_transposed and is_tensor(result))
    if not tiles:
        raise NotWorthIt("no tile of the product fits the threads and the memory of a block")
    counts = _splits_of(matmul, size)
    tile = pick("tile", tiles, lambda tile: min([seconds(tile, size, machine, count) for count in counts]))
    splits = pick("splits", counts, lambda count: seconds(tile, size, machine, count))
    whole = size
    if splits > 1:
        size, tile = _of_parts(whole, tile, splits, matmul, machine)
    rows, columns = size.grid(tile)
    blocks = machine.multiprocessors * tile.resident
    together = round((blocks * tile.columns / tile.rows) ** 0.5)  # a square of results at a time
    group = option("group", min(together, rows) if size.tiles(tile) > blocks and columns > 1 else 1, 1, 4, 8, 16)
    return Plan(matmul, whole, tile, group, blocks if size.tiles(tile) > blocks else 0, splits)


def _of_parts(size: Size, tile: Tile, splits: int, matmul: Matmul, machine: GpuMachine) -> tuple[Size, Tile]:
    """The product that computes parts of the sums, and its tile: more bytes a result, fewer slabs."""
    parts = size.split(splits)
    is_boxed = not matmul.is_transposed and parts.n * parts.result_itemsize % TMA_BYTES == 0
    tiles = tiles_for(parts, machine, stores_boxes=is_boxed)
    same = [one for one in tiles if (one.rows, one.columns) == (tile.rows, tile.columns)]
    fitting = [one for one in same if one.resident <= tile.resident]
    if not fitting:
        raise NotWorthIt("the tile of the product does not fit the memory of a block with parts of sums")
    return parts, max(fitting, key=lambda one: one.resident)


def _splits_of(matmul: Matmul, size: Size) -> list[int]:
    """The numbers of parts that the sums may be cut into: whole slabs each."""
    if any([side.is_copied_first for side in matmul.sides]):
        return [1]
    return [1, *[count for count in _PARTS if size.k % (count * size.slab) == 0 and size.k // count >= _SHORTEST]]


def note_plan(decision: Decision, plan: Plan, machine: GpuMachine) -> None:
    """Say why, and what is expected."""
    machine = with_figures(machine)
    tile, size = plan.tile, plan.size
    peak = machine.matrix_flops * (2 / size.itemsize)
    arithmetic, memory = size.flops / peak, size.bytes / machine.bandwidth_of(size.bytes)
    expected = seconds(tile, size, machine, plan.splits) + sum([_copying(side, machine) for side in plan.matmul.sides])
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
    tiles = size.tiles(tile) * plan.splits
    waves = tiles / (machine.multiprocessors * tile.resident)
    where = f"{plan.blocks} blocks that stay" if plan.blocks else f"{tiles} blocks"
    decision.chose(f"{tiles} tiles in {where}, {waves:.2f} waves", "as many multiprocessors as possible end together")
    if plan.splits > 1:
        decision.chose(f"{plan.splits} parts of the sum", "the tiles are too few to keep all multiprocessors busy")
    if plan.group > 1:
        decision.chose(f"groups of {plan.group} rows of tiles", "blocks that run together share operands in L2")
    padded = ceil(size.m / tile.rows) * tile.rows * ceil(size.n / tile.columns) * tile.columns
    decision.tile_use = size.m * size.n / padded
    decision.roofline = Roofline(arithmetic, memory, expected)
    decision.chose(
        f"{expected * 1e6:.1f} µs, {size.flops / expected / 1e12:.0f} TFLOP/s",
        f"{size.flops / expected / peak:.0%} of the peak of tensor cores",
    )


def _copying(side: Side, machine: GpuMachine) -> float:
    """Seconds of the kernel that copies an operand first, where there is one."""
    if not side.is_copied_first:
        return 0.0
    moved = 2 * side.itemsize * prod([const(extent) or 1 for extent in side.access.buffer.shape])
    return machine.launch + moved / machine.bandwidth_of(moved)
