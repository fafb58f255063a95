"""sorted_row: a row that was sorted within a larger program, as those who use it read it."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright.ir import Expr
from loopwright.ir.ir_builder import BufferVar
from loopwright.topi.types import Dim


@dataclass(frozen=True)
class SortedRow:
    """A row that has been sorted: its keys, and where in the row each of them was."""

    keys: BufferVar
    places: BufferVar | None
    half: BufferVar

    def key(self, at: Dim) -> Expr:
        return self.keys[self.half[0], at]

    def place(self, at: Dim) -> Expr:
        assert self.places is not None, "the row was sorted without places"
        return self.places[self.half[0], at]
