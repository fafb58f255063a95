"""Slots: memory of which several iterations are under way, one in each slot, and how a role counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopwright.ir import (
    Allocate,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Expr,
    Rewriter,
    Stmt,
    const,
    seq,
)
from loopwright.ir.intrinsics import if_then_else

LANES: Final = 32  # of a warp, where there are mbarriers


class _InSlots(Rewriter):
    """Accesses of memory that roles hand on go to the slot of the iteration."""

    def __init__(self, buffers: Mapping[Buffer, Buffer], slot: Expr) -> None:
        self.buffers, self.slot = buffers, slot

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer not in self.buffers:
            return self.rebuild(load)
        indices = tuple([self.visit(index) for index in load.indices])
        return BufferLoad._make(self.buffers[load.buffer], (self.slot, *indices), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        if store.buffer not in self.buffers:
            return self.rebuild(store)
        indices = tuple([self.visit(index) for index in store.indices])
        return BufferStore(self.buffers[store.buffer], self.visit(store.value), (self.slot, *indices), span=store.span)


def in_slots(statement: Stmt, buffers: Mapping[Buffer, Buffer], slot: Expr) -> Stmt:
    """The statement with its accesses in one slot of buffers that have a dimension more."""
    result: Stmt = _InSlots(buffers, slot).visit(statement)
    return result


def turns(turn: Buffer, body: Stmt) -> Stmt:
    """The statement under the memory in which a role counts: the slot and the phase, both 0 at first."""
    zeros = [BufferStore(turn, const(0), (const(k),)) for k in range(2)]
    whole: Stmt = DeclBuffer(turn, seq([*zeros, body]))
    return Allocate(turn.data, turn.dtype, turn.shape, const(True), whole)


def next_turn(turn: Buffer, slots: int, slot: Expr, phase: Expr) -> Stmt:
    """Count on: the slot that follows, and the other phase after the last one."""
    is_last = slot.equal(slots - 1)
    values = if_then_else(is_last, const(0), slot + 1), if_then_else(is_last, 1 - phase, phase)
    return seq([BufferStore(turn, value, (const(k),)) for k, value in enumerate(values)])
