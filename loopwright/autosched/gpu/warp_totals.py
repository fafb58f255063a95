"""Warp totals: what the lanes of a warp have, joined by shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.ir import Expr, const
from loopwright.ir.ir_builder import BufferVar
from loopwright.ir.machine_intrinsics import tvm_warp_shuffle_xor

_ALL_LANES: Final = 0xFFFFFFFF


def join_warp(values: BufferVar, at: tuple[Expr, ...], join: Callable[[Expr, Expr], Expr], warp: int) -> None:
    """All lanes get the total of all lanes."""
    for step in reversed(range((warp - 1).bit_length())):
        values[at] = join(values[at], shuffled(tvm_warp_shuffle_xor, values[at], 1 << step, warp))


def shuffled(shuffle: Callable[..., Expr], value: Expr, by: int, warp: int) -> Expr:
    """What a shuffle of the whole warp gives."""
    return shuffle(const(_ALL_LANES, "uint32"), value, const(by), warp, warp)
