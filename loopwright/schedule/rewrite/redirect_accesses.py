"""MovedAccesses: every access of one buffer goes to another, its indices changed; the base of rewrites that do more."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import Allocate, Buffer, BufferLoad, BufferRegion, BufferStore, Expr, Rewriter, Stmt


class MovedAccesses(Rewriter):
    """`new` in place of `old`, element `indices` at cell `self.cell(indices)`. Regions of blocks stay as they are."""

    def __init__(self, old: Buffer, new: Buffer) -> None:
        self.old, self.new = old, new

    def cell(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Where an element of the old buffer lies in the new one: at the same indices, unless a rewrite says else."""
        return tuple(indices)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = load.with_(indices=tuple([self.visit(index) for index in load.indices]))
        if load.buffer is not self.old:
            return load
        return BufferLoad._make(self.new, self.cell(load.indices), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        value, indices = self.visit(store.value), tuple([self.visit(index) for index in store.indices])
        if store.buffer is not self.old:
            return store.with_(value=value, indices=indices)
        return BufferStore(self.new, value, self.cell(indices), span=store.span)

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        return region  # blocks see to their regions

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return self.new if buffer is self.old else buffer

    def visit_Allocate(self, allocation: Allocate) -> Stmt:
        body = self.visit(allocation.body)
        if allocation.buffer_var is not self.old.data:
            return allocation.with_(body=body)
        return allocation.with_(buffer_var=self.new.data, extents=self.new.allocated_extents(), body=body)
