"""Handles: what a user holds on to between steps. They survive rewriting, since they name variables, not nodes."""

from __future__ import annotations

from loopwright.ir import Block, Var

BlockKey = Var | str


def block_key(block: Block) -> BlockKey:
    """What identifies a block through every rewrite: its first iteration variable, or its name if it has none."""
    return block.iter_vars[0].var if block.iter_vars else block.name_hint


class BlockRV:
    """A handle of a block."""

    __slots__ = ("key", "name")

    def __init__(self, key: BlockKey, name: str) -> None:
        self.key, self.name = key, name

    def __repr__(self) -> str:
        return f"BlockRV({self.name})"


class LoopRV:
    """A handle of a loop."""

    __slots__ = ("var",)

    def __init__(self, var: Var) -> None:
        self.var = var

    @property
    def name(self) -> str:
        return self.var.name

    def __repr__(self) -> str:
        return f"LoopRV({self.var.name})"


class ExprRV(int):
    """A sampled number; the trace remembers which sample it came from."""

    __slots__ = ()
