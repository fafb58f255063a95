"""What the rule chose, in words."""

from __future__ import annotations

from loopwright.autosched.decision import ChoiceKind, Decision, Roofline
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.rules.low_precision.plain_product import PlainProduct
from loopwright.autosched.rules.low_precision.row_band import Band
from loopwright.autosched.rules.low_precision.row_band_sizes import BandSizes
from loopwright.autosched.rules.low_precision.sizes import Sizes
from loopwright.autosched.rules.low_precision.units import Choice


def explain(
    plain: PlainProduct, choice: Choice, sizes: Sizes, early: tuple[bool, bool], machine: Machine, decision: Decision
) -> None:
    """Note the instruction, the sizes and why they are so, and what speed is expected."""
    product, unit = plain.product, sizes.unit
    rows, columns, k = product.m, product.n, product.k
    rate = unit.products_per_cycle(machine)
    decision.chose(unit.instruction, f"{rate:.0f} multiply-adds per cycle; a lane reduces {unit.group} consecutive k")
    for operand, new in zip((product.row_operand, product.column_operand), choice.types, strict=True):
        if new:
            takes = f"the instruction takes {unit.a} and {unit.b}"
            decision.chose(f"{operand.buffer.name} is converted to {new}", takes)
    if plain.sums:
        decision.chose(f"{', '.join(plain.sums)}", "zero points and shifts are applied through row and column sums")
    if unit.is_tile:
        why = "2 × 2 accumulators of 16 × 16 stay in tile registers"
        decision.chose(f"blocks of {sizes.mr} × {sizes.nr}", why, ChoiceKind.TILES)
    else:
        vectors = sizes.nr // unit.lanes
        used = sizes.mr * vectors
        decision.chose(
            f"blocks of {sizes.mr} × {sizes.nr}",
            f"{used} of {machine.registers} registers are accumulators; a step loads {sizes.mr + vectors} times for "
            f"{used} dot products",
            ChoiceKind.TILES,
        )
    name = product.column_operand.buffer.name
    if early[1]:
        decision.chose(f"{name} prepacked in panels of {sizes.panel} columns", "it is constant: packed at compile time")
    else:
        offset = "before all tasks" if sizes.task_rows < rows else "by the task that reads them"
        why = f"{unit.group} rows interleaved, {offset}"
        decision.chose(f"{name} packed in panels of {sizes.panel} columns", why, ChoiceKind.PACKED, name)
    padded = sizes.padded(rows, columns, k)
    if padded != (rows, columns, k):
        decision.chose(f"padded to {' × '.join(map(str, padded))}", "to a multiple of the block; zeros add nothing")
    if sizes.slab < k:
        decision.chose(f"slabs of {sizes.slab}", f"all {k} steps of k do not fit the cache")
    if sizes.threads > 1:
        decision.chose(
            f"{sizes.tasks} tasks of {sizes.task_rows} × {sizes.task_columns}",
            f"parallelised over {sizes.threads} threads",
        )
    elif machine.cores > 1:
        decision.chose("one thread", "the work costs less than waking other threads", ChoiceKind.ONE_THREAD)
    arithmetic = rows * columns * k * product.batch / rate / sizes.threads
    moved = (rows * k * bytes_of(unit.a) + k * columns * bytes_of(unit.b) + rows * columns * 4) * product.batch
    cores = min(sizes.threads, machine.memory_cores)
    memory = moved / (machine.memory_bytes_per_cycle * cores)
    memory = memory if moved > machine.l2 else moved / machine.l2_bytes_per_cycle / sizes.threads
    decision.roofline = Roofline(arithmetic, memory, sizes.cycles)


def explain_band(band: Band, sizes: BandSizes, is_prepacked: bool, machine: Machine, decision: Decision) -> None:
    """Note what a convolution on bands does, and what speed is expected."""
    unit, image, weights = sizes.unit, band.image.buffer, band.weights.buffer
    rate = unit.products_per_cycle(machine)
    window = " × ".join(map(str, band.places))
    why = f"all taps of the {window} window are read from the band; no im2col matrix"
    if band.is_flat:
        why = "its pixels are one contiguous line"
    decision.chose(f"row bands of {image.name}, {unit.group} channels interleaved", why)
    decision.chose(unit.instruction, f"{rate:.0f} multiply-adds per cycle; a lane reduces {unit.group} consecutive k")
    message = "it is constant: packed at compile time" if is_prepacked else "before all tasks"
    kind = ChoiceKind.OTHER if is_prepacked else ChoiceKind.PACKED
    decision.chose(f"{weights.name} packed in tiles of 16 filters by {sizes.k} channels", message, kind, weights.name)
    lines = "" if band.is_flat else f" of {sizes.lines} lines"
    decision.chose(
        f"calls for {sizes.filters} filters and {sizes.pixels} pixels{lines}",
        "accumulators stay in tile registers over the window and all channels",
    )
    padded, real = (sizes.all_filters, sizes.channels), (band.filter.extent, band.channel.extent)
    if padded != real:
        decision.chose(f"{padded[0]} filters, {padded[1]} channels", "to a multiple of the tile; zeros add nothing")
    if sizes.threads > 1:
        threads = f"parallelised over {sizes.threads} threads; each packs the row bands it reads"
        decision.chose(f"{sizes.tasks} tasks", threads)
    elif machine.cores > 1:
        decision.chose("one thread", "the work costs less than waking other threads", ChoiceKind.ONE_THREAD)
    pixels = band.lines * band.line * band.batch
    products = pixels * (band.filter.extent or 1) * band.k
    read = pixels * (band.channel.extent or 1) * bytes_of(unit.b) + sizes.all_filters * band.k * bytes_of(unit.a)
    memory = (read + pixels * (band.filter.extent or 1)) / machine.l2_bytes_per_cycle / sizes.threads
    decision.roofline = Roofline(products / rate / sizes.threads, memory, sizes.cycles)
