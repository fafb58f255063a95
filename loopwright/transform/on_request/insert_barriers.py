"""insert_barriers: threads wait for each other where one reads or overwrites what another has written.

    tx = T.launch_thread("threadIdx.x", 32)        →    tx = T.launch_thread("threadIdx.x", 32)
    for k in range(8):                                  for k in range(8):
        S[tx] = A[k, tx]                                    T.tvm_storage_sync("shared")
        B[k, tx] = S[31 - tx]                               S[tx] = A[k, tx]
                                                            T.tvm_storage_sync("shared")
                                                            B[k, tx] = S[31 - tx]

The program is read in the order of its text, each thread by itself; a barrier goes right before the first statement
that touches a cell which another thread of the block may have touched since the last barrier, one of the two writing.
The end of a loop comes before its start. What all threads read from one cell of shared memory is the same for all of
them, and as good as a parameter of the kernel. A barrier is never put where only some threads come by: such a statement
is one, and is an error when two threads meet inside it. Memory that is allocated in a loop is the same in each
iteration (`hoist_shared_memory` runs first): what one iteration reads, the next one overwrites only after a barrier.

Needs: no blocks, threads launched by attributes (`launch_threads`).  Leaves: no two threads that touch one cell without
a barrier between. For targets that have threads; not a pass of CPUs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.analysis.accesses import Access, Program, accesses_of, disturb
from loopwright.analysis.effects import is_pure_call
from loopwright.analysis.thread_axes import (
    axis_of,
    barrier,
    is_barrier,
    is_of_block,
    is_of_warp,
    is_thread_tag,
    is_warp_call,
    scope_of,
    tag_of,
    uses,
)
from loopwright.analysis.thread_races import may_meet
from loopwright.analysis.thread_work import has_barrier
from loopwright.analysis.warp_roles import role_of
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
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
    SeqStmt,
    Stmt,
    Var,
    While,
    any_node,
    any_statement,
    collect,
    deep,
    pre_order_visit,
    seq,
)
from loopwright.ir.annotations import TOUCHED
from loopwright.ir.async_intrinsics import role_barrier
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import LoweringError
from loopwright.transform.on_request.hoist_shared_memory import hoist_shared_memory
from loopwright.transform.parts.purity import has_data
from loopwright.transform.parts.statements import StmtRewriter, flat_seq

_ENGINES: Final = frozenset(
    f"tir.{name}" for name in "bulk_copy_async tensor_copy_async tensor_store_async wgmma wgmma_wait".split()
)


class NeedsBarrier(LoweringError, ValueError):
    """Two threads meet where no barrier can stand: in one statement, or where only some threads come by.

    A barrier waits for all threads of the block, so none can be put under a condition or into a loop that differs
    between threads. Split what stands there in two, with the barrier between.

    For example:

        from loopwright.script import tir as T
        from loopwright.transform import insert_barriers

        @T.prim_func
        def f(A: T.Buffer(32), B: T.Buffer(32)):
            tx = T.launch_thread("threadIdx.x", 32)
            S = T.decl_buffer((32,), scope="shared")
            if tx < 16:
                S[tx] = A[tx]
                B[tx] = S[15 - tx]

        insert_barriers(f)
    """

    code = "LW0721"

    def __init__(self, statement: Stmt, one: Access, other: Access) -> None:
        name = one.cell[0].name
        super().__init__(
            f"insert_barriers: threads meet at {name} in one statement, or where only some of them arrive",
            at=statement,
            why=f"one thread writes an element of {name} that another one touches, and a barrier waits for all threads",
            hint="move the two statements under conditions of their own, so that a barrier can stand between",
            fields={"buffer": name, "writes": one.writes and other.writes},
        )


class _InsertBarriers(StmtRewriter):
    """Finds the launches of threads."""

    def __init__(self, program: Program, steady: set[Var]) -> None:
        self.program, self.steady = program, steady

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if not is_thread_tag(tag_of(node)):
            return self.rebuild(node)
        return _WithoutRegions().visit(_Kernel(self.program, self.steady).insert(node))


class _WithoutRegions(StmtRewriter):
    """Regions that calls touch are told to this pass; later ones change the buffers."""

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        return self.visit(node.body) if node.attr_key == TOUCHED else self.rebuild(node)


class Earlier(NamedTuple):
    """An access since the last barrier, with the loops around of which it may belong to an earlier iteration.

    Of loops in `just` it is the iteration right before.
    """

    access: Access
    carried: frozenset[Var]
    just: frozenset[Var] = frozenset()

    def in_next(self, loop: Var) -> Earlier:
        """The same, seen from the next iteration of a loop."""
        just = self.just - {loop} if loop in self.carried else self.just | {loop}
        return Earlier(self.access, self.carried | {loop}, just)

    def after(self, loop: Var) -> Earlier:
        """The same, seen from behind a loop."""
        return Earlier(self.access, self.carried - {loop}, self.just - {loop})


class _Kernel:
    """What the threads of one launch have touched since the last barrier, in `open`."""

    def __init__(self, program: Program, steady: set[Var], role: tuple[int, int] | None = None) -> None:
        self.program, self.steady = program, steady
        self.role = role  # number and threads of the role whose threads meet each other; None: those of the block
        self.by_node: dict[Node, list[Access]] = {}
        for access in program.accesses:
            if scope_of(access.cell[0].data) != "local":  # registers, which no other thread reaches
                self.by_node.setdefault(access.node, []).append(access)
        for access in program.handoffs:
            assert access.call is not None
            self.by_node.setdefault(access.call, []).append(access)
        for access in program.by_calls:
            statement = access.instance.statement
            is_held = is_of_warp(scope_of(access.cell[0].data))  # by the lanes together, who touch it at once
            if is_warp_call(statement) and isinstance(statement, Evaluate) and not is_held:
                access.exact = False  # a lane touches some of these cells
                self.by_node.setdefault(statement.value, []).append(access)
        self.open: dict[Earlier, None] = {}
        self.around: tuple[Var, ...] = ()  # the loops that all threads run together, outermost first
        self.differ: set[Var] = set()  # variables that differ between threads
        self.known: dict[tuple[Earlier, Access, tuple[Var, ...], bool], bool] = {}
        self.touched: dict[Node, list[Access]] = {}  # loops are looked at until nothing is added

    def insert(self, statement: Stmt) -> Stmt:
        if self.is_own_barrier(statement):
            self.open = {}
            return statement
        if isinstance(statement, IfThenElse) and role_of(statement.then_case) is not None:
            return self.roles(statement)
        if isinstance(statement, AttrStmt):
            if is_thread_tag(tag_of(statement)):
                self.differ.add(axis_of(statement).var)
            return statement.with_(body=self.insert(statement.body))
        if isinstance(statement, SeqStmt):
            return flat_seq(statement, self.insert)
        if isinstance(statement, (Allocate, AllocateConst, DeclBuffer)):
            return statement.with_(body=self.insert(statement.body))
        if isinstance(statement, AssertStmt):
            return self.asks_first(statement, statement.condition)
        if isinstance(statement, LetStmt):
            if statement.var not in self.steady and self.is_theirs(statement.value):
                self.differ.add(statement.var)
            return self.asks_first(statement, statement.value)
        if isinstance(statement, For) and not self.accesses(statement) and not has_barrier(statement):
            return statement  # nobody meets anybody there
        if isinstance(statement, For) and statement.kind in (ForKind.SERIAL, ForKind.UNROLLED):
            if self.is_shared_loop(statement):
                return self.loop(statement)
        if isinstance(statement, IfThenElse) and not self.is_theirs(statement.condition):
            return self.choice(statement)
        return self.whole(statement)

    def barrier(self) -> Stmt:
        return barrier() if self.role is None else Evaluate(role_barrier(*self.role))

    def is_own_barrier(self, statement: Stmt) -> bool:
        """Whether all threads that meet each other meet there."""
        if self.role is None:
            return is_barrier(statement)
        call = statement.value if isinstance(statement, Evaluate) else None
        if not isinstance(call, Call) or call.op.name != "tir.role_barrier":
            return False
        threads = call.args[1]
        return isinstance(threads, IntImm) and threads.value == self.role[1]

    def roles(self, choice: IfThenElse) -> Stmt:
        """Each role by itself: `specialize_warps` has put what they wait for from one another."""
        mine = self.accesses(choice)
        needed = any([self.meet(one, other) for one in self.open for other in mine])
        own = {Earlier(access, frozenset()): None for access in mine}
        self.open = own if needed else self.open | own
        parts: list[IfThenElse] = []
        last: Stmt | None = choice
        while isinstance(last, IfThenElse):
            parts.append(last)
            last = last.else_case
        result = None if last is None else self.role_part(last, len(parts) + 1)
        for number, part in reversed(list(enumerate(parts, 1))):
            result = part.with_(then_case=self.role_part(part.then_case, number), else_case=result)
        assert result is not None
        return seq([self.barrier(), result]) if needed else result

    def role_part(self, statement: Stmt, number: int) -> Stmt:
        role = role_of(statement)
        assert role is not None and isinstance(statement, AttrStmt)
        threads = _Kernel(self.program, self.steady, (number, role.threads))
        threads.differ = set(self.differ)
        return statement.with_(body=threads.insert(statement.body))

    def is_theirs(self, expr: Expr) -> bool:
        """Whether the value may differ between threads."""
        return uses(expr, self.differ) or has_data(expr)

    def loop(self, loop: For) -> Stmt:
        """The body once for the first iteration, and again as the one after it, until nothing is added."""
        before, outside = self.open, self.around
        self.around, self.open = (*outside, loop.loop_var), {}
        body = self._iterations(loop, {})
        if body is loop.body and not has_barrier(body) and not any_statement(body, self.is_own_barrier):
            self.open, self.around = before, outside
            return self.whole(loop)  # one barrier before the loop, rather than one in each iteration
        # What iterations need between them is there in any case; it may serve what comes before the loop, too.
        loop = loop.with_(body=body)
        self.open = dict(before)
        body = self._iterations(loop, before)
        self.around = outside
        self.open = {item.after(loop.loop_var): None for item in self.open} | before
        return loop.with_(body=body)

    def _iterations(self, loop: For, before: dict[Earlier, None]) -> Stmt:
        body = self.insert(loop.body)
        seen: dict[Earlier, None] = {}
        while True:
            again = {item.in_next(loop.loop_var): None for item in self.open}
            is_new = any([item not in seen for item in again])
            seen |= again
            self.open = before | again
            changed = self.insert(body)
            if changed is body and not is_new:
                return body
            body = changed

    def choice(self, choice: IfThenElse) -> Stmt:
        before = dict(self.open)
        then_case = self.insert(choice.then_case)
        after, self.open = self.open, before
        else_case = None if choice.else_case is None else self.insert(choice.else_case)
        self.open = after | self.open
        return choice.with_(then_case=then_case, else_case=else_case)

    def asks_first(self, statement: AssertStmt | LetStmt, value: Expr) -> Stmt:
        """A statement that reads memory to compute `value` before its body runs; a barrier may have to come first."""
        mine = self.accesses(value)
        needed = any([self.meet(one, other) for one in self.open for other in mine])
        own = {Earlier(access, frozenset()): None for access in mine}
        self.open = own if needed else self.open | own
        inner = statement.with_(body=self.insert(statement.body))
        return seq([self.barrier(), inner]) if needed else inner

    def whole(self, statement: Stmt) -> Stmt:
        """A statement that has no barrier inside; one goes before it where it meets what came before."""
        mine = self.accesses(statement)
        if not self.is_shared_loop(statement):
            for k, one in enumerate(mine):
                for other in mine[k:]:
                    # The statement as its author wrote it was checked; here only what is plain to see is refused.
                    if self.meet(Earlier(one, frozenset()), other, certain=True):
                        raise NeedsBarrier(statement, one, other)
        needed = any([self.meet(one, other) for one in self.open for other in mine])
        own = {Earlier(access, frozenset()): None for access in mine}
        self.open = own if needed else self.open | own
        return seq([self.barrier(), statement]) if needed else statement

    def is_shared_loop(self, statement: Stmt) -> bool:
        """Whether all threads run the loop alike: what meets inside it has been looked at."""
        return isinstance(statement, For) and not (self.is_theirs(statement.min) or self.is_theirs(statement.extent))

    def accesses(self, statement: Stmt | Expr) -> list[Access]:
        result = self.touched.get(statement)
        if result is None:
            nodes = [*collect(statement, BufferLoad, BufferStore), *collect(statement, Call)]
            found = [access for node in nodes for access in self.by_node.get(node, ())]
            result = self.touched[statement] = list(dict.fromkeys(found))
        return result

    def meet(self, earlier: Earlier, later: Access, certain: bool = False) -> bool:
        """Whether two threads of a block may touch one cell by these accesses, one of them writing; or certainly do."""
        one = earlier.access
        if one.cell[0].data is not later.cell[0].data or not disturb(one, later, are_blocks=False):
            return False
        in_any = Earlier(one, earlier.carried)
        return self._may_meet(in_any, later, certain) and (
            not earlier.just or self._may_meet(earlier, later, certain)
        )

    def _may_meet(self, earlier: Earlier, later: Access, certain: bool) -> bool:
        key = earlier, later, self.around, certain
        result = self.known.get(key)
        if result is None:
            result = self.known[key] = may_meet(
                self.program, earlier.access, later, self.around, earlier.carried, certain, earlier.just
            )
        return result


@function_pass
@deep
def insert_barriers(func: PrimFunc) -> PrimFunc:
    """Threads wait for each other where one reads or overwrites what another has written."""
    func = hoist_shared_memory(func)
    steady = _read_by_all(func.body)
    program = accesses_of(func, steady=steady)
    program.untold = program.untold - _known_to_engines_alone(func.body)
    return func.with_(body=_InsertBarriers(program, steady).visit(func.body))


def _known_to_engines_alone(body: Stmt) -> set[Var]:
    """Memory whose address goes to asynchronous operations and nowhere else: mbarriers and waits order these.

    What threads load and store there themselves is known as that of all other memory.
    """
    given: set[Var] = set()
    elsewhere: set[Var] = set()

    def look(node: Node) -> bool:
        if isinstance(node, Call) and node.op.name in _ENGINES:
            for argument in node.args:
                load = argument.args[0] if isinstance(argument, Call) and argument.op.name == "tir.address_of" else None
                if isinstance(load, BufferLoad):
                    given.add(load.buffer.data)
                else:
                    pre_order_visit(argument, look)
            return False
        if isinstance(node, Call) and node.op.name == "tir.address_of":
            elsewhere.update([load.buffer.data for load in node.args if isinstance(load, BufferLoad)])
        elif isinstance(node, Var) and node.dtype.kind == "handle":
            elsewhere.add(node)
        return True

    pre_order_visit(body, look)
    return given - elsewhere


def _read_by_all(body: Stmt) -> set[Var]:
    """The variables of lets that have one value in all threads of a block, and one as long as the block runs.

    They are computed of constants and of elements of the block's memory that are the same for all threads. Barriers
    keep apart who reads such an element and who writes it, so all threads that come by read the same value.
    """
    result: set[Var] = set()

    def look(node: Node) -> bool:
        if isinstance(node, (For, While)):
            return False  # in another iteration it may be another value
        if isinstance(node, LetStmt) and any_node(node.value, is_load) and not any_node(node.value, may_differ):
            result.add(node.var)
        return not isinstance(node, Expr)

    def is_load(node: Node) -> bool:
        return isinstance(node, BufferLoad)

    def may_differ(node: Node) -> bool:
        if isinstance(node, BufferLoad):
            return not is_of_block(node.buffer.scope())
        if isinstance(node, Var):
            return node.dtype.kind != "handle" and node not in result
        return isinstance(node, Call) and not is_pure_call(node)

    pre_order_visit(body, look)
    return result
