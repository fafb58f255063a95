"""Product: a block that sums products of two operands, and which of its axes plays which part.

    C[b, i, j] += A[b, i, k] * B[b, k, j]        rows i (A, C), columns j (B, C), reduced k (A, B), batch b (all three)

The *column* side is the one whose axis runs along the result's memory: its vectors are added up, each multiplied by one
number of the *row* side. Several axes may play one part (a convolution reduces over channels and both window axes): the
last of each is tiled, the others are loops around the tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopwright.autosched.contiguous import size_of
from loopwright.autosched.facts import Access, Axis, BlockFacts
from loopwright.ir import Mul


@dataclass(frozen=True)
class Product:
    """The parts of a contraction. `row` is None when the result has no axis that only the row side has."""

    facts: BlockFacts
    row_operand: Access
    column_operand: Access
    outer: tuple[Axis, ...]  # batch axes, and further rows and columns: loops around everything
    row: Axis | None
    column: Axis
    reduce: tuple[Axis, ...]  # outermost first; the last is the one the row operand runs along, if it does along one
    prepacks_columns: bool = False  # the operand follows from constants: the compiler packs it, and calls do not
    prepacks_rows: bool = False

    @property
    def is_of_one_buffer(self) -> bool:
        """Whether a matrix is multiplied with itself: a copy of one operand would be taken for the other's too."""
        return self.row_operand.buffer is self.column_operand.buffer

    @property
    def m(self) -> int:
        """How many rows there are; a guess where that is known only when the program runs."""
        return 1 if self.row is None else size_of([self.row])

    @property
    def n(self) -> int:
        """How many columns there are; a guess where that is known only when the program runs."""
        return size_of([self.column])

    @property
    def k(self) -> int:
        """How many products are summed for one cell; a guess where that is known only when the program runs."""
        return size_of(self.reduce)

    @property
    def batch(self) -> int:
        """How many such products there are: of each batch, and of each further row and column."""
        return size_of(self.outer)

    @property
    def knows_m(self) -> bool:
        return self.row is None or self.row.extent is not None

    @property
    def knows_n(self) -> bool:
        return self.column.extent is not None

    @property
    def knows_k(self) -> bool:
        return all(axis.extent is not None for axis in self.reduce)

    @property
    def row_stride(self) -> int:
        """How far apart in memory two rows of the column operand are; 0 when its rows are not vectors."""
        if self.column_operand.stride(self.column.var) != 1:
            return 0
        return abs(self.column_operand.stride(self.reduce[-1].var) or 0)

    @property
    def packs_rows(self) -> bool:
        """Whether the row operand jumps in memory from one step of the reduction to the next, and can be copied."""
        return not self.prepacks_rows and self.jumps and self.row_dimension is not None

    @property
    def jumps(self) -> bool:
        """Whether the row operand lies the other way: neighbours along the reduction are none in memory."""
        return abs(self.row_operand.stride(self.reduce[-1].var) or 0) != 1

    @property
    def column_dimension(self) -> int | None:
        """The dimension of the column operand that is the column axis and nothing else; None when there is none."""
        return self.column_operand.own_dimension(self.column.var)

    @property
    def reduce_dimension(self) -> int | None:
        """The dimension of the row operand that is the innermost reduction and nothing else."""
        return self.row_operand.own_dimension(self.reduce[-1].var)

    @property
    def row_dimension(self) -> int | None:
        """The dimension of the row operand that is the row axis and nothing else; None when there is none."""
        return None if self.row is None else self.row_operand.own_dimension(self.row.var)


def product_of(facts: BlockFacts, of_any_size: bool = False) -> Product | None:
    """The block as a product, or None when it is none; or when a size is unknown, unless it may be of any size."""
    combined = facts.combined
    if not of_any_size and any(axis.extent is None for axis in facts.axes):
        return None
    if combined is None or combined.op != "sum" or not isinstance(combined.value, Mul):
        return None
    first, second = facts.factor(combined.value.a), facts.factor(combined.value.b)
    if first is None or second is None or not facts.write.is_affine:
        return None
    column = next((axis for axis in reversed(facts.spatial) if facts.write.stride(axis.var) == 1), None)
    if column is None:
        return None
    if first.uses(column.var) and second.uses(column.var):
        return None  # a product of whole vectors, element by element
    row_side, column_side = (second, first) if first.uses(column.var) else (first, second)
    if not column_side.uses(column.var):
        return None
    if not all(row_side.uses(axis.var) and column_side.uses(axis.var) for axis in facts.reduce):
        return None
    rows = [axis for axis in facts.spatial if row_side.uses(axis.var) and not column_side.uses(axis.var)]
    row = rows[-1] if rows else None
    outer = tuple(axis for axis in facts.spatial if axis is not row and axis is not column)
    reduce = sorted(facts.reduce, key=lambda axis: (axis.extent != 1, row_side.stride(axis.var) == 1))
    result = Product(facts, row_side, column_side, outer, row, column, tuple(reduce))
    return None if result.column_dimension is None else result  # else it cannot be packed, nor padded
