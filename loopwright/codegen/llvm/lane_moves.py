"""Whether lanes change their places between the loads of a value and the value.

Where none does, each register of a wide vector has its own loads, and can be stored alone. Where some do, LLVM may have
one instruction that stores several registers and interleaves them (`st3`), if it sees the whole.
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.ir.visitor import any_node

_MOVING: Final = frozenset({"tir.vectorlow", "tir.vectorhigh", "tir.vectorcombine"})


def moves_lanes(value: ir.Expr) -> bool:
    """Whether a lane of `value` may come from another lane of what it is made of."""
    return any_node(value, _is_move)


def _is_move(node: ir.Node) -> bool:
    if isinstance(node, ir.BufferLoad):
        return any([index.dtype.lanes > 1 and not _is_in_order(index) for index in node.indices])
    if isinstance(node, ir.Call):
        return isinstance(node.op, ir.Op) and node.op.name in _MOVING
    return isinstance(node, ir.Shuffle)


def _is_in_order(index: ir.Expr) -> bool:
    if isinstance(index, ir.Ramp):
        return isinstance(index.stride, ir.IntImm) and index.stride.value == 1
    return isinstance(index, ir.Broadcast)
