"""Part: what a role does in one place of a kernel, and the memory that it touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from loopwright.analysis.thread_axes import scope_of
from loopwright.analysis.warp_roles import Role, RoleThreads
from loopwright.ir import (
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Expr,
    For,
    Node,
    Stmt,
    Var,
    collect,
    pre_order_visit,
)
from loopwright.ir.machine_intrinsics import HANDOFFS


class Part(NamedTuple):
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


class Launch:
    """The threads of a kernel."""

    def __init__(self, kernel: AttrStmt) -> None:
        self.kernel = kernel
        self.threads: list[AttrStmt] = []  # the axes
        self.maps: list[tuple[Var, Expr]] = []  # of tensors that are copied, which the host makes


class Around(Protocol):
    """What a loop of roles asks of the nest that it stands in."""

    body: Stmt
    launch: Launch
    thread: Var
    threads: dict[str, RoleThreads]
    stored: frozenset[Var]  # memory that the kernel stores to
    accessed_once: frozenset[Var]  # tensors that one statement touches, and nothing else does

    def loops_around(self, loop: For) -> list[For]:
        """The loops of the nest around one of its loops of roles."""

    def part(self, statement: Stmt, role: Role) -> Part:
        """What a role does, without the condition that a thread is one of its."""


def buffers_in(body: Stmt) -> list[Buffer]:
    accesses: list[BufferLoad | BufferStore] = [*collect(body, BufferLoad), *collect(body, BufferStore)]
    return [access.buffer for access in accesses]


def memory_of(body: Stmt) -> tuple[frozenset[Var], frozenset[Var], frozenset[Var]]:
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


def stored_in(kernel: Stmt, may_alias: bool) -> frozenset[Var]:
    """The memory that a kernel stores to, or may."""
    reads, writes, _ = memory_of(kernel)
    is_global = any([scope_of(data) == "global" for data in writes])
    return reads | writes if may_alias and is_global else writes


def accessed_once(kernel: Stmt, may_alias: bool) -> frozenset[Var]:
    """The memory that a kernel has one load or store of, which may take place at any time."""
    if may_alias or any([call.op.name in HANDOFFS for call in collect(kernel, Call)]):
        return frozenset()
    accesses: list[BufferLoad | BufferStore] = [*collect(kernel, BufferLoad), *collect(kernel, BufferStore)]
    counts = Counter([access.buffer.data for access in accesses])
    _, _, pointers = memory_of(kernel)
    return frozenset([data for data, count in counts.items() if count == 1]) - pointers


def tickets_in(body: Stmt) -> frozenset[Var]:
    """The counters that tickets are taken of."""
    calls = [call for call in collect(body, Call) if call.op.name == "tir.take_ticket"]
    return frozenset([load.buffer.data for call in calls for load in collect(call, BufferLoad)])


def _indices_of(pointer: Expr) -> Sequence[Expr]:
    load = pointer.args[0] if isinstance(pointer, Call) else None
    return load.indices if isinstance(load, BufferLoad) else ()
