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
from loopwright.ir import Buffer, Expr, const
from loopwright.ir.operators import bitwise_xor

SWIZZLE: Final = "swizzle"  # of an allocation: the bytes of its lines, 32, 64 or 128
_PIECE: Final = 16  # bytes that stay together
_LINE: Final = 128  # bytes of shared memory, once around all banks


def swizzled(buffer: Buffer, indices: tuple[Expr, ...], bytes: int, facts: Analyzer) -> tuple[Expr, ...]:
    """Where an element lies of a tile whose last dimension is a line of so many bytes."""
    piece = _PIECE // buffer.dtype.nbytes
    row: Expr = const(0, indices[-1].dtype)
    for index, extent in zip(indices[:-1], buffer.shape[:-1], strict=True):
        row = row * extent + index
    which = facts.simplify(row // (_LINE // bytes) % (bytes // _PIECE))
    number, inside = facts.simplify(indices[-1] // piece), facts.simplify(indices[-1] % piece)
    return (*indices[:-1], bitwise_xor(number, which) * piece + inside)
