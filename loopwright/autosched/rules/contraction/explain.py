"""What was chosen for a product and why, in words."""

from __future__ import annotations

from loopwright.autosched.decision import ChoiceKind, Decision, Roofline
from loopwright.autosched.machine import Machine, bytes_of, tile_utilisation
from loopwright.autosched.prefetch import explain_weights
from loopwright.autosched.rules.contraction.few_rows import FewRows
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.rules.contraction.tiles import ALL_ROWS, Tiles


def explain(product: Product, tiles: Tiles, machine: Machine, decision: Decision) -> None:
    """Say how a product is tiled, packed and shared out, and how near the limit that should be."""
    rows, columns, k, batch = product.m, product.n, product.k, product.batch
    size = bytes_of(product.facts.dtype)
    used = tiles.mr * tiles.vectors
    decision.chose(
        f"tiles of {tiles.mr} × {tiles.nr}",
        f"{used} of {machine.registers} registers are accumulators; a step loads {tiles.mr + tiles.vectors} times for "
        f"{used} multiply-adds",
        ChoiceKind.TILES,
    )
    decision.tile_use = tile_utilisation(rows, tiles.mr) * tile_utilisation(columns, tiles.nr)
    name = product.column_operand.buffer.name
    if tiles.packs and product.prepacks_columns:
        decision.chose(f"{name} prepacked in panels of {tiles.nr} columns", "it is constant: packed at compile time")
        if product.knows_m:
            explain_weights(-(-columns // tiles.nr) * tiles.nr * k * size, rows, machine, decision)
    elif tiles.packs:
        share = tiles.slab * tiles.nr * tiles.task_columns * size
        decision.chose(
            f"{name} packed in panels of {tiles.nr} columns",
            f"each is read {-(-rows // tiles.mr)} times; {share >> 10} KiB stay in L2 ({machine.l2 >> 10} KiB)",
            ChoiceKind.PACKED,
            name,
        )
        if tiles.turned:
            decision.chose(
                f"{name} transposed in registers", f"tiles of {tiles.turned} × {tiles.turned}, since it lies along k"
            )
    else:
        decision.chose(f"{name} read in place", f"{-(-rows // tiles.mr)} tiles read it, too few to pay for packing")
    if product.packs_rows and not tiles.reads_rows:
        decision.chose(
            f"strips of {product.row_operand.buffer.name} packed",
            f"{tiles.mr} rows at a time, since it is not contiguous along k",
            ChoiceKind.PACKED,
            product.row_operand.buffer.name,
        )
    if product.prepacks_rows:
        decision.chose(f"{product.row_operand.buffer.name} prepacked along k", "it is a constant")
    slabs = -(-k // tiles.slab)
    if slabs > 1:
        few = f"more rows of {name} at a time are more streams than prefetchers follow"
        decision.chose(f"{slabs} slabs of {tiles.slab}", f"all {k} steps of k do not fit L2" if tiles.packs else few)
    tasks = -(-rows // (tiles.mr * tiles.task_rows)) * -(-columns // (tiles.nr * tiles.task_columns)) * batch
    if tiles.threads > 1:
        high = f"{tiles.task_rows * tiles.mr}" if tiles.task_rows < ALL_ROWS else "all rows"
        is_known = all(axis.extent is not None for axis in product.facts.axes)
        decision.chose(
            f"{f'{tasks} ' if is_known else ''}tasks of {high} × {tiles.task_columns * tiles.nr}",
            f"parallelised over {tiles.threads} threads",
        )
    elif machine.cores > 1:
        decision.chose("one thread", "the work costs less than waking other threads", ChoiceKind.ONE_THREAD)
    arithmetic = rows * columns * k * batch / (machine.fma_per_cycle * tiles.lanes) / tiles.threads
    moved = (rows * k + k * columns + rows * columns) * size * batch
    memory = moved / (machine.memory_bytes_per_cycle * min(tiles.threads, machine.memory_cores))
    memory = memory if moved > machine.l2 else moved / machine.l2_bytes_per_cycle / tiles.threads
    decision.roofline = Roofline(arithmetic, memory, tiles.cycles)


def explain_versions(product: Product, few: FewRows | None, decision: Decision) -> None:
    """Say which versions there are beside the one for many rows."""
    name = product.column_operand.buffer.name
    if few is not None:
        decision.chose(
            f"up to {few.most} rows have tiles of {few.tiles.mr} × {few.tiles.nr}, which read {name} in place",
            "packing it would take longer than the GEMM; the number of rows is known at run time",
        )
    decision.chose("a single row (GEMV) is scheduled as a reduction", f"{name} is then read once, whatever its order")
