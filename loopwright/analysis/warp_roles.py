"""Warp roles: the iterations of a loop whose parts are the work of different warps of a block.

    for i in T.serial(n, annotations={"warp_role_stages": 4}):
        S = T.decl_buffer((256,), scope="shared")
        with T.attr("load", "warp_role", 32):                        one warp fills S
            for tx in T.thread_binding(32, thread="threadIdx.x"): …
        with T.attr("add", "warp_role", 128):                        four warps read it
            for tx in T.thread_binding(128, thread="threadIdx.x"): …

As it stands this is a program in the order of its text, and so it is proved, checked and evaluated: a role is a part of
it, whose thread loops are as long as the role has threads. `specialize_warps` makes the block as wide as all roles
together, and lets each go through the loop at its own speed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.ir import AttrStmt, For, IntImm, Node, Stmt, StringImm, any_statement
from loopwright.runtime.errors import LoopwrightError

ROLE: Final = "warp_role"
STAGES: Final = "warp_role_stages"


class NotARole(LoopwrightError, ValueError):
    """A role has a name and a constant number of threads, its loop a constant number of iterations under way.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(32), n: T.int32):
            for i in T.serial(1, annotations={"warp_role_stages": 1}):
                with T.attr("clear", "warp_role", n):
                    for tx in T.thread_binding(32, thread="threadIdx.x"):
                        A[tx] = T.float32(0)

        loopwright.build(f, target="cuda")
    """

    code = "LW0848"

    def __init__(self, what: str, given: object, wanted: str, at: Node) -> None:
        super().__init__(f"{what} is {given}", at=at, hint=f"it is {wanted}")


class Role(NamedTuple):
    """What a part of an iteration is called, and how many threads run it."""

    name: str
    threads: int


def role_of(node: Node) -> Role | None:
    """The role whose part of an iteration a statement is."""
    if not isinstance(node, AttrStmt) or node.attr_key != ROLE:
        return None
    name = node.node.value if isinstance(node.node, StringImm) else node.node
    if not isinstance(name, str):
        raise NotARole("the name of a role", name, "a string", node)
    if not isinstance(node.value, IntImm):
        raise NotARole(f"the number of threads of role {name}", node.value, "a constant, as in 64", node)
    return Role(name, node.value.value)


def stages_of(loop: For) -> int | None:
    """How many iterations of a loop with roles may be under way."""
    stages = loop.annotations.get(STAGES) if loop.annotations else None
    if stages is None:
        return None
    number = stages.value if isinstance(stages, IntImm) else stages
    if not isinstance(number, int):
        raise NotARole(f"{STAGES} of loop {loop.loop_var.name}", stages, "a constant, as in 4", loop)
    return number


def has_roles(root: Stmt) -> bool:
    """Whether parts of the statement belong to roles."""
    return any_statement(root, lambda statement: role_of(statement) is not None)
