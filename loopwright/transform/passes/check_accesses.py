"""check_accesses: an access that is not proved to stay inside its buffer is checked when the program runs.

    for i in range(n):                 →    inside[0] = True
        B[i] = A[idx[i]]                    for i in range(n):
                                                inside[0] = Select(in_bounds(idx[i], 10), inside[0], False)
                                            if not inside[0]:
                                                for i in range(n):
                                                    assert in_bounds(idx[i], 10), IndexOutOfRange: reads A[…]
                                            for i in range(n):
                                                B[i] = A[idx[i]]

`analysis/bounds.py` says which accesses are meant; nearly all are proved when a program is built, and the pass leaves a
function without others alone. A check is hoisted out of loops that write nothing it reads. It then runs through the
loops that its index depends on, and the loop that does the work stays as it is, fit for vectors. An index that is
linear in a loop is checked at both ends of it. Where a check cannot be hoisted, it stands right before its statement;
the condition of a `while` is checked before it is computed each time.

Needs: no blocks, buffers with their shapes (before `flatten_buffers`).  Leaves: every access inside its buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.bounds import unproved_in
from loopwright.analysis.effects import effects, effects_of_all
from loopwright.arith import Analyzer
from loopwright.ir import (
    Allocate,
    AllocateConst,
    And,
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
    Or,
    PrimFunc,
    Select,
    Stmt,
    Var,
    While,
    const,
    decl_buffer,
    deep,
    logical_and,
    logical_not,
    logical_or,
    seq,
    substitute,
    uses_var,
    variables_in,
)
from loopwright.ir.annotations import UNPROVED_ACCESSES
from loopwright.ir.clone import Cloner
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import BOOL
from loopwright.runtime.errors import InternalError
from loopwright.transform.parts.access_checks import Check, Wanted, checks_of, checks_of_store
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.known_ops import IN_BOUNDS
from loopwright.transform.parts.purity import is_pure
from loopwright.transform.parts.statements import StmtRewriter

_LAUNCHES: Final = frozenset({"thread_extent", "virtual_thread"})


class _Changes:
    """What a loop does to memory, found once."""

    def __init__(self, loop: Stmt, path: Sequence[Stmt]) -> None:
        done = effects(loop, path)
        names = {call.op.name for call in done.calls}
        self.memory = {*done.stored, *done.allocated}
        self.anything = bool(names - {"tir.ret", "tir.assume"} or done.changed - done.stored.keys())  # may be written
        self.leaves = "tir.ret" in names  # the function may return from inside


class _Around:
    """A statement around the current one: which branch of it we are in, and where the checks of its own went."""

    def __init__(self, statement: Stmt, path: Sequence[Stmt]) -> None:
        self.statement, self.path = statement, path
        self.in_else = False
        self.checked_at = 0  # how many statements are around the innermost of its own checks
        self.checks: list[Stmt] = []  # what goes before this loop
        self._changes: _Changes | None = None

    @property
    def changes(self) -> _Changes:
        if self._changes is None:
            self._changes = _Changes(self.statement, self.path)
        return self._changes

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What is computed here each time the statement runs."""
        statement = self.statement
        if isinstance(statement, For):
            return statement.min, statement.extent
        if isinstance(statement, (IfThenElse, AssertStmt)):
            return (statement.condition,)
        return (statement.value,) if isinstance(statement, LetStmt) else ()


class _CheckAccesses(StmtRewriter):
    def __init__(self, function: PrimFunc, wanted: Wanted) -> None:
        self.name, self.wanted = function.name, wanted
        self.may_alias = not function.attrs.get("tir.noalias", True)
        self.arguments = {buffer.data for buffer in function.argument_buffers()}
        self.around: list[_Around] = []
        self.facts = Analyzer()

    # --- statements -----------------------------------------------------------------------------------------------

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        return self._before(store, checks_of_store(self.name, store, self.wanted))

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        return self._before(node, checks_of(self.name, [node.value], self.wanted))

    def visit_For(self, loop: For) -> Stmt:
        groups = checks_of(self.name, [loop.min, loop.extent], self.wanted)
        with self._inside(loop, groups) as (around, checks):
            loop = self.rebuild(loop)
        return _asserted(seq([*around.checks, loop]) if around.checks else loop, checks)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        groups = checks_of(self.name, [node.condition], self.wanted)
        with self._inside(node, groups) as (around, checks):
            then_case = self.visit(node.then_case)
            around.in_else = True
            else_case = None if node.else_case is None else self.visit(node.else_case)
        return _asserted(node.with_(then_case=then_case, else_case=else_case), checks)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        with self._inside(node, checks_of(self.name, [node.value], self.wanted)) as (_, checks):
            node = self.rebuild(node)
        return _asserted(node, checks)

    def visit_AssertStmt(self, node: AssertStmt) -> Stmt:
        with self._inside(node, checks_of(self.name, [node.condition], self.wanted)) as (_, checks):
            node = self.rebuild(node)
        return _asserted(node, checks)

    def visit_While(self, node: While) -> Stmt:
        checks = [check for group in checks_of(self.name, [node.condition], self.wanted) for check in group]
        with self._inside(node, []):
            body = self.visit(node.body)
        if checks:
            body = seq([body, _asserted(Evaluate(const(0)), checks)])
        return _asserted(node.with_(body=body), checks)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        return self._scope(node, node.extents)

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        return self._scope(node, ())

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        return self._scope(node, ())

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        return self._scope(node, (node.value,))

    def _scope(self, node: Stmt, exprs: Sequence[Expr]) -> Stmt:
        with self._inside(node, checks_of(self.name, exprs, self.wanted)) as (_, checks):
            node = self.rebuild(node)
        return _asserted(node, checks)

    # --- placing --------------------------------------------------------------------------------------------------

    @contextmanager
    def _inside(self, statement: Stmt, groups: list[list[Check]]) -> Iterator[tuple[_Around, list[Check]]]:
        """Visit what is inside `statement`; those of its checks that were not hoisted come back."""
        depth = len(self.around)
        item = _Around(statement, [other.statement for other in self.around])
        checks: list[Check] = []
        for group in groups:
            target = self._hoist(group)
            item.checked_at = max(item.checked_at, depth if target is None else target)
            if target is None:
                checks += group
        self.around.append(item)
        try:
            yield item, checks
        finally:
            self.around.pop()

    def _before(self, statement: Stmt, groups: list[list[Check]]) -> Stmt:
        """The statement, after those of its checks that go nowhere else."""
        return _asserted(statement, [check for group in groups if self._hoist(group) is None for check in group])

    def _hoist(self, group: list[Check]) -> int | None:
        """Put the group before the outermost loop that it can leave; how many statements are around that.

        None when it can leave none.
        """
        # The message shows the whole index, so what that needs goes along as well.
        message = [expr for check in group for expr in (check.condition, check.message)]
        path = [item.statement for item in self.around]
        reads, used = set(effects_of_all(message, path).loaded), _variables(message)
        passed: list[_Around] = []
        target: int | None = None
        kept: list[_Around] = []
        for depth in range(len(self.around) - 1, -1, -1):
            item = self.around[depth]
            statement = item.statement
            if isinstance(statement, For):
                changes = item.changes
                blocked = changes.leaves or (bool(reads) and changes.anything) or self._touches(changes.memory, reads)
                if blocked or statement.kind is ForKind.THREAD_BINDING:
                    break
                if statement.kind is ForKind.PARALLEL and statement.loop_var in used:
                    break  # threads share the work of checking, too
            elif isinstance(statement, While) or (isinstance(statement, AttrStmt) and statement.attr_key in _LAUNCHES):
                break
            elif isinstance(statement, (Allocate, AllocateConst)):
                if statement.buffer_var in reads:
                    break
                continue
            elif isinstance(statement, LetStmt):
                if statement.var not in used:
                    continue
                if not is_pure(statement.value):
                    break
            elif not isinstance(statement, (IfThenElse, AssertStmt)):
                continue
            passed.append(item)
            reads |= set(effects_of_all(item.exprs, item.path).loaded)
            used |= _variables(item.exprs)
            # What stands around is computed by the check as well, so it must have been checked itself by then.
            if isinstance(statement, For) and all([other.checked_at <= depth for other in passed]):
                if all([is_pure(expr) for other in passed for expr in other.exprs]):
                    target, kept = depth, list(passed)
        if target is None:
            return None
        self._put(self.around[target], group, kept)
        return target

    def _touches(self, written: set[Var], reads: set[Var]) -> bool:
        if not written.isdisjoint(reads):
            return True
        return self.may_alias and bool(written & self.arguments) and bool(reads & self.arguments)

    def _put(self, loop: _Around, group: list[Check], passed: list[_Around]) -> None:
        condition = logical_and(*[check.condition for check in group])
        rest = list(passed)
        # Conditions alone, as far as that goes: loops that do not matter, and those whose two ends tell all.
        while rest:
            statement = rest[0].statement
            if isinstance(statement, For):
                nonempty = statement.extent > const(0, statement.extent.dtype)
                if uses_var(condition, statement.loop_var.same_as):
                    if not self._is_linear(condition, statement.loop_var):
                        break
                    last = statement.min + statement.extent - const(1, statement.extent.dtype)
                    ends = [substitute_folding(condition, {statement.loop_var: end}) for end in (statement.min, last)]
                    condition = logical_and(*ends)
                if not isinstance(nonempty, IntImm) or not nonempty.value:
                    condition = logical_or(logical_not(nonempty), condition)
            elif isinstance(statement, (IfThenElse, AssertStmt)):
                holds = statement.condition if not rest[0].in_else else logical_not(statement.condition)
                condition = logical_or(logical_not(holds), condition)
            else:
                break
            del rest[0]
        slow = _asserted(Evaluate(const(0)), group)
        slow = _skeleton(slow, passed)
        if not rest:
            result: Stmt = IfThenElse(logical_not(condition), slow, None)
        else:
            result = _inspect(condition, rest, slow, "local" if self._is_on_threads() else "")
        loop.checks.append(clone_definitions(result))

    def _is_on_threads(self) -> bool:
        """Whether threads of a GPU run what is visited: what they allocate is memory of their own."""
        around = [item.statement for item in self.around]
        return any([isinstance(node, AttrStmt) and node.attr_key in _LAUNCHES for node in around])

    def _is_linear(self, condition: Expr, var: Var) -> bool:
        """Whether the condition is made of `in_bounds` of indices that grow by a number with the variable."""
        pending = [condition]
        while pending:
            part = pending.pop()
            if isinstance(part, And) or (isinstance(part, Or) and not uses_var(part.a, var.same_as)):
                pending += [part.a, part.b]
                continue
            if not (isinstance(part, Call) and part.op is IN_BOUNDS):
                if uses_var(part, var.same_as):
                    return False
                continue
            index, extent = part.args
            if uses_var(extent, var.same_as):
                return False
            step = substitute(index, {var: var + const(1, var.dtype)}) - index
            if uses_var(index, var.same_as) and not isinstance(self.facts.simplify(step), IntImm):
                return False
        return True


def _inspect(condition: Expr, around: list[_Around], slow: Stmt, scope: str) -> Stmt:
    """Whether the condition holds in all iterations, as a loop that finds out and does nothing else; then `slow` says
    where it does not."""
    # A flag as wide as indices: for bytes LLVM takes 64 lanes of 64-bit index arithmetic, seconds to compile.
    flag = decl_buffer((1,), "int32", "inside", scope=scope)
    zero, one = const(0), const(1)
    # Not `and`: one iteration need not wait for the one before.
    gather = BufferStore(flag, Select(condition, BufferLoad(flag, (zero,)), zero), (zero,))
    parts = [
        BufferStore(flag, one, (zero,)),
        _skeleton(gather, around),
        IfThenElse(BufferLoad(flag, (zero,)).equal(zero), slow, None),
    ]
    return Allocate(flag.data, flag.dtype, (const(1),), const(True, BOOL), DeclBuffer(flag, seq(parts)))


def _skeleton(body: Stmt, around: Sequence[_Around]) -> Stmt:
    """`body` inside those of the statements, innermost first, that decide whether and how often it runs."""
    for item in around:
        statement = item.statement
        if isinstance(statement, For):
            if uses_var(body, statement.loop_var.same_as):
                body = For(statement.loop_var, statement.min, statement.extent, ForKind.SERIAL, body)
            elif not isinstance(statement.extent, IntImm) or statement.extent.value <= 0:
                body = IfThenElse(statement.extent > const(0, statement.extent.dtype), body, None)
        elif isinstance(statement, (IfThenElse, AssertStmt)):
            condition = logical_not(statement.condition) if item.in_else else statement.condition
            body = IfThenElse(condition, body, None)
        elif isinstance(statement, LetStmt):
            body = LetStmt(statement.var, statement.value, body)
    return body


def _asserted(statement: Stmt, checks: Sequence[Check]) -> Stmt:
    """The statement, after the checks have been asked in order."""
    for check in reversed(checks):
        renewed: Check = Check(Cloner().visit(check.condition), check.message)
        statement = AssertStmt(renewed.condition, renewed.message, statement)
    return statement


def _variables(exprs: Sequence[Expr]) -> set[Var]:
    return {var for expr in exprs for var in variables_in(expr)}


@function_pass
@deep
def check_accesses(func: PrimFunc) -> PrimFunc:
    """An access that is not proved to stay inside its buffer is checked when the program runs."""
    if not func.attrs.get(UNPROVED_ACCESSES, False):
        return func
    program = accesses_of(func)
    wanted: dict[BufferLoad | BufferStore, set[int]] = {}
    for access, axes in unproved_in(program):
        wanted.setdefault(access.node, set()).update(axes)
    checked = func.without_attr(UNPROVED_ACCESSES)
    if not wanted:
        return checked
    written = {access.buffer.data for access in program.accesses if access.writes} | program.unknown
    broadcasts = {b for b in func.argument_buffers() if b.buffer_type == "auto_broadcast" and b.data not in written}
    rewriter = _CheckAccesses(func, Wanted(wanted, broadcasts))
    body = rewriter.visit(func.body)
    if rewriter.wanted.missed():
        raise InternalError(f"{func.name}: an access that is not proved was not found again, so it is not checked")
    return checked.with_(body=body)
