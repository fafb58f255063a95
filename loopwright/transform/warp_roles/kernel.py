"""Kernel: the threads of a kernel with roles, and what its roles do in one place."""

from __future__ import annotations

from functools import reduce
from typing import Final

from loopwright.analysis.thread_axes import axis_of, is_barrier, tag_of
from loopwright.analysis.warp_roles import Role, block_threads, role_threads
from loopwright.ir import (
    AttrStmt,
    Expr,
    For,
    IfThenElse,
    IntImm,
    Stmt,
    Var,
    any_statement,
    collect_statements,
    logical_and,
    structural_equal,
)
from loopwright.transform.warp_roles.errors import CannotSpecialize
from loopwright.transform.warp_roles.part import Part, accessed_once, memory_of, stored_in

_ROLES: Final = 15  # a barrier for the threads of each, beside that of the block


class Launch:
    """The threads of a kernel."""

    def __init__(self, kernel: AttrStmt) -> None:
        self.kernel = kernel
        self.threads: list[AttrStmt] = []  # the axes
        self.maps: list[tuple[Var, Expr]] = []  # of tensors that are copied, which the host makes


class Kernel:
    """What all parts of a kernel know."""

    def __init__(self, body: Stmt, launch: Launch, may_alias: bool) -> None:
        self.body, self.launch = body, launch
        self.thread, self.of_block = axis_of(launch.threads[0]).var, launch.threads[0].value
        self.stored = stored_in(launch.kernel.body, may_alias)
        self.accessed_once = accessed_once(launch.kernel.body, may_alias)
        self.threads = role_threads(launch.kernel.body)
        self.size = block_threads(launch.kernel.body)

    def loops_around(self, loop: For) -> list[For]:
        """The loops of the nest around one of its loops of roles, outermost first."""
        return [
            outer
            for outer in collect_statements(self.body, For)
            if outer is not loop and any_statement(outer, lambda node: node is loop)
        ]

    def check_threads(self, at: For) -> None:
        """Raise CannotSpecialize where the threads of the block are not those of the roles."""
        if len(self.threads) > _ROLES:
            raise CannotSpecialize(f"the loop has {len(self.threads)} roles, and may have {_ROLES}", at)
        axes = [tag_of(axis) for axis in self.launch.threads]
        if axes != ["threadIdx.x"]:
            problem = f"the block has threads along {', '.join(axes)}, and those of roles lie along threadIdx.x"
            raise CannotSpecialize(problem, at)
        count = self.size
        if not isinstance(self.of_block, IntImm) or self.of_block.value != count:
            problem = f"the block has {self.of_block} threads, and its roles {count}"
            raise CannotSpecialize(problem, at, "make each loop of roles a kernel of its own")

    def part(self, statement: Stmt, role: Role) -> Part:
        """What a role does, without the condition that a thread is one of its."""
        assert isinstance(statement, AttrStmt)
        body, mine = statement.body, self.threads[role.name]
        end, last = mine.begin + mine.size, self.size
        within = [self.thread >= mine.begin] if mine.begin > 0 else []
        if end < last:
            within.append(self.thread < end)
        if within:
            condition = reduce(logical_and, within)
            is_asked = isinstance(body, IfThenElse) and structural_equal(body.condition, condition)
            if not (isinstance(body, IfThenElse) and is_asked and body.else_case is None):
                threads = f"{mine.begin} to {end - 1}"
                problem = f"role {role.name} is not under the condition that a thread is one of {threads}"
                raise CannotSpecialize(problem, statement, "let launch_threads write it")
            body = body.then_case
        if any_statement(body, is_barrier):
            problem = f"a barrier of the block stands in role {role.name}"
            hint = "leave it away: threads of one role meet by themselves, and lanes of a warp reduce by shuffles"
            raise CannotSpecialize(problem, statement, hint)
        return Part(role, statement, body, *memory_of(body))
