"""Operands in registers: a left operand of tensor cores that the threads of a warpgroup have computed themselves.

    P = T.decl_buffer((64, 128), scope="shared")            →    P = T.decl_buffer((64,), scope="local")
    for j, h, e in T.grid(16, 2, 2):                             for j, h, e in T.grid(16, 2, 2):
        P[w * 16 + h * 8 + u, j * 8 + v * 2 + e] = …                 P[j * 4 + h * 2 + e] = …
    … a nest for tensor cores, of which P is A …

In the program P lies in shared memory, where all lanes see it. Thread t of a warpgroup (warp w = t // 32 of it,
u = t % 32 // 4, v = t % 4) multiplies rows w * 16 + h * 8 + u of A and columns j * 8 + v * 2 + e, as it holds
accumulators: where every thread of a role stores nothing but these elements, all that it multiplies is its own, and
lies in its registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.thread_axes import axis_of, is_of_block, scope_of, tag_of
from loopwright.analysis.warp_roles import core_of, role_of
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferStore,
    DeclBuffer,
    Expr,
    For,
    IntImm,
    Node,
    Range,
    Rewriter,
    Stmt,
    Var,
    collect_statements,
    const,
    decl_buffer,
    pre_order_visit,
    substitute,
)
from loopwright.transform.parts.swizzles import SWIZZLE
from loopwright.transform.parts.warpgroup_products import flat_index, shared_operands, thread_axes

_ROWS = 8  # rows of a half of a warp's; columns from one pair of a thread to the next


class RegisterOperand(NamedTuple):
    """An operand that becomes registers, and where its stores go in them."""

    registers: Buffer
    stores: dict[BufferStore, Expr]


class _Store(NamedTuple):
    store: BufferStore
    loops: tuple[For, ...]  # around it
    threads: dict[Var, int]
    role: AttrStmt | None  # around it


def register_operands(body: Stmt) -> dict[Var, RegisterOperand]:
    """The memory of a role that its threads store to and multiply, each what it has stored; by pointer."""
    result: dict[Var, RegisterOperand] = {}
    handed = {node.buffer_var for node in collect_statements(body, Allocate) if SWIZZLE in node.annotations}
    for role in collect_statements(body, AttrStmt):
        if role_of(role) is None:
            continue
        loops = [loop for loop in collect_statements(role.body, For) if core_of(loop) is not None]
        operands = {buffer.data for loop in loops for buffer in shared_operands(loop)} - handed
        if not operands:
            continue
        stores = [stored for stored in _stores_of(body) if stored.store.buffer.data in operands]
        for data in dict.fromkeys([stored.store.buffer.data for stored in stores]):
            mine = [stored for stored in stores if stored.store.buffer.data is data]
            operand = _operand(mine) if all([stored.role is role for stored in mine]) else None
            if operand is not None:
                result[data] = operand
    return result


def in_registers(body: Stmt, operands: Mapping[Var, RegisterOperand]) -> Stmt:
    """The statement with these operands in local memory, but for the nests that read them."""
    result: Stmt = _InRegisters(operands).visit(body) if operands else body
    return result


def _stores_of(body: Stmt) -> list[_Store]:
    """The stores to memory of the block."""
    result: list[_Store] = []
    loops: list[For] = []
    threads: dict[Var, int] = {}
    roles: list[AttrStmt] = []

    def look(node: Node) -> bool:
        if isinstance(node, Expr):
            return False
        if isinstance(node, AttrStmt) and tag_of(node).startswith("threadIdx"):
            threads[axis_of(node).var] = node.value.value if isinstance(node.value, IntImm) else 0
        if isinstance(node, For) or (isinstance(node, AttrStmt) and role_of(node) is not None):
            around: list[For] | list[AttrStmt] = loops if isinstance(node, For) else roles
            around.append(node)  # type: ignore[arg-type]
            pre_order_visit(node.body, look)
            around.pop()
            return False
        if isinstance(node, BufferStore) and is_of_block(scope_of(node.buffer.data)):
            result.append(_Store(node, tuple(loops), dict(threads), roles[-1] if roles else None))
        return True

    pre_order_visit(body, look)
    return result


def _operand(stores: Sequence[_Store]) -> RegisterOperand | None:
    """The operand; None where a thread stores what another one multiplies."""
    buffer = stores[0].store.buffer
    columns = buffer.shape[-1].value if isinstance(buffer.shape[-1], IntImm) else 0
    if columns == 0 or columns % (2 * _ROWS) or buffer.strides or len(buffer.shape) != 2:
        return None
    places: dict[BufferStore, Expr] = {}
    for stored in stores:
        place = _place(stored, columns)
        if place is None or stored.store.buffer is not buffer:
            return None
        places[stored.store] = place
    return RegisterOperand(decl_buffer((columns // 2,), buffer.dtype, buffer.name, scope="local"), places)


def _place(stored: _Store, columns: int) -> Expr | None:
    """Where a store goes in the registers of its thread; None where the element is not of its share."""
    store, facts = stored.store, Analyzer()
    axes, parts = thread_axes(stored.threads, facts)
    for loop in stored.loops:
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    variables = [loop.loop_var for loop in stored.loops]
    flat = facts.simplify(substitute(flat_index(store.buffer, store.indices), axes))
    linear = linear_coefficients(flat, [*parts, *variables], facts)
    if linear is None or not isinstance(linear[1], IntImm):
        return None
    steps = [step.value for step in linear[0] if isinstance(step, IntImm)]
    if len(steps) != len(linear[0]) or steps[: len(parts)] != [64 * columns, 16 * columns, columns, 2]:
        return None
    half, row = divmod(linear[1].value // columns, _ROWS)
    pair, column = divmod(linear[1].value % columns, _ROWS)
    if row:
        return None
    place: Expr = const(pair * 4 + half * 2 + column)
    for loop, step in zip(stored.loops, steps[len(parts) :], strict=True):
        last = loop.extent.value - 1 if isinstance(loop.extent, IntImm) else -1
        if step == 0:
            continue
        if last < 0 or step < 0 or not isinstance(loop.min, IntImm) or loop.min.value != 0:
            return None
        if step == _ROWS * columns:
            half, each = half + last, 2
        elif step % _ROWS == 0:
            pair, each = pair + last * (step // _ROWS), step // _ROWS * 4
        else:
            column, each = column + last * step, step
        place = place + loop.loop_var * each
    return place if half < 2 and column < 2 and pair < columns // _ROWS else None


class _InRegisters(Rewriter):
    def __init__(self, operands: Mapping[Var, RegisterOperand]) -> None:
        self.operands = operands

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr

    def visit_For(self, loop: For) -> Stmt:
        return loop if core_of(loop) is not None else self.rebuild(loop)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        body = self.visit(node.body)
        operand = self.operands.get(node.buffer_var)
        if operand is None:
            return node.with_(body=body)
        memory = operand.registers
        return node.with_(buffer_var=memory.data, extents=memory.shape, body=body)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        operand = self.operands.get(node.buffer.data)
        body = self.visit(node.body)
        return node.with_(buffer=node.buffer if operand is None else operand.registers, body=body)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        operand = self.operands.get(store.buffer.data)
        if operand is None:
            return store
        return BufferStore(operand.registers, store.value, (operand.stores[store],), span=store.span)
