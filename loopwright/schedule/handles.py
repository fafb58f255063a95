"""Handles: what a user holds on to between steps. They survive rewriting, since they name variables, not nodes."""

from __future__ import annotations

from enum import Enum
from typing import Final

from loopwright.ir import Block, Var

BlockKey = Var | str


def block_key(block: Block) -> BlockKey:
    """What identifies a block through every rewrite: its first iteration variable, or its name if it has none."""
    return block.iter_vars[0].var if block.iter_vars else block.name_hint


class BlockRV:
    """A handle of a block; made by hand, without arguments, one of none yet, to write a trace with."""

    __slots__ = ("key", "name")

    def __init__(self, key: BlockKey = "", name: str = "") -> None:
        self.key, self.name = key, name

    def same_as(self, other: object) -> bool:
        """Whether both are one handle."""
        return self is other

    def __repr__(self) -> str:
        return f"BlockRV({self.name})"


class LoopRV:
    """A handle of a loop; made by hand, without arguments, one of none yet, to write a trace with."""

    __slots__ = ("var",)

    def __init__(self, var: Var | None = None) -> None:
        self.var = Var("") if var is None else var

    def same_as(self, other: object) -> bool:
        """Whether both are one handle."""
        return self is other

    @property
    def name(self) -> str:
        return self.var.name

    def __repr__(self) -> str:
        return f"LoopRV({self.var.name})"


class Mark(Enum):
    """A place that is no loop: where a block stands now, or in its consumers' expressions."""

    ROOT = -1
    INLINE = -2


# What handles of such places hold; no program has loops with these variables.
MARKS: Final = {Var("root_mark"): Mark.ROOT, Var("inline_mark"): Mark.INLINE}


def mark_var(mark: Mark) -> Var:
    """The variable that handles of a mark hold."""
    return next(var for var, other in MARKS.items() if other is mark)


class ExprRV(int):
    """A sampled number; the trace remembers which sample it came from."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        """Whether both are one sample."""
        return self is other
