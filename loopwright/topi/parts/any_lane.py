"""any_lane: whether a condition holds for some of the next few elements, as one comparison."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Final

from loopwright.ir import Expr, Ramp, Shuffle, cast, const
from loopwright.ir.intrinsics import reinterpret
from loopwright.ir.ir_builder import IRBuilder
from loopwright.ir.operators import logical_not
from loopwright.runtime.dtype import DataType

BLOCK: Final = 16  # elements, as bytes that say whether the condition holds: a vector on every machine


def any_lane(ib: IRBuilder, holds: Callable[[Expr], Expr]) -> Expr:
    """Whether `holds` is true of one of the lanes 0 … `BLOCK` - 1."""
    flags = ib.allocate("uint8", (BLOCK,), name="flags", scope="local")
    with ib.for_range(0, BLOCK, "lane", kind="vectorize") as lane:
        flags[lane] = cast(holds(lane), DataType("uint8"))
    words = DataType(f"uint64x{BLOCK // 8}")
    word = ib.let("words", reinterpret(words, flags[Ramp(const(0), const(1), BLOCK)]))
    parts = [Shuffle((word,), (const(k),)) for k in range(BLOCK // 8)]
    return logical_not(reduce(or_, parts).equal(const(0, "uint64")))
