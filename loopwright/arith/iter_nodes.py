"""The nodes of iteration maps: iterators, splits of them, sums of splits; and the plain expressions they stand for."""

from __future__ import annotations

from enum import IntEnum

from loopwright.arith.analyzer import Analyzer
from loopwright.ir import (
    Expr,
    FloorDiv,
    FloorMod,
    Node,
    is_one,
    node,
)
from loopwright.ir.node import derived
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError


class UnknownIterMapLevel(LoopwrightError, ValueError):
    """detect_iter_map was asked for a check level that does not exist.

    For example:

        from loopwright import ir, te
        from loopwright.arith import detect_iter_map

        i = te.var("i")
        detect_iter_map([i], {i: ir.Range(0, 8)}, True, "most")
    """

    code = "LW0904"

    def __init__(self, level: object) -> None:
        super().__init__(
            f"detect_iter_map: unknown check level {level!r}",
            hint="use 'nocheck', 'surjective', 'onto' or 'bijective', or a member of IterMapLevel",
        )


class IterMapLevel(IntEnum):
    """What must hold of the map; the numbers are those users' scripts know."""

    Bijective = 0
    Surjective = 1  # onto: indices may have a stride, and the first and the last block of a division may be cut
    Onto = 2  # and every index steps by 1, and no block is cut
    NoCheck = 3

    @staticmethod
    def of(level: int | str | IterMapLevel) -> IterMapLevel:
        """The level with that number or name, in any case."""
        for known in IterMapLevel:
            if level == known or (isinstance(level, str) and level.lower() == known.name.lower()):
                return known
        raise UnknownIterMapLevel(level)


@node
class IterMark(Node):
    """An iterator that counts from 0 to extent - 1; `source` is a loop variable (less its start) or an IterSumExpr."""

    source: Expr
    extent: Expr


@node
class IterSplitExpr(Expr):
    """(source // lower_factor) % extent * scale."""

    source: IterMark
    lower_factor: Expr
    extent: Expr
    scale: Expr
    dtype: DataType = derived("extent.dtype")


@node
class IterSumExpr(Expr):
    """The sum of the splits, plus `base`, which no iterator takes part in."""

    args: tuple[IterSplitExpr, ...]
    base: Expr
    dtype: DataType = derived("base.dtype")


def plain_expr(e: Expr) -> Expr:
    """The ordinary expression that an iterator expression stands for; any other comes back as it is."""
    if isinstance(e, IterSumExpr):
        total = e.base
        for arg in reversed(e.args):
            total = plain_expr(arg) + total
        return total
    if isinstance(e, IterSplitExpr):
        value = plain_expr(e.source.source)
        value = value if is_one(e.lower_factor) else FloorDiv(value, e.lower_factor)
        if not covers(e):
            value = FloorMod(value, e.extent)
        return value * e.scale
    return e


def covers(split: IterSplitExpr) -> bool:
    """Whether the split takes all digits above its lower factor."""
    if split.extent is split.source.extent:
        return is_one(split.lower_factor)
    return Analyzer().can_prove_equal(split.lower_factor * split.extent, split.source.extent)
