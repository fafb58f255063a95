"""inject_virtual_thread: virtual threads take turns, statement by statement.

    for v in T.thread_binding(2, thread="vthread.x"):    →    B = T.decl_buffer((2, 1))
        B = T.decl_buffer((1,))                               for k in range(8):
        for k in range(8):                                        for v in T.unroll(2):
            B[0] = A[v, k]                                            B[v, 0] = A[v, k]
            C[v] = C[v] + B[0]                                    for v in T.unroll(2):
                                                                      C[v] = C[v] + B[v, 0]

The loops inside are shared by all threads, and memory that each thread allocates exists once a thread: so what the
threads read alike is near, and the machine has independent work side by side. Threads do not touch each other's cells
(binding a loop proves it), so their turns do not matter. Memory in which all of them store the same values, a tile that
they read together, exists once and is filled once. What differs in shape between threads (a loop whose length
depends on the thread, a branch on it, a `while`) runs thread by thread; so does all, where a thread may return.

Needs: no blocks; `canonicalize_loops`, which makes serial loops of the threads, under a mark.  Leaves: no such mark.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from loopwright.analysis.effects import stored_memory
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterVar,
    LetStmt,
    Node,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    any_statement,
    collect,
    collect_statements,
    const,
    deep,
    is_return,
    pre_order_visit,
    seq,
    uses_var,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.flat_index import is_literal
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.purity import has_data, is_pure
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.passes.canonicalize_loops import VIRTUAL_THREAD

MOST_THREADS: Final = 64
_UNROLLED: Final = 16
_PLAIN: Final = (BufferStore, SeqStmt, IfThenElse, LetStmt)


class _InjectVirtualThread(StmtRewriter):
    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        if VIRTUAL_THREAD not in loop.annotations:
            return loop
        rest = {key: value for key, value in loop.annotations.items() if key != VIRTUAL_THREAD}
        loop = loop.with_(annotations=rest)
        if not isinstance(loop.extent, IntImm) or loop.extent.value > MOST_THREADS or rest:
            return loop
        if any_node(loop.body, is_return):
            return loop  # what later threads do is left undone
        return _TakeTurns(loop.loop_var, loop.extent.value, loop.body).visit(loop.body)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        """A launch of virtual threads, where the pass is called by itself."""
        node = node.with_(body=self.visit(node.body))
        if node.attr_key != "virtual_thread" or not isinstance(node.node, IterVar):
            return node
        turns = _TakeTurns(node.node.var, node.value.value if isinstance(node.value, IntImm) else 0, node.body)
        if not isinstance(node.value, IntImm) or node.value.value > MOST_THREADS or any_node(node.body, is_return):
            return For(node.node.var, const(0, node.value.dtype), node.value, ForKind.SERIAL, node.body)
        result: Stmt = turns.visit(node.body)
        return result


class _TakeTurns(StmtRewriter):
    """The body of all threads from the body of one."""

    def __init__(self, thread: Var, count: int, body: Stmt) -> None:
        self.thread, self.count = thread, count
        self.private = {node.buffer_var for node in collect_statements(body, Allocate)}  # each thread has its own
        self.common: set[Var] = set()  # unless all would hold the same

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        return store if store.buffer.data in self.common else self.each(store)

    def each(self, statement: Stmt) -> Stmt:
        """The statement, one thread after the other."""
        var = Var(self.thread.name, self.thread.dtype)
        kind = ForKind.UNROLLED if self.count <= _UNROLLED else ForKind.SERIAL
        body = substitute_folding(statement, {self.thread: var})
        return For(var, const(0, var.dtype), const(self.count, var.dtype), kind, body)

    def agree(self, expr: Expr) -> bool:
        """Whether all threads see one value, whenever they ask."""
        return not uses_var(expr, lambda used: used is self.thread) and not has_data(expr)

    visit_Stmt = each

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return seq([self.visit(part) for part in node.seq])

    def visit_For(self, loop: For) -> Stmt:
        is_shared = loop.kind in (ForKind.SERIAL, ForKind.UNROLLED) or self._is_filled_once(loop, self.common)
        if not is_shared or not self.agree(loop.min) or not self.agree(loop.extent):
            return self.each(loop)
        return loop.with_(body=self.visit(loop.body))

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        if not self.agree(node.condition):
            return self.each(node)
        other = None if node.else_case is None else self.visit(node.else_case)
        return node.with_(then_case=self.visit(node.then_case), else_case=other)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        return node.with_(body=self.visit(node.body)) if self.agree(node.value) else self.each(node)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        return node.with_(body=self.visit(node.body)) if self.agree(node.value) else self.each(node)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        return node.with_(body=self.visit(node.body))

    def visit_Allocate(self, node: Allocate) -> Stmt:
        buffer = _only_buffer(node)
        if buffer is None or not all([self.agree(extent) for extent in node.extents]):
            return self.each(node)
        if self._is_alike(node.body, node.buffer_var):
            self.private.discard(node.buffer_var)
            self.common.add(node.buffer_var)
            return node.with_(body=self.visit(node.body))
        count = const(self.count, buffer.shape[0].dtype if buffer.shape else "int32")
        private = buffer.with_(shape=(count, *buffer.shape))
        body = _Private(buffer, private, self.thread).visit(node.body)
        return node.with_(extents=private.shape, body=self.visit(body))

    def _is_alike(self, statement: Stmt, data: Var) -> bool:
        """Whether all threads store the same values to the same cells of the memory, each of them at the same time.

        That is so where what is stored depends on no thread, and no statement around it runs thread by thread.
        """
        if isinstance(statement, SeqStmt):
            return all([self._is_alike(part, data) for part in statement.seq])
        if isinstance(statement, BufferStore) and statement.buffer.data is data:
            parts = (statement.value, *statement.indices)
            loads = [load for part in parts for load in collect(part, BufferLoad)]
            is_plain = not any([uses_var(part, lambda used: used is self.thread) for part in parts])
            is_plain = is_plain and all(map(is_pure, parts))
            return is_plain and not any([load.buffer.data in self.private for load in loads])
        inner: list[Stmt] = []
        conditions: list[Expr] = []
        if isinstance(statement, For):
            is_shared = statement.kind in (ForKind.SERIAL, ForKind.UNROLLED)
            if is_shared or self._is_filled_once(statement, {*self.common, data}):
                inner, conditions = [statement.body], [statement.min, statement.extent]
        elif isinstance(statement, IfThenElse):
            other = [] if statement.else_case is None else [statement.else_case]
            inner, conditions = [statement.then_case, *other], [statement.condition]
        elif isinstance(statement, (LetStmt, AttrStmt)):
            inner, conditions = [statement.body], [statement.value]
        elif isinstance(statement, DeclBuffer):
            inner = [statement.body]
        elif isinstance(statement, Allocate) and _only_buffer(statement) is not None:
            inner, conditions = [statement.body], list(statement.extents)
        if inner and all([self.agree(condition) for condition in conditions]):
            return all([self._is_alike(part, data) for part in inner])
        return data not in stored_memory(statement)

    def _is_filled_once(self, loop: For, common: Container[Var]) -> bool:
        """Whether the loop is a vector of stores to common memory, and nothing else: it stays whole."""
        if loop.kind is not ForKind.VECTORIZED or any_statement(loop.body, lambda part: not isinstance(part, _PLAIN)):
            return False
        return all([data in common for data in stored_memory(loop)])


def _only_buffer(node: Allocate) -> Buffer | None:
    """The one plain buffer through which the memory is used, by its elements alone."""
    result: set[Buffer] = set()
    is_plain = True

    def look(part: Node) -> None:
        nonlocal is_plain
        if isinstance(part, Buffer) and part.data is node.buffer_var:
            result.add(part)
        elif part is node.buffer_var:
            is_plain = False

    pre_order_visit(node.body, look)
    if not is_plain or len(result) != 1:
        return None
    (buffer,) = result
    return buffer if not buffer.strides and is_literal(buffer.elem_offset, 0) else None


class _Private(Rewriter):
    """Accesses to a buffer that becomes one a thread."""

    def __init__(self, buffer: Buffer, private: Buffer, thread: Var) -> None:
        self.buffer, self.private, self.thread = buffer, private, thread

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return self.private if buffer is self.buffer else buffer

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer is not self.buffer:
            return self.rebuild(load)
        return BufferLoad._make(self.private, (self.thread, *rewrite_tuple(load.indices, self.visit)), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        if store.buffer is not self.buffer:
            return self.rebuild(store)
        indices = (self.thread, *rewrite_tuple(store.indices, self.visit))
        return BufferStore(self.private, self.visit(store.value), indices, span=store.span)


@function_pass
@deep
def inject_virtual_thread(func: PrimFunc) -> PrimFunc:
    """Virtual threads take turns, statement by statement."""
    return func.with_(body=_InjectVirtualThread().visit(func.body))
