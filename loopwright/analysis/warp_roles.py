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

from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.ir import (
    AttrStmt,
    Expr,
    For,
    IntImm,
    Node,
    Stmt,
    StringImm,
    any_statement,
    collect_statements,
    pre_order_visit,
)
from loopwright.runtime.errors import LoopwrightError

ROLE: Final = "warp_role"
STAGES: Final = "warp_role_stages"
TENSOR_CORE: Final = "tensor_core"
# Of a loop around loops of roles: the slots of memory that is handed on in it, beside them.
SLOTS: Final = "warp_role_slots"
# Of a loop of roles: the registers of each thread of the roles with tensor cores; the others give theirs up for it.
REGISTERS: Final = "warp_role_registers"
GROUP: Final = 128  # threads of a warpgroup: registers are handed over by them


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


def role_name_of(node: Node) -> str | None:
    """The role that a schedule gave a loop to, by an annotation."""
    name = node.annotations.get(ROLE) if isinstance(node, For) and node.annotations else None
    if name is None:
        return None
    name = name.value if isinstance(name, StringImm) else name
    if not isinstance(name, str):
        raise NotARole(f"the role of loop {node.loop_var.name}", name, "a name", node)  # type: ignore[attr-defined]
    return name


class RoleThreads(NamedTuple):
    """The threads of a role: the first one along x of the block, how many, and how they are counted in the role."""

    begin: int
    size: int
    extents: dict[str, int]  # of the axes that its loops are bound to, as in {"threadIdx.x": 4, "threadIdx.y": 8}
    in_groups: bool = False  # whether its warps work in groups of four

    def numbers(self, thread: Expr) -> dict[str, Expr]:
        """The number of a thread along each of the axes, of its number along x of the block: x counts fastest."""
        number = thread - self.begin if self.begin else thread
        result: dict[str, Expr] = {}
        done = 1
        for tag in sorted(self.extents):
            rest = number if done == 1 else number // done
            done *= self.extents[tag]
            result[tag] = rest if done == self.size else rest % self.extents[tag]
        return result


def role_threads(root: Stmt) -> dict[str, RoleThreads]:
    """The threads of each role of a kernel, by name.

    They lie side by side in the order of the text. Roles whose warps work in groups of four (tensor cores) come before
    all others, so that a group begins at a multiple of its size.
    """
    counts: dict[str, int] = {}
    extents: dict[str, dict[str, int]] = {}
    in_groups: set[str] = set()

    def look(node: Node) -> bool:
        role = role_of(node)
        if role is None:
            return not isinstance(node, Expr)
        assert isinstance(node, AttrStmt)
        counts.setdefault(role.name, role.threads)
        mine = extents.setdefault(role.name, {})
        loops: list[For | AttrStmt] = [*collect_statements(node.body, For), *collect_statements(node.body, AttrStmt)]
        for loop in loops:
            tag = tag_of(loop)
            if tag.startswith("threadIdx"):
                extent = axis_of(loop).extent
                if isinstance(extent, IntImm):
                    mine.setdefault(tag, extent.value)
            if core_of(loop) is not None:
                in_groups.add(role.name)
        return False

    pre_order_visit(root, look)
    result: dict[str, RoleThreads] = {}
    begin = 0
    for name in sorted(counts, key=lambda name: name not in in_groups):
        axes = extents[name] or {"threadIdx.x": counts[name]}
        result[name] = RoleThreads(begin, counts[name], axes, name in in_groups)
        begin += counts[name]
    return {name: result[name] for name in counts}


def stages_of(loop: For) -> int | None:
    """How many iterations of a loop with roles may be under way."""
    stages = loop.annotations.get(STAGES) if loop.annotations else None
    if stages is None:
        return None
    number = stages.value if isinstance(stages, IntImm) else stages
    if not isinstance(number, int):
        raise NotARole(f"{STAGES} of loop {loop.loop_var.name}", stages, "a constant, as in 4", loop)
    return number


def slots_of(loop: For) -> int | None:
    """How many slots memory has that roles hand on in a loop around loops of roles."""
    slots = loop.annotations.get(SLOTS) if loop.annotations else None
    if slots is None:
        return None
    number = slots.value if isinstance(slots, IntImm) else slots
    if not isinstance(number, int) or number < 1:
        raise NotARole(f"{SLOTS} of loop {loop.loop_var.name}", slots, "a constant, as in 2", loop)
    return number


def registers_of(loop: For) -> int | None:
    """How many registers the threads of roles with tensor cores have; None where all threads have the same."""
    registers = loop.annotations.get(REGISTERS) if loop.annotations else None
    if registers is None:
        return None
    number = registers.value if isinstance(registers, IntImm) else registers
    if not isinstance(number, int) or number % 8 or not 24 <= number <= 256:
        raise NotARole(f"{REGISTERS} of loop {loop.loop_var.name}", registers, "a multiple of 8 from 24 to 256", loop)
    return number


def block_threads(root: Stmt) -> int:
    """The threads of a block with roles: those of all roles, and warps that do nothing where registers are moved."""
    count = sum([mine.size for mine in role_threads(root).values()])
    loops = [loop for loop in collect_statements(root, For) if registers_of(loop) is not None]
    return -(-count // GROUP) * GROUP if loops else count


def core_of(node: Node) -> str | None:
    """Which tensor cores a loop is given to: the share of a thread in what its warps multiply together."""
    name = node.annotations.get(TENSOR_CORE) if isinstance(node, For) and node.annotations else None
    if name is None:
        return None
    return name.value if isinstance(name, StringImm) else str(name)


def has_roles(root: Stmt) -> bool:
    """Whether parts of the statement belong to roles."""
    return any_statement(root, lambda statement: role_of(statement) is not None)
