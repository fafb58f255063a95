"""Matmul: a block as D = A · B for tensor cores, which axis is which, and how the operands lie in memory.

    C[b, i, j] += float32(A[b, i, k]) * float32(B[b, k, j])        float16, bfloat16, float8; int32 of int8 and uint8

Tensor cores have 64 rows, and 8 to 256 columns, so where the result has few rows, its columns are theirs: they compute
the transposed product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from loopwright.autosched.facts import Access, Axis, BlockFacts, element_strides
from loopwright.autosched.rules.contraction.product import Product, product_of
from loopwright.ir import BufferLoad, Cast, Expr, Mul, Var
from loopwright.ir.warpgroup_intrinsics import OPERAND_KINDS

TMA_BYTES: Final = 16  # rows of a tensor begin at multiples of it
_KINDS: Final = {kind.dtype: kind for name, kind in OPERAND_KINDS.items() if kind.dtype.nbytes <= 2}
_LEAST_SIDE: Final = 3  # rows and columns: fewer are reductions of rows, and all in one pair of columns of a thread
_LEAST_ROWS: Final = 16  # of the longer side: those of one warp
_LEAST_K: Final = 32  # bytes: those of one wgmma


class Side(NamedTuple):
    """An operand, and the axis that it alone has."""

    access: Access
    axis: Axis
    along: int  # the dimension of the buffer that is the axis
    k: int  # and the one that is the reduction
    is_k_major: bool  # or else its rows in memory run along M or N
    is_aligned: bool  # its rows begin at multiples of 16 bytes

    @property
    def itemsize(self) -> int:
        return self.access.buffer.dtype.nbytes

    @property
    def is_transposed_first(self) -> bool:
        """Whether another kernel transposes it: tensor cores read elements of one byte along K alone."""
        return not self.is_k_major and self.itemsize == 1

    @property
    def is_copied_first(self) -> bool:
        """Whether another kernel copies it to rows that tensor copies can move."""
        return self.is_transposed_first or not self.is_aligned

    @property
    def has_rows_across(self) -> bool:
        """Whether rows of a tile run along M or N."""
        return not self.is_k_major and not self.is_transposed_first


@dataclass(frozen=True)
class Matmul:
    """A product for tensor cores: `m_side` has their rows, `n_side` their columns."""

    product: Product
    m_side: Side
    n_side: Side

    @property
    def facts(self) -> BlockFacts:
        return self.product.facts

    @property
    def k_axis(self) -> Axis:
        return self.product.reduce[0]

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.m_side, self.n_side

    @property
    def m(self) -> int:
        return self.m_side.axis.extent or 0

    @property
    def n(self) -> int:
        return self.n_side.axis.extent or 0

    @property
    def k(self) -> int:
        return self.k_axis.extent or 0

    @property
    def batch(self) -> int:
        return self.product.batch

    @property
    def itemsize(self) -> int:
        """Bytes of an element of both operands."""
        return self.m_side.itemsize

    @property
    def is_transposed(self) -> bool:
        """Whether the transposed product is computed: results that follow each other in memory are rows."""
        return self.m_side.access is self.product.column_operand

    def transposed(self) -> Matmul:
        """The same product with rows and columns exchanged."""
        return Matmul(self.product, self.n_side, self.m_side)


def matmul_of(facts: BlockFacts) -> Matmul | None:
    """The block as a product for tensor cores, rows as in the result; None where it is none."""
    product = product_of(facts)
    if product is None or product.row is None or len(product.reduce) != 1 or product.is_of_one_buffer:
        return None
    if not facts.writes_in_order or not _accumulates(facts):
        return None
    sides = [_side(product, access, axis) for access, axis in _operands(product, product.row)]
    if None in sides:
        return None
    row, column = sides
    assert row is not None and column is not None
    result = Matmul(product, row, column)
    is_small = min(result.m, result.n) < _LEAST_SIDE or max(result.m, result.n) <= _LEAST_ROWS
    is_small = is_small or result.k * result.itemsize < _LEAST_K
    return None if is_small else result


def _operands(product: Product, row: Axis) -> list[tuple[Access, Axis]]:
    return [(product.row_operand, row), (product.column_operand, product.column)]


def _accumulates(facts: BlockFacts) -> bool:
    """Whether products of two elements are added up in the type of tensor cores' accumulators."""
    value = facts.combined.value if facts.combined is not None else None
    if not isinstance(value, Mul):
        return False
    kinds = [_KINDS.get(side.value.dtype) if _is_cast_load(side) else None for side in (value.a, value.b)]  # type: ignore[attr-defined]
    first, second = kinds
    if first is None or second is None or first.family != second.family:
        return False
    return value.dtype is first.accumulator and facts.write.buffer.dtype is first.accumulator


def _is_cast_load(side: Expr) -> bool:
    """Whether a factor is an element that is cast to the type of the sum, and to none before."""
    return isinstance(side, Cast) and isinstance(side.value, BufferLoad)


def _side(product: Product, access: Access, axis: Axis) -> Side | None:
    """An operand of which a tile is a box; None where it takes elements one by one."""
    reduced = product.reduce[0]
    other = product.column if axis is product.row else product.row
    if other is None or access.uses(other.var) or not access.is_affine:
        return None
    along, k = [_dimension(access, var) for var in (axis.var, reduced.var)]
    if along is None or k is None or along == k:
        return None
    strides = element_strides(access.buffer)
    if strides[-1] != 1 or len(strides) - 1 not in (along, k):
        return None
    itemsize = access.buffer.dtype.nbytes
    is_aligned = all([stride is not None and (stride == 1 or stride * itemsize % TMA_BYTES == 0) for stride in strides])
    if access.buffer.strides and not is_aligned:
        return None
    return Side(access, axis, along, k, k == len(strides) - 1, is_aligned)


def _dimension(access: Access, var: Var) -> int | None:
    """The dimension that moves with an axis, step by step, and the only one that does."""
    steps = access.steps(var)
    moved = [at for at, step in enumerate(steps) if step != 0]
    return moved[0] if len(moved) == 1 and steps[moved[0]] == 1 else None
