"""Operands: what a product of bytes or halves multiplies, with or without zero points.

C[i, j] += (int32(A[i, k]) - za) * (int32(B[k, j]) - zb[j])     a product of A and B, which `expand_product` makes plain
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loopwright.autosched.facts import Access, BlockFacts
from loopwright.autosched.rules.contraction.product import Product, product_of
from loopwright.ir import BufferLoad, BufferStore, Cast, Expr, Mul, cast
from loopwright.schedule.primitives.compute.expand_product import Factor, factors_of


@dataclass(frozen=True)
class Operands:
    """A product, and what is odd about the expression it is written as."""

    product: Product
    swapped: bool  # the first factor is the column operand
    is_plain: bool  # it is written as the product of two elements, each cast to the type of the sum
    has_zero_points: bool

    @property
    def types(self) -> tuple[str, str, str]:
        """Of the row operand, the column operand and the sum."""
        product = self.product
        buffers = (product.row_operand.buffer, product.column_operand.buffer)
        return str(buffers[0].dtype), str(buffers[1].dtype), product.facts.dtype

    @property
    def is_einsum(self) -> bool:
        """Whether every index is an axis by itself, and one axis is reduced."""
        product = self.product
        accesses = (product.row_operand, product.column_operand, product.facts.write)
        return len(product.reduce) == 1 and product.row is not None and all(map(_has_axes_alone, accesses))

    def in_order(self, types: tuple[str, str]) -> tuple[str, str]:
        """Types of the row and the column operand, as the factors stand."""
        return (types[1], types[0]) if self.swapped else types


def needs_repacking(product: Product) -> bool:
    """Whether rows and reduction are not the last dimensions of the row operand, in that order: it has to be copied."""
    last = len(product.row_operand.indices) - 1
    return product.jumps or (product.row_dimension, product.reduce_dimension) != (last - 1, last)


def operands_of(facts: BlockFacts) -> Operands | None:
    """What a block multiplies; None when it is no product, or a size is unknown."""
    if any(axis.extent is None or axis.extent < 1 for axis in facts.axes):
        return None
    value = facts.combined.value if facts.combined is not None else None
    factors = factors_of(value) if value is not None else None
    if factors is None or not isinstance(value, Mul):
        return None
    product = product_of(_without_zero_points(facts, factors))
    if product is None or product.is_of_one_buffer:
        return None
    plain = [_is_plain(side) for side in (value.a, value.b)]
    swapped = factors[0].load.buffer is product.column_operand.buffer
    return Operands(product, swapped, all(plain), any(factor.zero is not None for factor in factors))


def _is_plain(side: Expr) -> bool:
    """Whether a factor is an element, cast at most once."""
    return isinstance(side, BufferLoad) or (isinstance(side, Cast) and isinstance(side.value, BufferLoad))


def _without_zero_points(facts: BlockFacts, factors: tuple[Factor, Factor]) -> BlockFacts:
    """The facts of the product of the elements themselves."""
    store = facts.store
    cell = BufferLoad(store.buffer, store.indices)
    one, other = (cast(factor.load, cell.dtype) for factor in factors)
    loads = [factor.load for factor in factors]
    reads = [access for access in facts.reads if any(access.buffer is load.buffer for load in loads)]
    plain = BufferStore(store.buffer, cell + one * other, store.indices)
    return replace(facts, stores=(plain,), reads=tuple(reads))


def _has_axes_alone(access: Access) -> bool:
    forms = [form for form in access.forms if form is not None]
    alone = all(len(form.terms) <= 1 and not form.parts() and set(form.terms.values()) <= {1} for form in forms)
    named = [var for form in forms for var in form.terms]
    return alone and len(named) == len(set(named)) and all(not form.terms or form.const == 0 for form in forms)
