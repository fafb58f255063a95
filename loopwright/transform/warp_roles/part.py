"""Part: what a role does in one place of a kernel, and the memory that it touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from loopwright.analysis.thread_axes import scope_of
from loopwright.analysis.warp_roles import Role
from loopwright.ir import (
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Expr,
    Node,
    Stmt,
    Var,
    collect,
    pre_order_visit,
)
from loopwright.ir.machine_intrinsics import HANDOFFS
from loopwright.transform.warp_roles.errors import CannotSpecialize


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


def buffers_in(body: Stmt) -> list[Buffer]:
    accesses: list[BufferLoad | BufferStore] = [*collect(body, BufferLoad), *collect(body, BufferStore)]
    return [access.buffer for access in accesses]


def check_is_seen_once(data: Var, users: Sequence[Part], problem: str) -> Buffer:
    """The buffer that memory is; raises CannotSpecialize where it has several shapes, or its address is known."""
    buffers = dict.fromkeys([buffer for part in users for buffer in buffers_in(part.body) if buffer.data is data])
    if len(buffers) > 1:
        names = ", ".join([buffer.name for buffer in buffers])
        raise CannotSpecialize(f"{problem}, and it is seen as {names}", users[0].node, "use one buffer for it")
    (buffer,) = buffers or [None]
    if buffer is None or buffer.strides or any([data in part.pointers for part in users]):
        what = "has strides" if buffer is not None and buffer.strides else "is known by its address"
        raise CannotSpecialize(f"{problem}, and it {what}", users[0].node, "use a buffer without strides")
    return buffer


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
