"""Prologue: element-wise blocks that make the column operand of a product, computed on the way into its panels.

W2[k, j] = cast(W[k, j]) * scale[j]
C[i, j] += A[i, k] * W2[k, j]
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.around import is_made_for
from loopwright.autosched.rules.contraction.product import product_of


def prologue_length(pending: Sequence[Entry], program: Program) -> int:
    """How many of the first blocks do nothing but make the column operand of the product after them."""
    for length, entry in enumerate(pending):
        if entry.facts is None:
            return 0
        product = product_of(entry.facts, of_any_size=True)
        if product is not None:
            operand = product.column_operand.buffer
            result = [before.facts.write.buffer for before in pending[:length] if before.facts is not None]
            return length if length and result[-1] is operand and product.column_dimension is not None else 0
        is_last = length + 1 == len(pending)
        if is_last or not entry.facts.writes_in_order or not is_made_for(entry, pending[length + 1], program):
            return 0
    return 0
