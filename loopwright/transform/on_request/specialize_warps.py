"""specialize_warps: the parts of a loop's iterations become the work of different warps, each at its own speed.

    tx = T.launch_thread("threadIdx.x", 160)             →    tx = T.launch_thread("threadIdx.x", 160)
    for i in T.serial(n, {"warp_role_stages": 4}):            S = T.decl_buffer((4, 256), scope="shared")
        S = T.decl_buffer((256,), scope="shared")             …             # mbarriers: full and empty, of 4 slots
        with T.attr("load", "warp_role", 32):                 if tx < 32:
            if tx < 32:                                           for i in range(n):
                S[…] = A[…]                                           wait until slot i % 4 is empty
        with T.attr("add", "warp_role", 128):                         S[i % 4, …] = A[…], by a bulk copy
            if tx >= 32:                                              say that it is full
                … = S[…]                                      else:
                                                                  for i in range(n):
                                                                      wait until slot i % 4 is full
                                                                      … = S[i % 4, …]
                                                                      say that it is empty

Memory that a role fills and others read is one for each of so many iterations, and handed on by barriers in memory
(mbarriers): a reader waits before its first access until the writer has gone on behind its last one, and the writer
waits until all readers of the iteration before in that slot have. What one role alone uses is its own. So every read
comes after its write, and every overwrite after the reads before it, as in the order of the text; other memory that
two roles touch, one of them writing, is refused. Every wait is for something that comes earlier in the order of the
text, so that there is no deadlock: whatever has not happened yet, what comes first of it waits for nothing.

A copy from global memory of what lies side by side becomes a bulk copy, which no thread waits for: it arrives at the
barrier by itself. Threads of one role meet at barriers of their own (`insert_barriers` puts them).

Needs: no blocks, threads launched by attributes (`launch_threads`).  Leaves: no loop of roles. For GPUs that have
barriers in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

from loopwright.analysis.thread_axes import (
    axis_of,
    barrier,
    is_barrier,
    is_of_block,
    is_thread_tag,
    is_virtual_tag,
    scope_of,
    tag_of,
)
from loopwright.analysis.warp_roles import (
    GROUP,
    REGISTERS,
    ROLE,
    STAGES,
    Role,
    block_threads,
    has_roles,
    registers_of,
    role_of,
    role_threads,
    stages_of,
)
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Node,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    any_node,
    any_statement,
    collect,
    collect_statements,
    const,
    decl_buffer,
    deep,
    logical_and,
    pre_order_visit,
    seq,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.ir.async_intrinsics import mbarrier_arrive, mbarrier_init, mbarrier_wait
from loopwright.ir.intrinsics import address_of, if_then_else
from loopwright.ir.machine_intrinsics import HANDOFFS
from loopwright.ir.passes import function_pass
from loopwright.ir.warpgroup_intrinsics import set_max_registers
from loopwright.transform.errors import LoweringError
from loopwright.transform.parts.bulk_copies import with_bulk_copies
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.hoist_guards import hoist_guards
from loopwright.transform.parts.role_places import after_last, before_first, touches
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.parts.tensor_copies import with_tensor_copies
from loopwright.transform.parts.warpgroup_products import (
    PENDING,
    RELEASE,
    swizzle_of,
    tiles_of_warpgroups,
    uses_accumulators,
)

_LANES: Final = 32  # of a warp, where there are such barriers
_REGISTERS: Final = 1 << 16  # of a multiprocessor
_LEAST_REGISTERS: Final = 24  # of a thread
_ROLES: Final = 15  # a barrier for the threads of each, beside that of the block


class CannotSpecialize(LoweringError, ValueError):
    """The parts of a loop cannot be given to different warps.

    The loop holds nothing but parts with roles. Memory that one role writes and others read is shared memory, allocated
    in the loop, and the role that writes it comes first.

    For example:

        from loopwright.script import tir as T
        from loopwright.transform import launch_threads, specialize_warps

        @T.prim_func
        def f(A: T.Buffer((4, 32)), B: T.Buffer((4, 32))):
            for bx in T.thread_binding(1, thread="blockIdx.x"):
                S = T.decl_buffer((32,), scope="shared")
                for i in T.serial(4, annotations={"warp_role_stages": 2}):
                    with T.attr("load", "warp_role", 32):
                        for tx in T.thread_binding(32, thread="threadIdx.x"):
                            S[tx] = A[i, tx]
                    with T.attr("store", "warp_role", 32):
                        for tx in T.thread_binding(32, thread="threadIdx.x"):
                            B[i, tx] = S[31 - tx]

        specialize_warps(launch_threads(f))
    """

    code = "LW0725"

    def __init__(self, problem: str, at: Node, hint: str | None = None) -> None:
        super().__init__(f"specialize_warps: {problem}", at=at, hint=hint)


class _Part(NamedTuple):
    """What a role does in an iteration."""

    role: Role
    node: AttrStmt
    body: Stmt
    reads: frozenset[Var]
    writes: frozenset[Var]
    pointers: frozenset[Var]  # memory that is known by its address

    @property
    def touches(self) -> frozenset[Var]:
        return self.reads | self.writes


class _Launch:
    """The threads of a kernel."""

    def __init__(self, kernel: AttrStmt) -> None:
        self.kernel = kernel
        self.threads: list[AttrStmt] = []  # the axes
        self.maps: list[tuple[Var, Expr]] = []  # of tensors that are copied from, which the host makes


class _Specialize(Rewriter):
    """Finds the loops of roles."""

    def __init__(self, may_alias: bool) -> None:
        self.may_alias = may_alias
        self.launch: _Launch | None = None

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        tag = tag_of(node)
        if tag and not is_virtual_tag(tag):
            return self._launched(node)
        if role_of(node) is not None:
            raise CannotSpecialize("a role stands outside a loop of roles", node, f"annotate the loop with {STAGES}")
        return self.rebuild(node)

    def _launched(self, node: AttrStmt) -> Stmt:
        around = self.launch
        launch = self.launch = around or _Launch(node)
        if is_thread_tag(tag_of(node)):
            launch.threads.append(node)
        is_last = not (isinstance(node.body, AttrStmt) and tag_of(node.body))
        if is_last and has_roles(node.body):
            body = hoist_guards(node.body, axis_of(launch.threads[0]).var) if launch.threads else node.body
            result: Stmt = node.with_(body=_in_kernel(body, launch, self.may_alias))
        else:
            result = self.rebuild(node)
        self.launch = around
        if around is None:
            for var, value in reversed(launch.maps):
                result = LetStmt(var, value, result)
        return result

    def visit_For(self, loop: For) -> Stmt:
        if stages_of(loop) is not None and has_roles(loop.body):
            raise CannotSpecialize("no threads are launched around the loop of roles", loop, "run launch_threads first")
        return self.rebuild(loop)

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr


def _in_kernel(body: Stmt, launch: _Launch, may_alias: bool) -> Stmt:
    """What a kernel does, with its loop of roles given to warps."""
    loops = [loop for loop in collect_statements(body, For) if stages_of(loop) is not None and has_roles(loop.body)]
    parts = [node for node in collect_statements(body, AttrStmt) if role_of(node) is not None]
    if not loops:
        if _is_specialized(body):
            return body
        raise CannotSpecialize("a role stands outside a loop of roles", parts[0], f"annotate the loop with {STAGES}")
    if not launch.threads:
        raise CannotSpecialize("no threads are launched around the loop of roles", loops[0], "run launch_threads first")
    loop = loops[-1]
    for other in loops[:-1]:  # loops around it say how many slots there are of what roles hand on in them
        if not any_statement(other, lambda node: node is loop):
            what = "a kernel has two loops of roles"
            raise CannotSpecialize(what, loop, "make each of them a kernel of its own")
    nest = _nest_of(body, loop)
    result: Stmt = _Put(nest, _Loop(loop, nest, launch, may_alias).specialized()).visit(body)
    return result


def _is_specialized(body: Stmt) -> bool:
    """Whether this pass has made it: each role is a case of a choice."""
    choices = collect_statements(body, IfThenElse)
    made = {case for choice in choices for case in (choice.then_case, choice.else_case) if case is not None}
    return all([node in made for node in collect_statements(body, AttrStmt) if role_of(node) is not None])


def _nest_of(body: Stmt, loop: For) -> Stmt:
    """What each role runs by itself: the loop of roles, or all loops around it with what roles do beside it."""
    while body is not loop:
        if isinstance(body, Allocate) and is_of_block(scope_of(body.buffer_var)) and _is_met(body):
            return body
        if isinstance(body, (Allocate, DeclBuffer, AttrStmt, LetStmt)):
            body = body.body
            continue
        if not isinstance(body, SeqStmt):
            return body
        with_roles = [part for part in body.seq if has_roles(part)]
        if len(with_roles) > 1:
            return body
        body = with_roles[0]
    return body


def _is_met(node: Allocate) -> bool:
    """Whether several roles use the memory."""
    parts = [part for part in collect_statements(node.body, AttrStmt) if role_of(part) is not None]
    return len({role_of(part) for part in parts if _uses_memory(part.body, node.buffer_var)}) > 1


class _Around(NamedTuple):
    """Memory that is allocated around the loop of roles, and that a role fills for others."""

    node: Allocate
    writer: Role
    readers: dict[str, int]  # the threads of each role that reads it
    stages: int
    turn: Buffer  # the slot and the phase
    full: int  # the first of its barriers
    empty: int


class _Loop:
    """One loop of roles, and the nest around it that each role runs by itself."""

    def __init__(self, loop: For, nest: Stmt, launch: _Launch, may_alias: bool) -> None:
        stages = stages_of(loop)
        assert stages is not None
        if stages < 1:
            raise CannotSpecialize(f"the loop has {stages} stages", loop, "give it one at least")
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise CannotSpecialize(f"the loop of roles is {loop.kind.name.lower()}", loop, "make it a serial loop")
        self.loop, self.stages, self.nest, self.launch = loop, stages, nest, launch
        self.thread, self.of_block = axis_of(launch.threads[0]).var, launch.threads[0].value
        self.stored = _stored_in(launch.kernel.body, may_alias)
        self.allocations: list[Allocate | DeclBuffer] = []
        body: Stmt = loop.body
        while isinstance(body, (Allocate, DeclBuffer)):
            self.allocations.append(body)
            body = body.body
        items = body.seq if isinstance(body, SeqStmt) else [body]
        roles = [self._role_of(item) for item in items]
        self.threads = role_threads(launch.kernel.body)
        self._check_threads(roles, launch)
        self.parts = [self._part(*item) for item in zip(items, roles, strict=True)]
        self.beside: dict[str, list[_Part]] = {}  # what roles do outside the loop of roles
        self._find_beside(nest)
        self.own = {item.buffer_var for item in self.allocations if isinstance(item, Allocate)}
        self.staged: dict[Var, _Part] = {}  # memory that roles hand on → who fills it
        self.in_slots: dict[Buffer, Buffer] = {}
        self.turn = decl_buffer((2,), "int32", "turn", scope="local")  # the slot and the phase of an iteration
        self.around: dict[Var, _Around] = {}
        self.places: dict[Var, Expr] = {}  # the slot of each of these, in what is written
        self._find_around(nest, 1)
        self._check_memory()
        self.numbers: dict[tuple[str, str], int] = {}  # of the barriers, in slots
        self.counts: list[int] = []  # arrivals that each of them waits for
        for part in dict.fromkeys(self.staged.values()):
            readers = sum([item.role.threads for item in self._readers(part)])
            for kind, count in (("full", part.role.threads), ("empty", readers)):
                self.numbers[kind, part.role.name] = len(self.counts)
                self.counts.append(count)
        size = len(self.counts) * stages
        for data, around in self.around.items():
            self.around[data] = around._replace(full=size, empty=size + around.stages)
            size += 2 * around.stages
        self.barriers = decl_buffer((max(1, size),), "uint64", "barriers", scope="shared")

    def _role_of(self, statement: Stmt) -> Role:
        role = role_of(statement)
        if role is None:
            raise CannotSpecialize("a statement stands beside the roles of the loop", statement, "make it part of one")
        if role.threads < 1 or role.threads % _LANES:
            raise CannotSpecialize(f"role {role.name} has {role.threads} threads, no whole warps", statement)
        return role

    def _check_threads(self, roles: Sequence[Role], launch: _Launch) -> None:
        """Raise CannotSpecialize where the threads of the block are not those of the roles."""
        names = [role.name for role in roles]
        for role in roles:
            if names.count(role.name) > 1:
                raise CannotSpecialize(f"there are two parts of role {role.name}", self.loop, "make them one")
        if len(roles) > _ROLES:
            raise CannotSpecialize(f"the loop has {len(roles)} roles, and may have {_ROLES}", self.loop)
        axes = [tag_of(axis) for axis in launch.threads]
        if axes != ["threadIdx.x"]:
            problem = f"the block has threads along {', '.join(axes)}, and those of roles lie along threadIdx.x"
            raise CannotSpecialize(problem, self.loop)
        count = block_threads(self.launch.kernel.body)
        if not isinstance(self.of_block, IntImm) or self.of_block.value != count:
            problem = f"the block has {self.of_block} threads, and its roles {count}"
            raise CannotSpecialize(problem, self.loop, "make each loop of roles a kernel of its own")

    def _find_beside(self, statement: Stmt) -> None:
        """What each role does around the loop of roles; nothing but roles stands there."""
        if statement is self.loop:
            return
        if role_of(statement) is not None:
            part = self._part(statement, self._role_of(statement))
            self.beside.setdefault(part.role.name, []).append(part)
        elif isinstance(statement, SeqStmt):
            for item in statement.seq:
                self._find_beside(item)
        elif isinstance(statement, IfThenElse):
            self._check_is_steady(statement.condition, statement)
            for case in (statement.then_case, statement.else_case):
                if case is not None:
                    self._find_beside(case)
        elif isinstance(statement, For) and statement.kind in (ForKind.SERIAL, ForKind.UNROLLED):
            self._check_is_steady(statement.min, statement)
            self._check_is_steady(statement.extent, statement)
            self._find_beside(statement.body)
        elif isinstance(statement, LetStmt):
            self._check_is_steady(statement.value, statement)
            self._find_beside(statement.body)
        elif isinstance(statement, (Allocate, DeclBuffer)):
            self._find_beside(statement.body)
        else:
            raise CannotSpecialize("a statement stands beside the roles of the nest", statement, "make it part of one")

    def _check_is_steady(self, expr: Expr, at: Stmt) -> None:
        """Raise CannotSpecialize where threads may disagree, or what roles meet decides how often they do."""
        if collect(expr, BufferLoad) or collect(expr, Call) or uses_var(expr, lambda var: var is self.thread):
            problem = f"{expr} around the loop of roles is not the same for all threads, whenever they come there"
            raise CannotSpecialize(problem, at, "let it depend on the block and on loops around it alone")

    def _part(self, statement: Stmt, role: Role) -> _Part:
        assert isinstance(statement, AttrStmt)
        body, begin, last = statement.body, self.threads[role.name].begin, block_threads(self.launch.kernel.body)
        end = begin + role.threads
        within = [self.thread >= begin] if begin > 0 else []
        if end < last:
            within.append(self.thread < end)
        if within:  # that a thread is one of the role's
            condition = reduce(logical_and, within)
            is_asked = isinstance(body, IfThenElse) and structural_equal(body.condition, condition)
            if not (isinstance(body, IfThenElse) and is_asked and body.else_case is None):
                problem = f"role {role.name} is not under the condition that a thread is one of {begin} to {end - 1}"
                raise CannotSpecialize(problem, statement, "let launch_threads write it")
            body = body.then_case
        if any_statement(body, is_barrier):
            problem = f"a barrier of the block stands in role {role.name}"
            hint = "leave it away: threads of one role meet by themselves, and lanes of a warp reduce by shuffles"
            raise CannotSpecialize(problem, statement, hint)
        return _Part(role, statement, body, *_memory_of(body))

    # --- memory -----------------------------------------------------------------------------------------------------

    def _find_around(self, statement: Stmt, stages: int) -> None:
        """Memory of the block that is allocated in the nest, and in which roles meet."""
        if statement is self.loop or role_of(statement) is not None:
            return
        if isinstance(statement, SeqStmt):
            for item in statement.seq:
                self._find_around(item, stages)
        elif isinstance(statement, IfThenElse):
            self._find_around(statement.then_case, stages)
            if statement.else_case is not None:
                self._find_around(statement.else_case, stages)
        elif isinstance(statement, (For, LetStmt, Allocate, DeclBuffer)):
            if isinstance(statement, For):
                stages = stages_of(statement) or 1
            if isinstance(statement, Allocate) and is_of_block(scope_of(statement.buffer_var)) and _is_met(statement):
                self._add_around(statement, stages)
            self._find_around(statement.body, stages)

    def _add_around(self, node: Allocate, stages: int) -> None:
        """Memory that one role fills beside the loop of roles; the others only read it."""
        data = node.buffer_var
        users = [part for part in self._everything() if data in part.touches]
        writers = [part for part in users if data in part.writes]
        if not writers:
            return
        who = users[0].role
        others = ", ".join(dict.fromkeys([part.role.name for part in users if part.role != who]))
        problem = f"role {writers[0].role.name} writes {data.name}, which role {others} touches as well"
        if any([part.role != who or part in self.parts for part in writers]):
            hint = "one role writes it before the loop of roles, and comes before those that read it"
            raise CannotSpecialize(f"{problem}, and it is allocated around the loop of roles", writers[0].node, hint)
        self._check_is_seen_once(data, users, problem)
        readers = {part.role.name: part.role.threads for part in users if part.role != who}
        turn = decl_buffer((2,), "int32", "turn", scope="local")
        self.around[data] = _Around(node, who, readers, stages, turn, 0, 0)

    def _everything(self) -> list[_Part]:
        """What all roles do, in the loop and beside it, in the order of the text."""
        parts = [*self.parts, *[part for some in self.beside.values() for part in some]]
        order: dict[Stmt, int] = {}
        for node in collect_statements(self.nest, AttrStmt):
            order.setdefault(node, len(order))
        return sorted(parts, key=lambda part: order[part.node])

    def _check_memory(self) -> None:
        everything = self._everything()
        loads = [*collect(self.loop.min, BufferLoad), *collect(self.loop.extent, BufferLoad)]
        for data in [load.buffer.data for load in loads]:
            for part in self.parts:
                if data in part.writes:  # other roles come to the loop later
                    problem = f"role {part.role.name} writes {data.name}, of which the loop of roles has its iterations"
                    raise CannotSpecialize(problem, self.loop, "read it before the loop")
        takers = [(data, part) for part in everything for data in _tickets_in(part.body)]
        for data, part in takers:
            if any([data is other and part.role != taker.role for other, taker in takers]):
                problem = f"role {part.role.name} and another one take tickets of {data.name}"
                raise CannotSpecialize(f"{problem}, in an order that nobody knows", part.node, "take them in one role")
        for data in dict.fromkeys([data for part in everything for data in part.touches]):
            users = [part for part in everything if data in part.touches]
            writers = [part for part in users if data in part.writes]
            if len({part.role for part in users}) < 2 or not writers or data in self.around:
                continue
            who, others = writers[0], ", ".join([part.role.name for part in users if part is not writers[0]])
            problem = f"role {who.role.name} writes {data.name}, which role {others} touches as well"
            if len(writers) > 1 or who is not users[0]:
                raise CannotSpecialize(problem, who.node, "one role writes it, and comes before those that read it")
            if data not in self.own or not is_of_block(scope_of(data)):
                hint = f"allocate {data.name} in the loop, in shared memory"
                raise CannotSpecialize(f"{problem}, and it is no shared memory of an iteration", who.node, hint)
            self._check_is_seen_once(data, users, problem)
            self.staged[data] = who

    def _check_is_seen_once(self, data: Var, users: Sequence[_Part], problem: str) -> None:
        """Raise CannotSpecialize where a slot has several shapes, or somebody knows where the memory begins."""
        buffers = dict.fromkeys([buffer for part in users for buffer in _buffers_in(part.body) if buffer.data is data])
        if len(buffers) > 1:
            names = ", ".join([buffer.name for buffer in buffers])
            raise CannotSpecialize(f"{problem}, and it is seen as {names}", users[0].node, "use one buffer for it")
        (buffer,) = buffers or [None]
        if buffer is None or buffer.strides or any([data in part.pointers for part in users]):
            what = "has strides" if buffer is not None and buffer.strides else "is known by its address"
            raise CannotSpecialize(f"{problem}, and it {what}", users[0].node, "use a buffer without strides")

    def _readers(self, writer: _Part) -> list[_Part]:
        return [part for part in self.parts if part is not writer and self._handed(writer) & part.touches]

    def _handed(self, writer: _Part) -> frozenset[Var]:
        """The memory that a role hands on."""
        return frozenset([data for data, part in self.staged.items() if part is writer])

    # --- the result -------------------------------------------------------------------------------------------------

    def specialized(self) -> Stmt:
        chain: Stmt | None = None
        count = block_threads(self.launch.kernel.body)
        of_cores = sum([mine.count for mine in self.threads.values() if mine.in_groups])
        registers = self._registers(count, of_cores)
        for name, threads in sorted(self.threads.items(), key=lambda item: -item[1].begin):
            mine = self._projected(self.nest, name)
            assert mine is not None
            if self.nest is not self.loop:
                turns = [around.turn for around in self.around.values() if name in (around.writer.name, *around.readers)]
                mine = self._with_turns(mine, [self.turn, *turns])
            if len(self.threads) > 1:
                mine = AttrStmt(StringImm(name), ROLE, const(threads.count), clone_definitions(mine))
            end = threads.begin + threads.count
            if registers is not None and threads.in_groups:
                if end == of_cores:
                    chain = registers[1] if chain is None else seq([registers[1], chain])
                mine = seq([registers[0], mine])
            chain = mine if chain is None and end == count else IfThenElse(self.thread < end, mine, chain)
        assert chain is not None
        result = seq([*self._init(), chain])
        for item in reversed(self.allocations):
            data = item.buffer_var if isinstance(item, Allocate) else item.buffer.data
            if data in self.staged:
                result = self._staged_allocation(item, result)
        for around in self.around.values():
            buffers = _declared_as(self.nest, around.node.buffer_var)
            for buffer in buffers:
                result = DeclBuffer(self._slots_around(buffer, around), result)
            result = around.node.with_(extents=(const(around.stages), *around.node.extents), body=result)
        if not self.counts and not self.around:
            return result
        memory = self.barriers
        return Allocate(memory.data, memory.dtype, memory.shape, const(True), DeclBuffer(memory, result))

    def _projected(self, statement: Stmt, name: str) -> Stmt | None:
        """What one role does of a nest."""
        if statement is self.loop:
            return next((self._role(part) for part in self.parts if part.role.name == name), None)
        role = role_of(statement)
        if role is not None:
            return next((self._beside(part) for part in self.beside.get(name, ()) if part.node is statement), None)
        if isinstance(statement, SeqStmt):
            items = [self._projected(item, name) for item in statement.seq]
            kept = [item for item in items if item is not None]
            return seq(kept) if kept else None
        if isinstance(statement, IfThenElse):
            then_case = self._projected(statement.then_case, name)
            other = None if statement.else_case is None else self._projected(statement.else_case, name)
            if then_case is None and other is None:
                return None
            nothing = Evaluate(const(0))
            return statement.with_(then_case=nothing if then_case is None else then_case, else_case=other)
        assert isinstance(statement, (For, LetStmt, Allocate, DeclBuffer))
        if isinstance(statement, Allocate) and statement.buffer_var in self.around:
            return self._projected_around(self.around[statement.buffer_var], name)
        if isinstance(statement, DeclBuffer) and statement.buffer.data in self.around:
            return self._projected(statement.body, name)
        body = self._projected(statement.body, name)
        if body is None:
            return None
        if isinstance(statement, For) and STAGES in statement.annotations:
            rest = {key: value for key, value in statement.annotations.items() if key != STAGES}
            return statement.with_(body=body, annotations=rest)
        if isinstance(statement, (Allocate, DeclBuffer)):
            data = statement.buffer_var if isinstance(statement, Allocate) else statement.buffer.data
            if not _uses_memory(body, data):
                return body
        return statement.with_(body=body)

    def _beside(self, part: _Part) -> Stmt:
        """What a role does beside the loop of roles; copies of boxes arrive at the barriers of what they fill."""
        body, name = part.body, part.role.name
        filled = [data for data, around in self.around.items() if around.writer == part.role and data in part.writes]
        for data in filled:
            if part.role.threads == _LANES:
                around = self.around[data]
                full = self._barrier_at(around.full, self.places[data])
                body = self._with_tensor_copies(body, frozenset([data]), self.threads[name].begin, full)
        return body

    def _projected_around(self, around: _Around, name: str) -> Stmt | None:
        """What a role does with memory that is handed on around the loop of roles: once in each slot, in turn."""
        data = around.node.buffer_var
        slot, phase = Var("slot", "int32"), Var("phase", "int32")
        self.places[data] = slot
        body = self._projected(around.node.body, name)
        if body is None or not touches(body, frozenset([data])):
            return body
        memory = frozenset([data])
        full, empty = (self._barrier_at(first, slot) for first in (around.full, around.empty))
        if name == around.writer.name:
            body = after_last(body, memory, Evaluate(mbarrier_arrive(full)))
            body = before_first(body, memory, Evaluate(mbarrier_wait(empty, 1 - phase)))
        else:
            body = after_last(body, memory, self._release(empty, memory))
            body = before_first(body, memory, Evaluate(mbarrier_wait(full, phase)))
        body = _InSlots([data], slot, lambda buffer: self._slots_around(buffer, around)).visit(body)
        body = seq([body, _next_turn(around.turn, around.stages, slot, phase)])
        for k, var in ((1, phase), (0, slot)):
            body = LetStmt(var, BufferLoad(around.turn, (const(k),)), body)
        return body

    def _slots_around(self, buffer: Buffer, around: _Around) -> Buffer:
        result = self.in_slots.get(buffer)
        if result is None:
            result = self.in_slots[buffer] = buffer.with_(shape=(const(around.stages), *buffer.shape))
        return result

    def _with_turns(self, body: Stmt, turns: Sequence[Buffer]) -> Stmt:
        """The iterations of the loop of roles are counted through all the loops around it."""
        zeros = [BufferStore(turn, const(0), (const(k),)) for turn in turns for k in range(2)]
        result: Stmt = seq([*zeros, body])
        for turn in reversed(turns):
            result = Allocate(turn.data, turn.dtype, turn.shape, const(True), DeclBuffer(turn, result))
        return result

    def _release(self, empty: Expr, memory: frozenset[Var]) -> Stmt:
        """The memory is free; tiles that tensor cores read, when they are done."""
        arrive: Stmt = Evaluate(mbarrier_arrive(empty))
        is_tile = any([data in memory for data in tiles_of_warpgroups(self.nest)])
        return AttrStmt(StringImm(""), RELEASE, const(1), arrive) if is_tile else arrive

    def _registers(self, count: int, of_cores: int) -> tuple[Stmt, Stmt] | None:
        """Warpgroups with tensor cores get registers that the others give up: what the two do first."""
        wanted = registers_of(self.loop)
        if wanted is None:
            return None
        if of_cores % GROUP or of_cores in (0, count):
            problem = f"of {count} threads, {of_cores} of roles with tensor cores are to get registers of the others"
            raise CannotSpecialize(problem, self.loop, "give tensor cores to whole warpgroups, and others a role as well")
        at_launch = _REGISTERS // count // 8 * 8
        left = min(at_launch, (at_launch * count - wanted * of_cores) // (count - of_cores) // 8 * 8)
        if left < _LEAST_REGISTERS or wanted < at_launch:
            problem = f"{of_cores} of {count} threads cannot have {wanted} registers"
            most = (at_launch * count - _LEAST_REGISTERS * (count - of_cores)) // of_cores // 8 * 8
            raise CannotSpecialize(problem, self.loop, f"ask for {at_launch} to {most}")
        return Evaluate(set_max_registers(wanted, "inc")), Evaluate(set_max_registers(left, "dec"))

    def _init(self) -> list[Stmt]:
        """The first thread sets the barriers up; the others wait for it."""
        result: list[Stmt] = []
        for number, count in enumerate(self.counts):
            slot = Var("slot", "int32")
            call = Evaluate(mbarrier_init(self._barrier(number, slot), const(count)))
            result.append(For(slot, const(0), const(self.stages), ForKind.SERIAL, call))
        for around in self.around.values():
            for first, count in ((around.full, around.writer.threads), (around.empty, sum(around.readers.values()))):
                slot = Var("slot", "int32")
                call = Evaluate(mbarrier_init(self._barrier_at(first, slot), const(count)))
                result.append(For(slot, const(0), const(around.stages), ForKind.SERIAL, call))
        return [IfThenElse(self.thread.equal(0), seq(result)), barrier()] if result else []

    def _staged_allocation(self, item: Allocate | DeclBuffer, body: Stmt) -> Stmt:
        if isinstance(item, Allocate):
            return item.with_(extents=(const(self.stages), *item.extents), body=body)
        return DeclBuffer(self._staged_buffer(item.buffer), body)

    def _staged_buffer(self, buffer: Buffer) -> Buffer:
        result = self.in_slots.get(buffer)
        if result is None:
            result = self.in_slots[buffer] = buffer.with_(shape=(const(self.stages), *buffer.shape))
        return result

    def _role(self, part: _Part) -> Stmt:
        """The loop of one role."""
        i, begin = self.loop.loop_var, self.threads[part.role.name].begin
        slot: Expr = i % self.stages
        phase: Expr = (i // self.stages % 2).astype("int32")
        counted = (Var("slot", "int32"), Var("phase", "int32"))
        is_nested = self.nest is not self.loop
        if is_nested:
            slot, phase = counted
        is_late, behind = is_nested and self._is_late(part), list[Stmt]()
        body = part.body
        handed = self._handed(part)
        if handed:
            full = self._barrier(self.numbers["full", part.role.name], slot)
            if part.role.threads == _LANES:
                body = self._with_tensor_copies(body, handed, begin, full)
                body = with_bulk_copies(body, handed, self.stored, self.thread, begin, full)
            body = after_last(body, handed, Evaluate(mbarrier_arrive(full)))
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
                body = after_last(body, taken, self._release(empty, taken))
            body = before_first(body, taken, Evaluate(mbarrier_wait(full, phase)))
        body = _InSlots(self.staged, slot, self._staged_buffer).visit(body)
        for item in reversed(self.allocations):
            data = item.buffer_var if isinstance(item, Allocate) else item.buffer.data
            if data not in self.staged and data in part.touches:
                body = item.with_(body=body)
        if is_nested:
            body = seq([body, _next_turn(self.turn, self.stages, slot, phase)])
            for k, var in reversed(list(enumerate(counted))):
                body = LetStmt(var, BufferLoad(self.turn, (const(k),)), body)
        annotations = {key: value for key, value in self.loop.annotations.items() if key not in (STAGES, REGISTERS)}
        return seq([self.loop.with_(body=body, annotations=annotations), *behind])

    def _is_late(self, part: _Part) -> bool:
        """Whether tiles may be free one iteration later: tensor cores then go on without a break."""
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

    def _with_tensor_copies(self, body: Stmt, handed: frozenset[Var], begin: int, full: Expr) -> Stmt:
        """The part of a role with copies of boxes, laid out as warpgroups read them."""
        swizzles = {data: swizzle_of(buffer) for data, buffer in tiles_of_warpgroups(self.nest).items()}
        first = self.thread - begin if begin else self.thread
        copies = with_tensor_copies(body, handed, self.stored, first, swizzles, full)
        self.launch.maps += copies.maps
        return copies.statement

    def _barrier(self, number: int, slot: Expr) -> Expr:
        return self._barrier_at(number * self.stages, slot)

    def _barrier_at(self, first: int, slot: Expr) -> Expr:
        return address_of(BufferLoad(self.barriers, (slot + first,)))


def _next_turn(turn: Buffer, stages: int, slot: Expr, phase: Expr) -> Stmt:
    """Count on: the slot that follows, and the other phase after the last one."""
    is_last = slot.equal(stages - 1)
    values = if_then_else(is_last, const(0), slot + 1), if_then_else(is_last, 1 - phase, phase)
    return seq([BufferStore(turn, value, (const(k),)) for k, value in enumerate(values)])


def _declared_as(body: Stmt, data: Var) -> list[Buffer]:
    """The buffers that memory is seen as."""
    return [node.buffer for node in collect_statements(body, DeclBuffer) if node.buffer.data is data]


class _Put(StmtRewriter):
    """Puts one statement in the place of another one."""

    def __init__(self, old: Stmt, new: Stmt) -> None:
        self.old, self.new = old, new

    def visit(self, node: Node) -> Any:
        return self.new if node is self.old else super().visit(node)


class _InSlots(Rewriter):
    """Accesses of memory that roles hand on go to the slot of the iteration."""

    def __init__(self, staged: Container[Var], slot: Expr, widened: Callable[[Buffer], Buffer]) -> None:
        self.staged, self.slot, self.widened = staged, slot, widened

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer.data not in self.staged or len(load.indices) != len(load.buffer.shape):
            return self.rebuild(load)
        indices = tuple([self.visit(index) for index in load.indices])
        return BufferLoad._make(self.widened(load.buffer), (self.slot, *indices), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        if store.buffer.data not in self.staged:
            return self.rebuild(store)
        indices = tuple([self.visit(index) for index in store.indices])
        return BufferStore(self.widened(store.buffer), self.visit(store.value), (self.slot, *indices), span=store.span)


def _uses_memory(statement: Stmt, data: Var) -> bool:
    def uses(node: Node) -> bool:
        return node is data or (isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data is data)

    return any_node(statement, uses)


def _buffers_in(body: Stmt) -> list[Buffer]:
    accesses: list[BufferLoad | BufferStore] = [*collect(body, BufferLoad), *collect(body, BufferStore)]
    return [access.buffer for access in accesses]


def _memory_of(body: Stmt) -> tuple[frozenset[Var], frozenset[Var], frozenset[Var]]:
    """The memory that is read, written, and known by its address.

    What calls know by an address is read and written, but for what blocks hand on.
    """
    reads: set[Var] = set()
    writes: set[Var] = set()
    pointers: set[Var] = set()

    def look(node: Node) -> bool:
        if isinstance(node, BufferLoad):
            reads.add(node.buffer.data)
        elif isinstance(node, BufferStore):
            writes.add(node.buffer.data)
        elif isinstance(node, Var) and node.dtype.kind == "handle":
            pointers.add(node)
        elif isinstance(node, Call) and node.op.name in HANDOFFS:
            for argument in (*_indices_of(node.args[0]), *node.args[1:]):
                pre_order_visit(argument, look)
            return False
        elif isinstance(node, Call) and node.op.name == "tir.address_of":
            writes.update([load.buffer.data for load in node.args if isinstance(load, BufferLoad)])
        return True

    pre_order_visit(body, look)
    return frozenset(reads), frozenset(writes | pointers), frozenset(pointers)


def _stored_in(kernel: Stmt, may_alias: bool) -> frozenset[Var]:
    """The memory that a kernel stores to, or may."""
    reads, writes, _ = _memory_of(kernel)
    is_global = any([scope_of(data) == "global" for data in writes])
    return reads | writes if may_alias and is_global else writes


def _tickets_in(body: Stmt) -> frozenset[Var]:
    """The counters that tickets are taken of."""
    calls = [call for call in collect(body, Call) if call.op.name == "tir.take_ticket"]
    return frozenset([load.buffer.data for call in calls for load in collect(call, BufferLoad)])


def _indices_of(pointer: Expr) -> Sequence[Expr]:
    load = pointer.args[0] if isinstance(pointer, Call) else None
    return load.indices if isinstance(load, BufferLoad) else ()


@function_pass
@deep
def specialize_warps(func: PrimFunc) -> PrimFunc:
    """The parts of a loop's iterations become the work of different warps, each at its own speed."""
    if not has_roles(func.body):
        return func
    return func.with_(body=_Specialize(not func.attrs.get("tir.noalias", True)).visit(func.body))
