"""RoleLoop: a loop whose iterations are the work of several roles, some of them under way at once.

Memory that a role fills and others read has a slot for each iteration that may be under way. Two mbarriers a slot say
that it is full, and that it is empty again. Where a loop stands in others, its iterations are counted through all of
them, by a slot and a phase that each role keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from loopwright.analysis.thread_axes import is_of_block, scope_of
from loopwright.analysis.warp_roles import REGISTERS, STAGES, Role, role_of, stages_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    collect,
    const,
    decl_buffer,
    seq,
    substitute,
)
from loopwright.ir.async_intrinsics import mbarrier_arrive, mbarrier_init, mbarrier_wait
from loopwright.ir.intrinsics import address_of, if_then_else
from loopwright.ir.warpgroup_intrinsics import fence_proxy_async
from loopwright.transform.parts.bulk_copies import with_bulk_copies
from loopwright.transform.parts.swizzles import SWIZZLE
from loopwright.transform.parts.tensor_copies import stored_boxes, with_tensor_copies, with_tensor_stores
from loopwright.transform.parts.warpgroup_products import (
    PENDING,
    swizzle_of,
    tiles_of_warpgroups,
    uses_accumulators,
)
from loopwright.transform.warp_roles.errors import CannotSpecialize
from loopwright.transform.warp_roles.kernel import Kernel
from loopwright.transform.warp_roles.part import Part, buffers_in, check_is_seen_once
from loopwright.transform.warp_roles.places import after_last, before_first, release
from loopwright.transform.warp_roles.slots import LANES, in_slots, next_turn, turns


class RoleLoop:
    """One loop of roles of a nest."""

    def __init__(self, loop: For, kernel: Kernel) -> None:
        stages = stages_of(loop)
        assert stages is not None
        if stages < 1:
            raise CannotSpecialize(f"the loop has {stages} stages", loop, "give it one at least")
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise CannotSpecialize(f"the loop of roles is {loop.kind.name.lower()}", loop, "make it a serial loop")
        self.loop, self.stages, self.kernel = loop, stages, kernel
        self.allocations: list[Allocate | DeclBuffer] = []
        body: Stmt = loop.body
        while isinstance(body, (Allocate, DeclBuffer)):
            self.allocations.append(body)
            body = body.body
        items = body.seq if isinstance(body, SeqStmt) else [body]
        roles = [self._role_of(item) for item in items]
        for role in roles:
            if roles.count(role) > 1:
                raise CannotSpecialize(f"there are two parts of role {role.name}", loop, "make them one")
        self.parts = [kernel.part(*item) for item in zip(items, roles, strict=True)]
        self.own = {item.buffer_var for item in self.allocations if isinstance(item, Allocate)}
        self.staged: dict[Var, Part] = {}  # memory that roles hand on → who fills it
        self.in_slots: dict[Buffer, Buffer] = {}
        self.turn = decl_buffer((2,), "int32", "turn", scope="local")  # the slot and the phase of an iteration

    def _role_of(self, statement: Stmt) -> Role:
        role = role_of(statement)
        if role is None:
            raise CannotSpecialize("a statement stands beside the roles of the loop", statement, "make it part of one")
        if role.threads < 1 or role.threads % LANES:
            raise CannotSpecialize(f"role {role.name} has {role.threads} threads, no whole warps", statement)
        return role

    # --- memory -----------------------------------------------------------------------------------------------------

    def check_iterations(self) -> None:
        """Raise CannotSpecialize where a role writes what decides how many iterations there are."""
        loads = [*collect(self.loop.min, BufferLoad), *collect(self.loop.extent, BufferLoad)]
        for data in [load.buffer.data for load in loads]:
            for part in self.parts:
                if data in part.writes:  # other roles come to the loop later
                    problem = f"role {part.role.name} writes {data.name}, of which the loop of roles has its iterations"
                    raise CannotSpecialize(problem, self.loop, "read it before the loop")

    def hand_on(self, data: Var, users: Sequence[Part], problem: str) -> None:
        """The memory of an iteration that the first of its users fills, and the others read."""
        if data not in self.own or not is_of_block(scope_of(data)):
            hint = f"allocate {data.name} in the loop, in shared memory"
            raise CannotSpecialize(f"{problem}, and it is no shared memory of an iteration", users[0].node, hint)
        check_is_seen_once(data, users, problem)
        self.staged[data] = users[0]

    def _handed(self, writer: Part) -> frozenset[Var]:
        """The memory that a role hands on."""
        return frozenset([data for data, part in self.staged.items() if part is writer])

    # --- barriers ---------------------------------------------------------------------------------------------------

    def make_barriers(self) -> None:
        """The mbarriers, now that it is known who hands on what."""
        self.numbers: dict[tuple[str, str], int] = {}  # of the barriers, in slots
        self.counts: list[int] = []  # arrivals that each of them waits for
        for part in dict.fromkeys(self.staged.values()):
            handed = self._handed(part)
            readers = sum([item.role.threads for item in self.parts if item is not part and handed & item.touches])
            for kind, count in (("full", part.role.threads), ("empty", readers)):
                self.numbers[kind, part.role.name] = len(self.counts)
                self.counts.append(count)
        self.barriers = decl_buffer((max(1, len(self.counts)) * self.stages,), "uint64", "barriers", scope="shared")

    def init(self) -> list[Stmt]:
        """What sets the barriers up, for one thread."""
        result: list[Stmt] = []
        for number, count in enumerate(self.counts):
            slot = Var("slot", "int32")
            call = Evaluate(mbarrier_init(self._barrier(number, slot), const(count)))
            result.append(For(slot, const(0), const(self.stages), ForKind.SERIAL, call))
        return result

    def _barrier(self, number: int, slot: Expr) -> Expr:
        return address_of(BufferLoad(self.barriers, (slot + number * self.stages,)))

    # --- what becomes of it -----------------------------------------------------------------------------------------

    def allocated(self, body: Stmt) -> Stmt:
        """The nest under the memory that is handed on, and its barriers."""
        for item in reversed(self.allocations):
            data = item.buffer_var if isinstance(item, Allocate) else item.buffer.data
            if data not in self.staged:
                continue
            if isinstance(item, DeclBuffer):
                body = DeclBuffer(self._staged_buffer(item.buffer), body)
                continue
            swizzle = self.swizzles.get(data, 0)
            annotations = {**item.annotations, SWIZZLE: swizzle} if swizzle else item.annotations
            extents = (const(self.stages), *item.extents)
            body = item.with_(extents=extents, annotations=annotations, body=body)
        if not self.counts:
            return body
        memory = self.barriers
        return Allocate(memory.data, memory.dtype, memory.shape, const(True), DeclBuffer(memory, body))

    def _staged_buffers(self) -> dict[Buffer, Buffer]:
        buffers = [item.buffer for item in self.allocations if isinstance(item, DeclBuffer)]
        return {buffer: self._staged_buffer(buffer) for buffer in buffers if buffer.data in self.staged}

    def _staged_buffer(self, buffer: Buffer) -> Buffer:
        result = self.in_slots.get(buffer)
        if result is None:
            result = self.in_slots[buffer] = buffer.with_(shape=(const(self.stages), *buffer.shape))
        return result

    @cached_property
    def read_by_cores(self) -> Mapping[Var, Buffer]:
        """Tiles of tensor cores."""
        return tiles_of_warpgroups(self.loop)

    @cached_property
    def swizzles(self) -> Mapping[Var, int]:
        """Memory that tensor cores read, or of which boxes are stored, and in how many bytes its lines are swizzled."""
        tiles = dict(self.read_by_cores)
        for part in self.parts:
            lines = {buffer.data: swizzle_of(buffer) for buffer in buffers_in(part.body) if buffer.data in self.staged}
            tiles |= stored_boxes(part.body, frozenset(self.staged), lines)
        return {data: swizzle_of(buffer) for data, buffer in tiles.items() if data in self.staged}

    @cached_property
    def read_by_engines(self) -> frozenset[Var]:
        """Memory that is read asynchronously."""
        tiles = dict(self.read_by_cores)
        for part in self.parts:
            tiles |= stored_boxes(part.body, frozenset(self.staged), self.swizzles)
        return frozenset(tiles)

    def of_role(self, name: str) -> Stmt | None:
        """The loop of one role; None where it has no part."""
        part = next((part for part in self.parts if part.role.name == name), None)
        return None if part is None else self._of_part(part)

    def _of_part(self, part: Part) -> Stmt:
        i, begin = self.loop.loop_var, self.kernel.threads[part.role.name].begin
        slot: Expr = i % self.stages
        phase: Expr = (i // self.stages % 2).astype("int32")
        counted = (Var("slot", "int32"), Var("phase", "int32"))
        is_counted = self.is_counted
        if is_counted:
            slot, phase = counted
        is_late, behind = is_counted and self._is_late(part), list[Stmt]()
        first = self.kernel.thread - begin if begin else self.kernel.thread
        handed, swizzles = self._handed(part), self.swizzles
        body = part.body
        if part.role.threads == LANES:
            sources, around = frozenset(self.staged) - handed, [*self.kernel.loops_around(self.loop), self.loop]
            stores = with_tensor_stores(body, sources, self.kernel.accessed_once, first, swizzles, around)
            self.kernel.launch.maps += stores.maps
            body = stores.statement
        if handed:
            full = self._barrier(self.numbers["full", part.role.name], slot)
            if part.role.threads == LANES:
                copies = with_tensor_copies(body, handed, self.kernel.stored, first, swizzles, full)
                self.kernel.launch.maps += copies.maps
                in_lines = handed - {data for data, bytes in swizzles.items() if bytes}  # bulk copies know no swizzle
                body = with_bulk_copies(copies.statement, in_lines, self.kernel.stored, self.kernel.thread, begin, full)
            arrive: Stmt = Evaluate(mbarrier_arrive(full))
            plain = {store.buffer.data for store in collect(body, BufferStore)} & handed
            if plain & self.read_by_engines:
                arrive = seq([Evaluate(fence_proxy_async()), arrive])  # before it, the copy engine sees no stores
            body = after_last(body, handed, arrive)
            empty = self._barrier(self.numbers["empty", part.role.name], slot)
            body = before_first(body, handed, Evaluate(mbarrier_wait(empty, 1 - phase)))
        for writer in dict.fromkeys(self.staged.values()):
            taken = self._handed(writer)
            if writer is part or not taken & part.touches:
                continue
            empty = self._barrier(self.numbers["empty", writer.role.name], slot)
            full = self._barrier(self.numbers["full", writer.role.name], slot)
            if is_late:
                body = seq([body, self._late(empty, slot)])
                behind.append(self._at_end(empty, slot))
            else:
                is_tile = any([data in taken for data in self.read_by_cores])
                body = after_last(body, taken, release(empty, is_tile))
            body = before_first(body, taken, Evaluate(mbarrier_wait(full, phase)))
        body = in_slots(body, self._staged_buffers(), slot)
        for item in reversed(self.allocations):
            data = item.buffer_var if isinstance(item, Allocate) else item.buffer.data
            if data not in self.staged and data in part.touches:
                body = item.with_(body=body)
        if is_counted:
            body = seq([body, next_turn(self.turn, self.stages, slot, phase)])
            for k, var in reversed(list(enumerate(counted))):
                body = LetStmt(var, BufferLoad(self.turn, (const(k),)), body)
        annotations = {key: value for key, value in self.loop.annotations.items() if key not in (STAGES, REGISTERS)}
        return seq([self.loop.with_(body=body, annotations=annotations), *behind])

    # --- turns ------------------------------------------------------------------------------------------------------

    @property
    def is_counted(self) -> bool:
        """Whether iterations are counted through loops around this one."""
        return self.kernel.body is not self.loop

    def counted(self, body: Stmt) -> Stmt:
        """What a role runs, under the memory in which it counts iterations."""
        return turns(self.turn, body)

    def _is_late(self, part: Part) -> bool:
        """Whether tiles may be free one iteration later: tensor cores then go on without a break.

        Nothing else touches the accumulators meanwhile.
        """
        has_iterations = isinstance(self.loop.extent, IntImm) and self.loop.extent.value > 0
        is_open = bool(tiles_of_warpgroups(part.body)) and not uses_accumulators(part.body)
        return self.stages > 1 and has_iterations and is_open

    def _late(self, empty: Expr, slot: Expr) -> Stmt:
        """The slot of the iteration before is free when its group of multiplications is done."""
        before = if_then_else(slot.equal(0), const(self.stages - 1), slot - 1)
        arrive = Evaluate(mbarrier_arrive(substitute(empty, {slot: before})))  # type: ignore[dict-item]
        is_second = self.loop.loop_var > self.loop.min
        return AttrStmt(StringImm(""), PENDING, const(1), IfThenElse(is_second, arrive))

    def _at_end(self, empty: Expr, slot: Expr) -> Stmt:
        """The last slot is free when all is done."""
        following = BufferLoad(self.turn, (const(0),))
        before = if_then_else(following.equal(0), const(self.stages - 1), following - 1)
        arrive = Evaluate(mbarrier_arrive(substitute(empty, {slot: before})))  # type: ignore[dict-item]
        return AttrStmt(StringImm(""), PENDING, const(0), arrive)
