"""Plain product: zero points and types that no instruction takes are taken out of a product, once its unit is chosen.

    C += (A - za) * (B - zb)        →    A_sum, B_sum, a copy of A or B in another type; C_dot += A * B; C = C_dot - …

The block that combines is the first of what runs on the sums of a tile, together with the element-wise work after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.program import Program
from loopwright.autosched.rules.contraction.product import Product, product_of
from loopwright.autosched.rules.low_precision.operands import Operands
from loopwright.autosched.rules.low_precision.units import Choice
from loopwright.schedule import BlockRV, Schedule


@dataclass(frozen=True)
class PlainProduct:
    """A product of elements, and the blocks that belong to it."""

    product: Product
    program: Program  # as it is now
    epilogue: tuple[BlockRV, ...]
    converted: tuple[BlockRV | None, BlockRV | None]  # what makes the row and column operand in another type
    sums: tuple[str, ...]  # blocks that sum up an operand


def plain_product(
    sch: Schedule, operands: Operands, choice: Choice, name: str, after: Sequence[BlockRV], program: Program
) -> PlainProduct:
    """The product `name` as the unit takes it; `after` are the blocks that work on its sums."""
    if operands.is_plain and not any(choice.types):
        return PlainProduct(operands.product, program, tuple(after), (None, None), ())
    known = {entry.name for entry in program.entries}
    now, epilogue, new = expand(sch, name, operands.in_order(choice.types), after, program)
    product = _product_named(now, name)
    result = {entry.writes[0]: entry.name for entry in now.entries if entry.name not in known}
    makers = [result.get(operand.buffer) for operand in (product.row_operand, product.column_operand)]
    sums = [other for other in new if other not in makers]
    rows, columns = (None if maker is None else sch.get_block(maker) for maker in makers)
    return PlainProduct(product, now, tuple(epilogue), (rows, columns), tuple(sums))


def expand(
    sch: Schedule, name: str, types: tuple[str, str], after: Sequence[BlockRV], program: Program
) -> tuple[Program, list[BlockRV], list[str]]:
    """Take zero points and other types out of a product; the program then, the blocks that work on its sums, new ones.

    Of the new blocks, the one that combines is the first of those that work on the sums.
    """
    epilogue = list(after)
    known = {entry.name for entry in program.entries}
    sch.expand_product(sch.get_block(name), types)
    now = program.after(sch)
    facts = next(entry.facts for entry in now.entries if entry.name == name)
    if facts is None:
        raise NotWorthIt(f"{name} is not a plain reduction once zero points are taken out")
    new = [entry for entry in now.entries if entry.name not in known]
    combine = next(entry for entry in new if facts.write.buffer in entry.reads)
    if epilogue and not now.is_output(combine.writes[0]):
        sch.compute_inline(sch.get_block(combine.name))
        now = program.after(sch)
    else:
        epilogue.insert(0, sch.get_block(combine.name))
    return now, epilogue, [entry.name for entry in new if entry is not combine]


def _product_named(program: Program, name: str) -> Product:
    facts = next(entry.facts for entry in program.entries if entry.name == name)
    result = product_of(facts) if facts is not None else None
    if result is None:
        raise NotWorthIt(f"{name} is not a GEMM once zero points are taken out")
    return result
