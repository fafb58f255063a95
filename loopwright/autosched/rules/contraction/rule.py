"""Contraction: the rule for products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopwright.autosched.choices import again, alone, is_chosen
from loopwright.autosched.contiguous import size_of
from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import Access
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.around import epilogue_length
from loopwright.autosched.rules.contraction.dot_steps import explain_dots, schedule_dots
from loopwright.autosched.rules.contraction.dots import (
    ROWS_OF_DOTS,
    SLOWER_DOTS,
    DotTiles,
    choose_dots,
    is_asked_for_ahead,
    runs_along,
)
from loopwright.autosched.rules.contraction.explain import explain, explain_versions
from loopwright.autosched.rules.contraction.few_rows import tiles_for_few_rows
from loopwright.autosched.rules.contraction.folding import fold_rows, foldable_rows
from loopwright.autosched.rules.contraction.more_tiles import more_tiles
from loopwright.autosched.rules.contraction.product import Product, product_of
from loopwright.autosched.rules.contraction.prologue import prologue_length
from loopwright.autosched.rules.contraction.steps import group_of, schedule_product
from loopwright.autosched.rules.contraction.streamed import streamed_tiles
from loopwright.autosched.rules.contraction.tiles import Size, Tiles, tile_candidates
from loopwright.autosched.rules.contraction.turned_columns import turn_columns, turned_columns
from loopwright.autosched.rules.contraction.turned_panels import can_turn
from loopwright.autosched.rules.contraction.turned_result import (
    WORTH_TURNING,
    turn_result,
    turned_product,
    turning_cycles,
)
from loopwright.autosched.rules.contraction.versions import is_square, schedule_one_row, up_to_rows
from loopwright.autosched.rules.row_group import RowGroup
from loopwright.autosched.rules.whole_blocks import schedule_separately
from loopwright.autosched.tile_search import cheapest
from loopwright.ir import Mul
from loopwright.schedule import Schedule


class Contraction:
    """Takes a product with more than one row and column, and the element-wise blocks before and after it."""

    name = "packed GEMM"

    def __init__(self, reads_in_place: bool = False) -> None:
        self.reads_in_place = reads_in_place  # the blocks before the product change no number and no place in memory

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        before = prologue_length(pending, program)
        product = _product(pending[before])
        if product is None or product.k < 2 or 0 in (product.m, product.n, product.batch):
            return 0  # an empty result has no tile to choose
        rows = product.m if before else max(product.m, size_of(foldable_rows(product)))
        if min(rows, product.n) < 2 and (before or not _is_matrix_by_vector(product, pending, program)):
            return 0
        return before + 1 + epilogue_length(pending[before:], program)

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        before = prologue_length(entries, program)
        product = _product(entries[before])
        if product is None:  # a convolution that was taken for one, with its pixels as one axis
            raise NotWorthIt("this is no GEMM")
        product = _with_prepacked(product, program, machine)
        rows = foldable_rows(product) if not before and product.n > 1 else ()
        if rows:
            program, entries = fold_rows(sch, product, rows, entries[1:], program)
            names = " and ".join(axis.name for axis in rows)
            decision.chose(f"{names} are one axis", f"{product.column_operand.buffer.name} is the same for all rows")
            folded = _product(entries[0])
            if folded is None:
                raise NotWorthIt(f"with {names} as one axis it is no GEMM")
            product = _with_prepacked(folded, program, machine)
        size = self._size(product, before)
        with alone():
            tiles = _tiles(size, machine) if min(product.m, product.n) > 1 else None
        turned = turned_product(product) if tiles is not None and not before else None
        if tiles is not None and turned is not None:
            other = self._size(turned, before)
            with alone():
                tiles_of_turned = _tiles(other, machine)
            cycles = WORTH_TURNING * tiles_of_turned.cycles + turning_cycles(product, machine)
            if is_chosen("computed as its transpose", cycles, tiles.cycles):
                program, entry, after = turn_result(sch, product, entries[1:], program)
                for name in after:  # before the product: what a step changes is sought among fewer loops
                    schedule_separately(sch, name, program, machine, decision)
                entries, size, tiles = [entry], other, tiles_of_turned
                product = _product(entry) or turned
                decision.chose(
                    f"{product.facts.name} computed as its transpose",
                    f"{turned.column_operand.buffer.name} lies along {turned.column.name}, and the result is small",
                )
        dots = _dots(product, before, tiles, machine)
        after = [entry.name for entry in entries[1:]]
        if dots is None and tiles is not None and not before and turned_columns(product, tiles, machine):
            name = product.column_operand.buffer.name
            decision.chose(f"{name} transposed first", "its columns are few, and fill few lanes of a vector")
            program, product, copy = turn_columns(sch, product, program)
            schedule_separately(sch, copy, program, machine, decision)
            dots = choose_dots(product, machine)
        if dots is not None:
            schedule_dots(sch, dots, machine, decision)
            explain_dots(dots, machine, decision)
            for name in after:
                schedule_separately(sch, name, program, machine, decision)
            return
        if tiles is None and is_asked_for_ahead(product, machine):
            raise NotWorthIt("a reduction prefetches the matrix, which streams from memory")
        if tiles is None:
            raise NotWorthIt("the reduction is too short for lanes of a vector")
        tiles = again(tiles, lambda: _tiles(size, machine))
        if product.is_of_one_buffer:
            program, product, entries = _with_own_columns(sch, product, entries, before, program)
            before += 1
        group = group_of(sch, product, entries[:before], entries[before + 1 :])
        few = None
        has_versions = not product.knows_m and tiles.packs and not product.prepacks_columns and not before
        has_versions = has_versions and not is_square(product)
        if has_versions:
            schedule_one_row(sch, up_to_rows(sch, product, group, 1), program, machine)
            few = tiles_for_few_rows(size, machine, tiles)
            if few is not None:
                schedule_product(sch, product, up_to_rows(sch, product, group, few.most), program, few.tiles, machine)
        schedule_product(sch, product, group, program, tiles, machine)
        explain(product, tiles, machine, decision)
        if has_versions:
            explain_versions(product, few, decision)

    def _size(self, product: Product, before: int) -> Size:
        """What the sizes of tiles depend on."""
        # What is computed on the way is computed into panels; other names for what lies there need no copy.
        reads_in_place = self.reads_in_place or not before
        if product.is_of_one_buffer and product.packs_rows:
            reads_in_place = False  # the copy of A would be taken for B's, too
        return Size(
            product.m,
            product.n,
            product.k,
            product.batch,
            product.facts.dtype,
            product.row_stride if reads_in_place else 0,
            packs_rows=product.packs_rows,
            is_prepacked=product.prepacks_columns,
            lies_along=product.row_stride > 0,
            can_turn=not before and can_turn(product),
            knows_m=product.knows_m,
            knows_n=product.knows_n,
            knows_k=product.knows_k,
        )


def _tiles(size: Size, machine: Machine) -> Tiles:
    """The tiles that cost least, of all that the product can be done in."""
    own = [*tile_candidates(size, machine), *(streamed_tiles(size, machine) if size.knows_m else [])]
    return cheapest(own, more=lambda: more_tiles(size, machine))


def _dots(product: Product, before: int, tiles: Tiles | None, machine: Machine) -> DotTiles | None:
    """The product as dot products, where that costs less than panels; `tiles` is None where there are none."""
    if before or (tiles is not None and (product.prepacks_columns or product.prepacks_rows)):
        return None
    if tiles is None and is_asked_for_ahead(product, machine):
        return None
    with alone():
        result = choose_dots(product, machine)
    if result is None:
        return None
    # With many rows a tile of dot products is far from what its step should take: every line of B is read unpacked.
    share = SLOWER_DOTS if min(product.m, product.n) > ROWS_OF_DOTS else 1.0
    if tiles is not None and not is_chosen("dot products", share * result.cycles, tiles.cycles):
        return None
    return again(result, lambda: choose_dots(product, machine) or result)


def _product(entry: Entry) -> Product | None:
    return product_of(entry.facts, of_any_size=True) if entry.facts is not None else None


def _is_matrix_by_vector(product: Product, pending: Sequence[Entry], program: Program) -> bool:
    """Whether several dot products share a vector, and no reduction after them wants to run row by row with them."""
    if max(product.m, product.n) < 2 or not runs_along(product):
        return False
    rows = [entry.facts for entry in pending[: RowGroup().take(pending, program)]]
    return sum(facts is not None and facts.is_reduction for facts in rows) < 2


def _with_own_columns(
    sch: Schedule, product: Product, entries: Sequence[Entry], before: int, program: Program
) -> tuple[Program, Product, Sequence[Entry]]:
    """A product of a matrix with itself, with a name of its own for the column operand; the copy is in its prologue."""
    assert product.facts.combined is not None
    value = product.facts.combined.value
    assert isinstance(value, Mul)
    is_first = product.facts.factor(value.a) is product.column_operand
    block = sch.get_block(product.facts.name)
    copy = sch.cache_read(block, product.column_operand.buffer, "global", load=0 if is_first else 1)
    now = program.after(sch)
    names = [entry.name for entry in entries]
    names.insert(before, sch.get(copy).name_hint)
    renamed = [now.entry(name) for name in names]
    result = _product(renamed[before + 1])
    assert result is not None
    return now, result, renamed


def _with_prepacked(product: Product, program: Program, machine: Machine) -> Product:
    """The product, knowing which of its operands the compiler packs since they are constants."""

    def is_early(operand: Access) -> bool:
        return program.is_made_early(operand.buffer, machine.runs_here)

    columns = product.column_dimension is not None and is_early(product.column_operand)
    rows = product.jumps and product.reduce_dimension is not None and is_early(product.row_operand)
    return replace(product, prepacks_columns=columns, prepacks_rows=rows)
