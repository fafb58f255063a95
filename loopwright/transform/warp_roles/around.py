"""Around: memory that one role fills beside the loops of roles, for others to read in and behind these.

    for t in T.serial(n, {"warp_role_slots": 2}):
        Q = T.decl_buffer((64,), scope="shared")            a slot for each of so many iterations
        with T.attr("load", "warp_role", 32): Q[…] = …      when the slot is empty
        for k in T.serial(m, {"warp_role_stages": 4}):
            …
            with T.attr("use", "warp_role", 128): … = Q[…]  when it is full

It has two mbarriers a slot, as what a loop of roles hands on: readers wait before the first statement that reads it, be
that a loop, and say that it is empty behind the last one. Where no loop says how many slots there are, it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from loopwright.analysis.thread_axes import is_of_block, scope_of
from loopwright.analysis.warp_roles import role_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    LetStmt,
    Stmt,
    Var,
    collect,
    collect_statements,
    const,
    decl_buffer,
    seq,
)
from loopwright.ir.async_intrinsics import mbarrier_arrive, mbarrier_init, mbarrier_wait
from loopwright.ir.intrinsics import address_of
from loopwright.ir.warpgroup_intrinsics import fence_proxy_async
from loopwright.transform.parts.swizzles import SWIZZLE
from loopwright.transform.parts.tensor_copies import with_tensor_copies
from loopwright.transform.parts.warpgroup_products import swizzle_of, tiles_of_warpgroups
from loopwright.transform.warp_roles.errors import CannotSpecialize
from loopwright.transform.warp_roles.kernel import Kernel
from loopwright.transform.warp_roles.part import Part, check_is_seen_once
from loopwright.transform.warp_roles.places import after_last, before_first, release, uses_memory
from loopwright.transform.warp_roles.slots import LANES, in_slots, next_turn, turns


class Around:
    """One such memory, allocated by `node`."""

    def __init__(
        self, node: Allocate, slots: int, kernel: Kernel, users: Sequence[Part], beside: Sequence[Part]
    ) -> None:
        self.node, self.slots, self.kernel = node, slots, kernel
        self.data = node.buffer_var
        self.memory = frozenset([self.data])
        self.writer = users[0].role
        self.readers = {part.role.name: part.role.threads for part in users if part.role != self.writer}
        writers = [part for part in users if self.data in part.writes]
        who = next((part for part in writers if part.role != self.writer or part not in beside), None)
        problem = f"role {(who or writers[0]).role.name} writes {self.data.name}, which other roles touch as well"
        if who is not None:
            hint = "one role fills it beside the loops of roles, and comes before those that read it"
            raise CannotSpecialize(f"{problem}, and it is allocated around the loop of roles", who.node, hint)
        self.buffer = check_is_seen_once(self.data, users, problem)
        tiles = tiles_of_warpgroups(kernel.body)
        self.is_tile = self.data in tiles
        self.swizzle = swizzle_of(self.buffer) if self.is_tile else 0
        self.in_slots = self.buffer.with_(shape=(const(slots), *self.buffer.shape))
        self.turn = decl_buffer((2,), "int32", "turn", scope="local")  # the slot and the phase
        self.barriers = decl_buffer((2 * slots,), "uint64", "barriers", scope="shared")
        self.slot: Expr = const(0)  # of what is written

    def is_for(self, name: str) -> bool:
        """Whether the role fills or reads it."""
        return name == self.writer.name or name in self.readers

    def _barrier(self, kind: str, slot: Expr) -> Expr:
        return address_of(BufferLoad(self.barriers, (slot + (self.slots if kind == "empty" else 0),)))

    def init(self) -> list[Stmt]:
        """What sets the barriers up, for one thread."""
        result: list[Stmt] = []
        for kind, count in (("full", self.writer.threads), ("empty", sum(self.readers.values()))):
            slot = Var("slot", "int32")
            call = Evaluate(mbarrier_init(self._barrier(kind, slot), const(count)))
            result.append(For(slot, const(0), const(self.slots), ForKind.SERIAL, call))
        return result

    def allocated(self, body: Stmt) -> Stmt:
        """The nest under the memory and its barriers."""
        annotations: Mapping[str, object] = self.node.annotations
        if self.swizzle:
            annotations = {**annotations, SWIZZLE: self.swizzle}
        extents = (const(self.slots), *self.node.extents)
        body = DeclBuffer(self.in_slots, body)
        body = self.node.with_(extents=extents, annotations=annotations, body=body)
        memory = self.barriers
        return Allocate(memory.data, memory.dtype, memory.shape, const(True), DeclBuffer(memory, body))

    def counted(self, body: Stmt) -> Stmt:
        """What a role runs, under the memory in which it counts turns."""
        return turns(self.turn, body)

    def of_role(self, name: str, projected: Callable[[], Stmt | None]) -> Stmt | None:
        """What a role does where the memory is allocated, which is `projected` for it: once in each slot, in turn."""
        slot, phase = Var("slot", "int32"), Var("phase", "int32")
        self.slot = slot
        body = projected()
        if body is None or not self.is_for(name):
            return body
        full, empty = self._barrier("full", slot), self._barrier("empty", slot)
        if name == self.writer.name:
            arrive: Stmt = Evaluate(mbarrier_arrive(full))
            if self.is_tile and any([store.buffer.data is self.data for store in collect(body, BufferStore)]):
                arrive = seq([Evaluate(fence_proxy_async()), arrive])  # before it, tensor cores see no stores
            body = after_last(body, self.memory, arrive)
            body = before_first(body, self.memory, Evaluate(mbarrier_wait(empty, 1 - phase)))
        else:
            body = after_last(body, self.memory, release(empty, self.is_tile))
            body = before_first(body, self.memory, Evaluate(mbarrier_wait(full, phase)))
        body = in_slots(body, {self.buffer: self.in_slots}, slot)
        body = seq([body, next_turn(self.turn, self.slots, slot, phase)])
        for k, var in ((1, phase), (0, slot)):
            body = LetStmt(var, BufferLoad(self.turn, (const(k),)), body)
        return body

    def filled(self, part: Part, body: Stmt) -> Stmt:
        """What the role does beside the loops of roles, with copies of boxes that arrive at the barrier."""
        if part.role != self.writer or self.data not in part.writes or part.role.threads != LANES:
            return body
        begin = self.kernel.threads[part.role.name].begin
        first = self.kernel.thread - begin if begin else self.kernel.thread
        full, swizzles = self._barrier("full", self.slot), {self.data: self.swizzle}
        copies = with_tensor_copies(body, self.memory, self.kernel.stored, first, swizzles, full)
        self.kernel.launch.maps += copies.maps
        return copies.statement


def is_met(node: Allocate) -> bool:
    """Whether it is memory of the block that a role fills, and others use."""
    data = node.buffer_var
    if not is_of_block(scope_of(data)):
        return False
    parts = [part for part in collect_statements(node.body, AttrStmt) if role_of(part) is not None]
    users = [part for part in parts if uses_memory(part.body, data)]
    stores = [store for part in users for store in collect(part.body, BufferStore)]
    return len({role_of(part) for part in users}) > 1 and any([store.buffer.data is data for store in stores])


__all__ = ["Around", "is_met"]
