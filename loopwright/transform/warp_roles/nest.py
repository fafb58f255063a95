"""Nest: what the roles of a kernel run, each by itself: loops of roles, and what stands around and between them.

    for t in range(turns):                                each role has loops of its own
        with T.attr("multiply", "warp_role", 256): …          and its parts beside the loops of roles
        for k in T.serial(n, {"warp_role_stages": 4}):
            with T.attr("load", "warp_role", 32): …
            with T.attr("multiply", "warp_role", 256): …

Nothing but roles stands in a nest. What loops and conditions around them ask is the same for all threads, whenever they
come there, so that all roles run the same iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from loopwright.analysis.thread_axes import barrier
from loopwright.analysis.warp_roles import (
    ROLE,
    SLOTS,
    STAGES,
    has_roles,
    registers_of,
    role_of,
    slots_of,
    stages_of,
)
from loopwright.ir import (
    Allocate,
    AttrStmt,
    BufferLoad,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Node,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    any_node,
    any_statement,
    collect_statements,
    const,
    seq,
)
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.warp_roles.around import Around, is_met
from loopwright.transform.warp_roles.errors import CannotSpecialize
from loopwright.transform.warp_roles.kernel import Kernel, Launch
from loopwright.transform.warp_roles.loop import RoleLoop
from loopwright.transform.warp_roles.part import Part, tickets_in
from loopwright.transform.warp_roles.places import uses_memory
from loopwright.transform.warp_roles.registers import MovedRegisters, moved_registers


def in_kernel(body: Stmt, launch: Launch, may_alias: bool) -> Stmt:
    """What a kernel does, with its loops of roles given to warps."""
    loops = [loop for loop in collect_statements(body, For) if stages_of(loop) is not None and has_roles(loop.body)]
    if not loops:
        if _is_specialized(body):
            return body
        part = next(node for node in collect_statements(body, AttrStmt) if role_of(node) is not None)
        raise CannotSpecialize("a role stands outside a loop of roles", part, f"annotate the loop with {STAGES}")
    if not launch.threads:
        raise CannotSpecialize("no threads are launched around the loop of roles", loops[0], "run launch_threads first")
    for loop in loops:
        inner = [other for other in loops if other is not loop and any_statement(loop.body, lambda n: n is other)]  # noqa: B023
        if inner:
            raise CannotSpecialize("a loop of roles stands in another one", inner[0], "fuse the two loops")
    statement, nest, around = _nest_of(body, loops)
    made = Nest(nest, loops, launch, may_alias).specialized()
    result: Stmt = _Put(statement, around(made)).visit(body)
    return result


def _is_specialized(body: Stmt) -> bool:
    """Whether this pass has made it: each role is a case of a choice."""
    choices = collect_statements(body, IfThenElse)
    made = {case for choice in choices for case in (choice.then_case, choice.else_case) if case is not None}
    return all([node in made for node in collect_statements(body, AttrStmt) if role_of(node) is not None])


def _nest_of(body: Stmt, loops: list[For]) -> tuple[Stmt, Stmt, Callable[[Stmt], Stmt]]:
    """A statement, the nest in it, and the statement with something in the place of the nest.

    The nest is the loop of roles, or all loops around it with what roles do beside it, and memory that they hand on.
    """
    while body not in loops:
        if isinstance(body, Allocate) and is_met(body):
            return _under_memory(body)
        if isinstance(body, (Allocate, DeclBuffer, AttrStmt, LetStmt)):
            body = body.body
            continue
        if not isinstance(body, SeqStmt):
            break
        first, end = _places(body)
        if end - first > 1:
            return body, seq(body.seq[first:end]), partial(_between, body.seq[:first], body.seq[end:])
        body = body.seq[first]
    return body, body, lambda nest: nest


def _between(before: Sequence[Stmt], after: Sequence[Stmt], nest: Stmt) -> Stmt:
    return seq([*before, nest, *after])


def _places(body: SeqStmt) -> tuple[int, int]:
    """From where to where roles stand."""
    places = [k for k, part in enumerate(body.seq) if has_roles(part)]
    return places[0], places[-1] + 1


def _under_memory(body: Stmt) -> tuple[Stmt, Stmt, Callable[[Stmt], Stmt]]:
    """As `_nest_of`, of memory that roles hand on; other memory, and what fills it before, stays outside the nest."""
    chain: list[Allocate | DeclBuffer] = []
    inner = body
    while isinstance(inner, (Allocate, DeclBuffer)):
        chain.append(inner)
        inner = inner.body
    met = {node.buffer_var for node in chain if isinstance(node, Allocate) and is_met(node)}
    data = [node.buffer_var if isinstance(node, Allocate) else node.buffer.data for node in chain]
    before: Sequence[Stmt] = ()
    after: Sequence[Stmt] = ()
    if isinstance(inner, SeqStmt):
        first, end = _places(inner)
        before, after = inner.seq[:first], inner.seq[end:]
        inner = seq(inner.seq[first:end])
    nest = inner
    for node, own in reversed(list(zip(chain, data, strict=True))):
        nest = node.with_(body=nest) if own in met else nest

    def around(made: Stmt) -> Stmt:
        result = seq([*before, made, *after])
        for node, own in reversed(list(zip(chain, data, strict=True))):
            result = result if own in met else node.with_(body=result)
        return result

    return body, nest, around


class Nest:
    """The nest of one kernel."""

    def __init__(self, body: Stmt, loops: list[For], launch: Launch, may_alias: bool) -> None:
        self.body = body
        self.kernel = Kernel(body, launch, may_alias)
        self.threads, self.thread = self.kernel.threads, self.kernel.thread
        self.beside: list[Part] = []  # what roles do outside loops of roles
        self.loops = {loop: RoleLoop(loop, self.kernel) for loop in loops}
        self.kernel.check_threads(loops[0])
        self._find_beside(body)
        self.around: dict[Var, Around] = {}  # memory that is handed on beside loops of roles
        self._find_around(body, 1)
        self._check_memory()
        for loop in self.loops.values():
            loop.make_barriers()

    # --- parts ------------------------------------------------------------------------------------------------------

    def _find_beside(self, statement: Stmt) -> None:
        if isinstance(statement, For) and statement in self.loops:
            return
        role = role_of(statement)
        if not has_roles(statement):
            raise CannotSpecialize("a statement stands beside the roles of the nest", statement, "make it part of one")
        if role is not None:
            self.beside.append(self.kernel.part(statement, role))
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
            kind = type(statement).__name__
            raise CannotSpecialize(f"roles stand in a {kind}", statement, "put them into serial loops and conditions")

    def _check_is_steady(self, expr: Expr, at: Stmt) -> None:
        """Raise CannotSpecialize where threads may disagree, or memory decides, which may have changed."""
        if any_node(expr, lambda node: isinstance(node, (BufferLoad, Call)) or node is self.thread):
            problem = f"{expr} around the loop of roles is not the same for all threads, whenever they come there"
            raise CannotSpecialize(problem, at, "let it depend on the block and on loops around it alone")

    def _find_around(self, statement: Stmt, slots: int) -> None:
        """Memory that is allocated in the nest and that roles hand on there."""
        if (isinstance(statement, For) and statement in self.loops) or role_of(statement) is not None:
            return
        if isinstance(statement, SeqStmt):
            for item in statement.seq:
                self._find_around(item, slots)
        elif isinstance(statement, IfThenElse):
            for case in (statement.then_case, statement.else_case):
                if case is not None:
                    self._find_around(case, slots)
        elif isinstance(statement, (For, LetStmt, Allocate, DeclBuffer)):
            if isinstance(statement, For):
                slots = slots_of(statement) or 1
            if isinstance(statement, Allocate) and is_met(statement):
                users = [part for part in self._everything() if statement.buffer_var in part.touches]
                if any([statement.buffer_var in part.writes for part in users]):
                    self.around[statement.buffer_var] = Around(statement, slots, self.kernel, users, self.beside)
            self._find_around(statement.body, slots)

    def _everything(self) -> list[Part]:
        """What all roles do, in the order of the text."""
        parts = {part.node: part for loop in self.loops.values() for part in loop.parts}
        parts |= {part.node: part for part in self.beside}
        return [parts[node] for node in dict.fromkeys(collect_statements(self.body, AttrStmt)) if node in parts]

    # --- memory -----------------------------------------------------------------------------------------------------

    def _check_memory(self) -> None:
        everything = [*[part for loop in self.loops.values() for part in loop.parts], *self.beside]
        for loop in self.loops.values():
            loop.check_iterations()
        takers = [(data, part) for part in everything for data in tickets_in(part.body)]
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
            loops = list(self.loops.values())
            loop = next((loop for loop in loops if all([part in loop.parts for part in users])), loops[0])
            loop.hand_on(data, users, problem)

    # --- the result -------------------------------------------------------------------------------------------------

    def specialized(self) -> Stmt:
        chain: Stmt | None = None
        loops, around = list(self.loops.values()), list(self.around.values())
        moved = self._moved_registers()
        for name, threads in sorted(self.threads.items(), key=lambda item: -item[1].begin):
            mine = self.projected(self.body, name)
            assert mine is not None
            for loop in reversed(loops):
                if loop.is_counted and any([part.role.name == name for part in loop.parts]):
                    mine = loop.counted(mine)
            for part in reversed(around):
                if part.is_for(name):
                    mine = part.counted(mine)
            mine = clone_definitions(mine)
            if len(self.threads) > 1:
                mine = AttrStmt(StringImm(name), ROLE, const(threads.size), mine)
            end = threads.begin + threads.size
            if moved is not None and threads.in_groups:
                if end == moved.threads:
                    chain = moved.fewer if chain is None else seq([moved.fewer, chain])
                mine = seq([moved.more, mine])
            chain = mine if chain is None and end == self.kernel.size else IfThenElse(self.thread < end, mine, chain)
        assert chain is not None
        memory: list[RoleLoop | Around] = [*loops, *around]
        inits = [statement for part in memory for statement in part.init()]
        result = seq([IfThenElse(self.thread.equal(0), seq(inits)), barrier(), chain]) if inits else chain
        for each in reversed(memory):
            result = each.allocated(result)
        return result

    def _moved_registers(self) -> MovedRegisters | None:
        loop = next((loop for loop in self.loops if registers_of(loop) is not None), None)
        return None if loop is None else moved_registers(loop, self.threads, self.kernel.size)

    def projected(self, statement: Stmt, name: str) -> Stmt | None:
        """What one role does of the nest."""
        if isinstance(statement, For) and statement in self.loops:
            return self.loops[statement].of_role(name)
        if role_of(statement) is not None:
            mine = next((part for part in self.beside if part.node is statement and part.role.name == name), None)
            return None if mine is None else self._filling(mine)
        if isinstance(statement, SeqStmt):
            items = [self.projected(item, name) for item in statement.seq]
            kept = [item for item in items if item is not None]
            return seq(kept) if kept else None
        if isinstance(statement, IfThenElse):
            then_case = self.projected(statement.then_case, name)
            other = None if statement.else_case is None else self.projected(statement.else_case, name)
            if then_case is None and other is None:
                return None
            nothing = Evaluate(const(0))
            return statement.with_(then_case=nothing if then_case is None else then_case, else_case=other)
        assert isinstance(statement, (For, LetStmt, Allocate, DeclBuffer))
        if isinstance(statement, Allocate) and statement.buffer_var in self.around:
            around = self.around[statement.buffer_var]
            return around.of_role(name, lambda: self.projected(statement.body, name))
        body = self.projected(statement.body, name)
        if body is None or (isinstance(statement, DeclBuffer) and statement.buffer.data in self.around):
            return body
        if isinstance(statement, (Allocate, DeclBuffer)):
            data = statement.buffer_var if isinstance(statement, Allocate) else statement.buffer.data
            if not uses_memory(body, data):
                return body
        if isinstance(statement, For) and SLOTS in statement.annotations:
            rest = {key: value for key, value in statement.annotations.items() if key != SLOTS}
            return statement.with_(body=body, annotations=rest)
        return statement.with_(body=body)

    def _filling(self, part: Part) -> Stmt:
        """What a role does beside loops of roles."""
        body = part.body
        for around in self.around.values():
            body = around.filled(part, body)
        return body


class _Put(StmtRewriter):
    """Puts one statement in the place of another one."""

    def __init__(self, old: Stmt, new: Stmt) -> None:
        self.old, self.new = old, new

    def visit(self, node: Node) -> Any:
        return self.new if node is self.old else super().visit(node)
