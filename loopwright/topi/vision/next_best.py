"""next_best: the statements that find the elements of a row one after the other, best first, without sorting all.

    row = NextBest(ib, size, lambda i: scores[i], lambda value: value > least)
    first = row.take()          its index; the next call gives that of the second best

An element is one unsigned integer: its key (`radix_sort.py`) above its index, complemented, so that of equal elements
the first is the greatest. The row is a tournament of two rounds: the best of each block is known, and taking an element
costs one pass over these and one over its block, both in vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Final

from loopwright.ir import Expr, cast, const
from loopwright.ir.intrinsics import ceildiv, maximum, minimum, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.runtime.dtype import DataType
from loopwright.topi.ordering.radix_sort import unsigned_key
from loopwright.topi.parts.sizes import known

_PAIR: Final = DataType("uint64")
_INDEX: Final = DataType("int32")
_LOW: Final = (1 << 32) - 1
_SHORTEST: Final = 32  # elements of a block: four vectors of pairs
_USUAL: Final = 64  # where the length is not known


def has_pairs(dtype: DataType) -> bool:
    """Whether a key of this type leaves room for an index in 64 bits."""
    return dtype.kind in ("float", "int", "uint") and dtype.bits <= 32


class NextBest:
    """The elements of a row that pass, best first; `number` says how many do."""

    def __init__(self, ib: IRBuilder, size: Expr, load: Callable[[Expr], Expr], passes: Callable[[Expr], Expr]) -> None:
        length = known(size)
        self.ib, self.size = ib, size
        self.block = _USUAL if length is None else max(_SHORTEST, 1 << isqrt(max(length, 1)).bit_length() - 1)
        self.blocks = ceildiv(size, self.block)
        self.pairs = ib.allocate(_PAIR, (self.blocks * self.block,), name="pairs")
        self.tops = ib.allocate(_PAIR, (self.blocks,), name="tops")
        self.number = ib.allocate(_INDEX, (1,), name="passed", scope="local")
        self.number[0] = 0
        with ib.for_range(0, size, "i") as i:
            value = ib.let("value", load(i))
            place = const(_LOW, _PAIR) - cast(i, _PAIR)
            pair = (cast(unsigned_key(value, True), _PAIR) << const(32, _PAIR)) | place
            self.pairs[i] = select(passes(value), pair, const(0, _PAIR))
            self.number[0] = self.number[0] + cast(passes(value), _INDEX)
        with ib.for_range(size, self.blocks * self.block, "i") as i:
            self.pairs[i] = const(0, _PAIR)
        with ib.for_range(0, self.blocks, "block") as block:
            self._renew(block)

    def take(self) -> Expr:
        """The index of the best element that was not taken yet, of which there has to be one."""
        best = self._greatest(self.tops, const(0, self.size.dtype), self.blocks)
        place = cast(const(_LOW, _PAIR) - (best & const(_LOW, _PAIR)), self.size.dtype)
        index = self.ib.let("index", maximum(minimum(place, self.size - 1), 0))  # which it is already
        self.pairs[index] = const(0, _PAIR)
        self._renew(self.ib.let("block", index // self.block))
        return index

    def _renew(self, block: Expr) -> None:
        self.tops[block] = self._greatest(self.pairs, block * self.block, const(self.block, self.size.dtype))

    def _greatest(self, pairs: BufferVar, begin: Expr, count: Expr) -> Expr:
        best = self.ib.allocate(_PAIR, (1,), name="best", scope="local")
        best[0] = const(0, _PAIR)
        with self.ib.for_range(0, count, "k") as k:
            best[0] = maximum(best[0], pairs[begin + k])
        return self.ib.let("greatest", best[0])
