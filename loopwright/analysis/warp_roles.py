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

ROLE: Final = "warp_role"
STAGES: Final = "warp_role_stages"


class Role(NamedTuple):
    """What a part of an iteration is called, and how many threads run it."""

    name: str
    threads: int


def role_of(node: Node) -> Role | None:
    """The role whose part of an iteration a statement is."""
    if not isinstance(node, AttrStmt) or node.attr_key != ROLE:
        return None
    name = node.node.value if isinstance(node.node, StringImm) else node.node
    assert isinstance(name, str) and isinstance(node.value, IntImm)
    return Role(name, node.value.value)


def stages_of(loop: For) -> int | None:
    """How many iterations of a loop with roles may be under way."""
    stages = loop.annotations.get(STAGES) if loop.annotations else None
    return stages.value if isinstance(stages, IntImm) else stages if isinstance(stages, int) else None


def has_roles(root: Stmt) -> bool:
    """Whether parts of the statement belong to roles."""
    return any_statement(root, lambda statement: role_of(statement) is not None)
