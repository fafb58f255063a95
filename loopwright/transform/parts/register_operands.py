"""Operands in registers: a left operand of tensor cores that the threads of a warpgroup have computed themselves.

    P = T.decl_buffer((64, 128), "float16", scope="shared")            →    P = T.decl_buffer((64,), "float16", scope="local")
    for j, h, e in T.grid(16, 2, 2):                                        for j, h, e in T.grid(16, 2, 2):
        P[w * 16 + h * 8 + u, j * 8 + v * 2 + e] = …                            P[j * 4 + h * 2 + e] = …
    … a nest for tensor cores, of which P is A …

In the program P lies in shared memory, where all lanes see it. Thread t of a warpgroup (warp w = t // 32, u = t % 32 // 4,
v = t % 4) multiplies rows w * 16 + h * 8 + u of A and columns j * 8 + v * 2 + e, as it holds accumulators: where every
thread stores nothing but these elements, all that it multiplies is its own, and may lie in its registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.thread_axes import axis_of, is_of_block, scope_of, tag_of
from loopwright.analysis.warp_roles import core_of
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
from loopwright.transform.parts.warpgroup_products import flat_index, shared_operands, thread_number

_ROWS = 8  # rows of a warp's half; columns from one pair of a thread to the next


class NotInRegisters(Exception):
    """Why threads do not have what they multiply."""

    def __init__(self, loop: For, problem: str) -> None:
        super().__init__(problem)
        self.loop = loop


class RegisterOperand(NamedTuple):
    """An operand that becomes registers, and where its stores go."""

    registers: Buffer
    stores: dict[BufferStore, Expr]


class _Store(NamedTuple):
    store: BufferStore
    loops: tuple[For, ...]  # around it
    thread: Var


def register_operands(body: Stmt) -> dict[Var, RegisterOperand]:
    """The shared memory that threads store to and tensor cores read, by pointer; raises NotInRegisters.

    What tensor copies fill, nobody stores to.
    """
    readers: dict[Var, For] = {}
    for loop in collect_statements(body, For):
        if core_of(loop) is not None:
            for buffer in shared_operands(loop):
                readers.setdefault(buffer.data, loop)
    if not readers:
        return {}
    stores = [store for store in _stores_of(body) if store.store.buffer.data in readers]
    result: dict[Var, RegisterOperand] = {}
    for data in dict.fromkeys([store.store.buffer.data for store in stores]):
        result[data] = _operand([store for store in stores if store.store.buffer.data is data], readers[data])
    return result


def in_registers(body: Stmt, operands: Mapping[Var, RegisterOperand]) -> Stmt:
    """The statement with these operands in local memory, but for the nests that read them."""
    result: Stmt = _InRegisters(operands).visit(body) if operands else body
    return result


def _stores_of(body: Stmt) -> list[_Store]:
    """The stores to memory of the block."""
    result: list[_Store] = []
    loops: list[For] = []
    threads: list[Var] = []

    def look(node: Node) -> bool:
        if isinstance(node, Expr):
            return False
        is_axis = isinstance(node, AttrStmt) and tag_of(node).startswith("threadIdx")
        if isinstance(node, For) or is_axis:
            around: list[object] = loops if isinstance(node, For) else threads  # type: ignore[assignment]
            around.append(node if isinstance(node, For) else axis_of(node).var)  # type: ignore[arg-type]
            pre_order_visit(node.body, look)  # type: ignore[attr-defined]
            around.pop()
            return False
        if isinstance(node, BufferStore) and is_of_block(scope_of(node.buffer.data)) and len(threads) == 1:
            result.append(_Store(node, tuple(loops), threads[0]))
        return True

    pre_order_visit(body, look)
    return result


def _operand(stores: Sequence[_Store], reader: For) -> RegisterOperand:
    buffer = stores[0].store.buffer
    columns = buffer.shape[-1]
    if not isinstance(columns, IntImm) or columns.value % (2 * _ROWS) or buffer.strides or len(buffer.shape) != 2:
        raise NotInRegisters(reader, f"threads store to {buffer.name}, which has no rows of 16, 32, … columns")
    places = {store.store: _place(store, columns.value, reader) for store in stores}
    registers = decl_buffer((columns.value // 2,), buffer.dtype, buffer.name, scope="local")
    return RegisterOperand(registers, places)


def _place(stored: _Store, columns: int, reader: For) -> Expr:
    """Where a store goes in the registers of its thread."""
    store, buffer = stored.store, stored.store.buffer
    facts = Analyzer()
    number, parts = thread_number(stored.thread, facts)
    for loop in stored.loops:
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    variables = [loop.loop_var for loop in stored.loops]
    flat = substitute(flat_index(buffer, store.indices), {stored.thread: number})
    linear = linear_coefficients(facts.simplify(flat), [*parts, *variables], facts)
    steps = [step.value for step in linear[0] if isinstance(step, IntImm)] if linear is not None else []
    problem = f"a thread stores elements of {buffer.name} that another thread multiplies"
    if linear is None or len(steps) != len(parts) + len(variables) or not isinstance(linear[1], IntImm):
        raise NotInRegisters(reader, problem)
    if steps[: len(parts)] != [64 * columns, 16 * columns, columns, 2]:
        raise NotInRegisters(reader, problem)
    begin = linear[1].value
    row, column = begin // columns, begin % columns
    place: Expr = const(column // _ROWS * 4 + row // _ROWS * 2 + column % _ROWS)
    row, column, pair = row // _ROWS if row % _ROWS == 0 else 2, column // _ROWS, column % _ROWS
    for loop, step in zip(stored.loops, steps[len(parts) :], strict=True):
        last = loop.extent.value - 1 if isinstance(loop.extent, IntImm) else -1
        if step == 0:
            continue
        if last < 0 or not isinstance(loop.min, IntImm) or loop.min.value != 0:
            raise NotInRegisters(reader, problem)
        if step == _ROWS * columns:
            row, each = row + last, 2
        elif step % _ROWS == 0:
            column, each = column + last * (step // _ROWS), step // _ROWS * 4
        else:
            pair, each = pair + last * step, step
        place = place + loop.loop_var * each
    if row > 1 or pair > 1 or column >= columns // _ROWS:
        raise NotInRegisters(reader, problem)
    return place


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
