"""contraction: products of matrices, batches and transposed operands among them, and the element-wise work after them.

Open `product.py` (what is a product), then `tiles.py` (the sizes, by a cost model) and `steps.py` (the schedule).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopwright.autosched.decision import Decision, Roofline
from loopwright.autosched.facts import Access
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.around import epilogue_length, prologue_length
from loopwright.autosched.rules.contraction.product import Product, product_of
from loopwright.autosched.rules.contraction.steps import group_of, schedule_product
from loopwright.autosched.rules.contraction.tiles import (
    ALL_ROWS,
    FewRows,
    Size,
    Tiles,
    choose_tiles,
    tiles_for_few_rows,
)
from loopwright.autosched.rules.contraction.versions import schedule_one_row, up_to_rows
from loopwright.schedule import Schedule


class Contraction:
    """Takes a product with more than one row and column, and the element-wise blocks before and after it."""

    name = "packed product"

    def __init__(self, reads_in_place: bool = False) -> None:
        self.reads_in_place = reads_in_place  # the blocks before the product change no number and no place in memory

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        before = prologue_length(pending, program)
        product = _product(pending[before])
        if product is None or min(product.rows, product.columns, product.depth) < 2:
            return 0
        return before + 1 + epilogue_length(pending[before:], program)

    def schedule(
        self, sch: Schedule, taken: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        before = prologue_length(taken, program)
        product = _product(taken[before])
        assert product is not None
        product = _with_prepacked(product, program, machine)
        # What is computed on the way is computed into panels; other names for what lies there need no copy.
        pitch = 0 if before and not self.reads_in_place else product.pitch
        size = Size(
            product.rows,
            product.columns,
            product.depth,
            product.copies,
            product.facts.dtype,
            pitch,
            product.packs_rows,
            product.prepacks_columns,
            product.knows_rows,
            product.knows_columns,
            product.knows_depth,
        )
        tiles = choose_tiles(size, machine)
        group = group_of(sch, product, taken[:before], taken[before + 1 :])
        few = None
        has_versions = not product.knows_rows and tiles.packs and not product.prepacks_columns and not before
        if has_versions:
            schedule_one_row(sch, up_to_rows(sch, product, group, 1), program, machine)
            few = tiles_for_few_rows(size, machine, tiles)
            if few is not None:
                schedule_product(sch, product, up_to_rows(sch, product, group, few.most), program, few.tiles)
        schedule_product(sch, product, group, program, tiles)
        _explain(product, tiles, machine, decision)
        if has_versions:
            _explain_versions(product, few, decision)


def _explain_versions(product: Product, few: FewRows | None, decision: Decision) -> None:
    name = product.column_operand.buffer.name
    if few is not None:
        decision.chose(
            f"up to {few.most} rows have tiles of {few.tiles.mr} × {few.tiles.nr}, which read {name} in place",
            "copying it would take longer than the product; how many there are is known when the program runs",
        )
    decision.chose("a single row is summed up as reductions are", f"{name} is then read once, whatever its order")


def _product(entry: Entry) -> Product | None:
    return product_of(entry.facts, of_any_size=True) if entry.facts is not None else None


def _with_prepacked(product: Product, program: Program, machine: Machine) -> Product:
    """The product, knowing which of its operands the compiler packs since they are constants."""

    def is_early(operand: Access) -> bool:
        return program.is_made_early(operand.buffer, machine.runs_here)

    columns = product.column_dimension is not None and is_early(product.column_operand)
    rows = product.jumps and product.reduce_dimension is not None and is_early(product.row_operand)
    return replace(product, prepacks_columns=columns, prepacks_rows=rows)


def _explain(product: Product, tiles: Tiles, machine: Machine, decision: Decision) -> None:
    rows, columns, depth, copies = product.rows, product.columns, product.depth, product.copies
    size = bytes_of(product.facts.dtype)
    used = tiles.mr * tiles.vectors
    decision.chose(
        f"tiles of {tiles.mr} × {tiles.nr}",
        f"{used} of {machine.registers} registers hold sums; a step loads {tiles.mr + tiles.vectors} times for {used} "
        f"multiply-adds",
    )
    name = product.column_operand.buffer.name
    if tiles.packs and product.prepacks_columns:
        decision.chose(f"{name} prepacked in panels of {tiles.nr} columns", "it is a constant: calls find it packed")
    elif tiles.packs:
        share = tiles.slab * tiles.nr * tiles.task_columns * size
        decision.chose(
            f"{name} packed in panels of {tiles.nr} columns",
            f"each is read {-(-rows // tiles.mr)} times; {share >> 10} KiB stay in the second cache "
            f"({machine.l2 >> 10} KiB)",
        )
    else:
        decision.chose(f"{name} read in place", f"{-(-rows // tiles.mr)} tiles read it, too few to pay for a copy")
    if product.packs_rows:
        decision.chose(
            f"strips of {product.row_operand.buffer.name} packed",
            f"{tiles.mr} rows at a time, since it does not run along the reduction",
        )
    if product.prepacks_rows:
        decision.chose(f"{product.row_operand.buffer.name} prepacked along the reduction", "it is a constant")
    slabs = -(-depth // tiles.slab)
    if slabs > 1:
        decision.chose(f"{slabs} slabs of {tiles.slab}", f"all {depth} steps of the panels do not fit the second cache")
    tasks = -(-rows // (tiles.mr * tiles.task_rows)) * -(-columns // (tiles.nr * tiles.task_columns)) * copies
    if tiles.threads > 1:
        high = f"{tiles.task_rows * tiles.mr}" if tiles.task_rows < ALL_ROWS else "all rows"
        is_known = all(axis.extent is not None for axis in product.facts.axes)
        decision.chose(
            f"{f'{tasks} ' if is_known else ''}tasks of {high} × {tiles.task_columns * tiles.nr}",
            f"dealt out to {tiles.threads} threads",
        )
    elif machine.cores > 1:
        decision.chose("one thread", "the work is smaller than waking others")
    arithmetic = rows * columns * depth * copies / (machine.fma_per_cycle * tiles.lanes) / tiles.threads
    moved = (rows * depth + depth * columns + rows * columns) * size * copies
    memory = moved / (machine.memory_bytes_per_cycle * min(tiles.threads, machine.memory_cores))
    memory = memory if moved > machine.l2 else moved / machine.l2_bytes_per_cycle / tiles.threads
    decision.roofline = Roofline(arithmetic, memory, tiles.cycles)
