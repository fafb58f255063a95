"""What is taken together with a window: the padding before it, and the element-wise work after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.around import epilogue_length, is_made_for
from loopwright.autosched.rules.sliding_window.window import Window, window_of
from loopwright.ir import And, BinaryExpr, BufferLoad, CompareExpr, Or, Visitor


@dataclass(frozen=True)
class MatchedBlocks:
    """Blocks that are scheduled together."""

    padding: Entry | None  # makes the data, with cells around it
    window: Window
    epilogue: tuple[Entry, ...]

    @property
    def count(self) -> int:
        return int(self.padding is not None) + 1 + len(self.epilogue)


def match_with_fused(pending: Sequence[Entry], program: Program) -> MatchedBlocks | None:
    """The window that the first pending block is, or is the padding of, with the element-wise work after it."""
    first = pending[0].facts
    if first is None:
        return None
    window = window_of(first)
    if window is not None:
        return MatchedBlocks(None, window, _epilogue(pending, program))
    if len(pending) < 2 or pending[1].facts is None or not is_made_for(pending[0], pending[1], program):
        return None
    if first.costly_calls or list(first.write.indices) != [axis.var for axis in first.axes]:
        return None
    window = window_of(pending[1].facts)
    if window is None or window.data.buffer is not first.write.buffer:
        return None
    if not window.is_along and _has_arithmetic(first):
        return None  # padding is read in place there, so that arithmetic would be done for every tap anew
    return MatchedBlocks(pending[0], window, _epilogue(pending[1:], program))


class _Arithmetic(Visitor):
    """Whether values are computed; indices and conditions aside."""

    def __init__(self) -> None:
        self.found = False

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        """Its indices are no values."""

    def visit_CompareExpr(self, expr: CompareExpr) -> None:
        """Nor is a condition."""

    def visit_BinaryExpr(self, expr: BinaryExpr) -> None:
        self.found = self.found or not isinstance(expr, (And, Or))
        self.visit_children(expr)


def _has_arithmetic(facts: BlockFacts) -> bool:
    """Whether a block computes values, and does not only choose or move them."""
    look = _Arithmetic()
    look.visit(facts.store.value)
    return look.found or facts.costly_calls > 0


def _epilogue(pending: Sequence[Entry], program: Program) -> tuple[Entry, ...]:
    return tuple(pending[1 : 1 + epilogue_length(pending, program)])
