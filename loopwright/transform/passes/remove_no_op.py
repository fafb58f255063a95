"""remove_no_op: what changes nothing goes: dead loops and branches, stores of a cell into itself, unused memory.

    B = T.decl_buffer((8,))                →    for i in range(8):
    for i in range(8):                              C[i] = A[i]
        B[i] = A[i]          # never read
        C[i] = A[i]
        A[i] = A[i]
    if x < 0:
        T.evaluate(0)

Memory that nobody reads is not written either, and what only it was computed from goes with it. Calls that are not pure
stay, as do assertions.

Needs: nothing.  Leaves: no statement without effect that shows from its form alone (`simplify` decides conditions).
"""

from __future__ import annotations

from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    Stmt,
    Var,
    Visitor,
    While,
    deep,
    is_no_op,
    logical_not,
    no_op,
    structural_equal,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.purity import is_pure
from loopwright.transform.parts.statements import StmtRewriter


class _Reads(Visitor):
    """Which variables are used, and which allocated memory is read (or handed on, so that it may be)."""

    def __init__(self) -> None:
        self.used: set[Var] = set()
        self.allocated: set[Var] = set()
        self.written: set[Var] = set()
        self.seen: set[Buffer] = set()

    def visit_Allocate(self, node: Allocate) -> None:
        self.allocated.add(node.buffer_var)
        self.visit_children(node)

    def visit_Var(self, var: Var) -> None:
        self.used.add(var)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.used.add(load.buffer.data)
        self._sizes(load.buffer)
        for index in load.indices:
            self.visit(index)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.written.add(store.buffer.data)
        self._sizes(store.buffer)
        self.visit(store.value)
        for index in store.indices:
            self.visit(index)

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        self._sizes(node.buffer)
        self.visit(node.body)

    def visit_Buffer(self, buffer: Buffer) -> None:
        self._sizes(buffer)
        self.used.add(buffer.data)

    def visit_Block(self, block: Block) -> None:
        # What blocks declare counts as used: schedules read it.
        for buffer in block.alloc_buffers:
            self.visit_Buffer(buffer)
        self.visit_children(block)

    def _sizes(self, buffer: Buffer) -> None:
        """The variables in a buffer's layout; buffers need not be declared by a statement."""
        if buffer in self.seen:
            return
        self.seen.add(buffer)
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            self.visit(part)


class _RemoveNoOp(StmtRewriter):
    def __init__(self, reads: _Reads) -> None:
        self.reads = reads

    def visit_For(self, loop: For) -> Stmt:
        if isinstance(loop.extent, IntImm) and loop.extent.value <= 0:
            return no_op()
        body = self.visit(loop.body)
        return no_op() if is_no_op(body) else loop.with_(body=body)

    def visit_While(self, node: While) -> Stmt:
        if isinstance(node.condition, IntImm) and not node.condition.value:
            return no_op()
        return node.with_(body=self.visit(node.body))  # an empty body may still never end

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        if isinstance(node.condition, IntImm):
            chosen = node.then_case if node.condition.value else node.else_case
            return no_op() if chosen is None else self.visit(chosen)
        then_case = self.visit(node.then_case)
        else_case = None if node.else_case is None else self.visit(node.else_case)
        if else_case is not None and is_no_op(else_case):
            else_case = None
        if not is_no_op(then_case):
            return node.with_(then_case=then_case, else_case=else_case)
        if else_case is not None:
            return IfThenElse._make(logical_not(node.condition), else_case, None, span=node.span)
        return no_op() if is_pure(node.condition) else Evaluate(node.condition)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        data, value = store.buffer.data, store.value
        if data in self.reads.allocated and data not in self.reads.used:
            if all([is_pure(part) for part in (value, *store.indices)]):
                return no_op()
            return Evaluate(value) if all([is_pure(index) for index in store.indices]) else store
        if isinstance(value, BufferLoad) and value.buffer is store.buffer and _same(store.indices, value.indices):
            return no_op()
        return store

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        return node if is_no_op(node) or not is_pure(node.value) else no_op()

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        body = self.visit(node.body)
        needed = node.var in self.reads.used or node.var in self.reads.written
        if is_pure(node.value) and (is_no_op(body) or not needed):
            return body
        if is_no_op(body):
            return Evaluate(node.value)  # for its effect
        return node.with_(body=body)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        body = self.visit(node.body)
        if is_no_op(body):
            return no_op()
        if node.buffer_var not in self.reads.used and node.buffer_var not in self.reads.written:
            return _Undeclare(node.buffer_var).visit(body)
        return node.with_(body=body)

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        body = self.visit(node.body)
        if node.buffer_var not in self.reads.used:
            return _Undeclare(node.buffer_var).visit(body)
        return node.with_(body=body)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        body = self.visit(node.body)
        return no_op() if is_no_op(body) else node.with_(body=body)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        body = self.visit(node.body)
        return no_op() if is_no_op(body) else node.with_(body=body)


class _Undeclare(StmtRewriter):
    """Leaves out the names of memory that is not there."""

    def __init__(self, data: Var) -> None:
        self.data = data

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        body: Stmt = self.visit(node.body)
        return body if node.buffer.data is self.data else node.with_(body=body)


def _same(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    return all([structural_equal(x, y) and is_pure(x) for x, y in zip(a, b, strict=True)])


@function_pass
@deep
def remove_no_op(func: PrimFunc) -> PrimFunc:
    """What changes nothing goes."""
    body = func.body
    while True:
        reads = _Reads()
        reads.visit(body)
        smaller: Stmt = _RemoveNoOp(reads).visit(body)
        if smaller is body:
            return func.with_(body=body)
        body = smaller
