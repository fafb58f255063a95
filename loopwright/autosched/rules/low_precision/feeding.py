"""Feeding blocks: element-wise blocks right before a product that nobody else reads (padding, quantisation)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.autosched.program import Entry, Program
from loopwright.ir import Buffer

MOST = 4  # blocks before a product


def feeding_length(pending: Sequence[Entry], program: Program, is_product: Callable[[Entry], bool]) -> int | None:
    """How many of the first blocks feed the product after them; None when there is none.

    They are taken with it, since a rule for products of another kind would take them with it otherwise.
    """
    for length, entry in enumerate(pending[: MOST + 1]):
        if is_product(entry):
            used = {before.name for before in pending[: length + 1]}
            read = [program.readers(buffer) for before in pending[:length] for buffer in before.writes]
            own = all(readers and {reader.name for reader in readers} <= used for readers in read)
            return length if own else None
        if entry.facts is None or not entry.facts.is_injective:
            return None
    return None


def feeding_of(buffer: Buffer, feeding: Sequence[str], product: str, program: Program) -> list[str]:
    """Those of the blocks that make an operand of the product, and nothing that others read, in their order."""
    known = [entry for entry in program.entries if entry.name in feeding]
    wanted, answer = {buffer}, [product]
    for entry in reversed(known):
        result = [other for other in entry.writes if other in wanted]
        if result and all(reader.name in answer for other in result for reader in program.readers(other)):
            answer.insert(0, entry.name)
            wanted.update(entry.reads)
    return [name for name in answer if name != product]
