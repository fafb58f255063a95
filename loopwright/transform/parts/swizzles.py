"""Swizzles: how tiles lie in shared memory so that columns of them are in different banks.

    128 bytes a line:    16 bytes at address a  →  a ^ (a >> 7 & 7) << 4
     64                                            a ^ (a >> 7 & 3) << 4
     32                                            a ^ (a >> 7 & 1) << 4

It is how tensor copies put lines of so many bytes, and how tensor cores read them. As it moves elements inside a tile
and nothing else, a program is the same with it, as long as all accesses have it: an allocation notes it, and
`flatten_buffers` writes it into the indices.
"""

from __future__ import annotations

from typing import Final

from loopwright.arith import Analyzer
from loopwright.ir import Expr
from loopwright.ir.operators import bitwise_xor

SWIZZLE: Final = "swizzle"  # of an allocation: the bytes of its lines, 32, 64 or 128
_PIECE: Final = 16  # bytes that stay together
_LINE: Final = 128  # bytes of shared memory, once around all banks


def swizzled(index: Expr, itemsize: int, bytes: int, facts: Analyzer) -> Expr:
    """Where the element of a flat index lies, of a tile that begins at a multiple of 8 lines."""
    piece, line = _PIECE // itemsize, _LINE // itemsize
    number, inside = facts.simplify(index // piece), facts.simplify(index % piece)
    which = facts.simplify(index // line % (bytes // _PIECE))
    return bitwise_xor(number, which) * piece + inside
