"""plan_storage: buffers that are never in use together share their memory.

    B = T.decl_buffer((1024,))                    →    B = T.allocate([1024], "float32", "global")
    C = T.decl_buffer((1024,))                         ...                      # B is written, and read into X
    ...                          # B → X, X → C        C_1 = T.decl_buffer((1024,), data=B)
    ...                          # C is read           ...                      # C lies where B was

Statements that follow one another in the scope of some allocations are points of time; a buffer lives from the first
of them that uses it to the last. Buffers of one type and scope share when their lives do not meet. They may meet in one
statement that reads the old buffer and writes the new one cell by cell, each cell once: then it works in place.

A statement is a whole loop nest, so threads that run it never see one memory as two buffers; what a loop's iterations
allocate for themselves is planned inside the loop. Registers are no memory: `local` buffers and very small ones stay
as they are. The setting `tir.disable_storage_rewrite` leaves all as it is.

Needs: no blocks.  Leaves: allocations, some of them shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.analysis.thread_axes import scope_of
from loopwright.arith import detect_iter_map
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferRewriter,
    BufferStore,
    DeclBuffer,
    Expr,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    Node,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    any_node,
    const,
    deep,
    pre_order_visit,
    structural_equal,
    uses_var,
)
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.flat_index import is_literal
from loopwright.transform.parts.purity import has_data
from loopwright.transform.parts.statements import StmtRewriter

SMALL_BYTES: Final = 256  # up to here, code generation keeps a buffer in registers
_SHARED_SCOPES: Final = ("global", "shared", "shared.dyn")


class _Life:
    """One allocation: when it is used first and last, counted in statements."""

    def __init__(self, node: Allocate, index: int) -> None:
        self.node, self.place = node, index
        self.first, self.last = -1, -1
        self.is_pinned = not _is_shareable(node)

    def use(self, time: int) -> None:
        self.first = time if self.first < 0 else self.first
        self.last = time


def _is_shareable(node: Allocate) -> bool:
    if node.annotations or not is_literal(node.condition, 1):
        return False
    if scope_of(node.buffer_var) not in _SHARED_SCOPES:
        return False
    count = _count(node)
    return count is None or count * node.dtype.nbytes > SMALL_BYTES


def _count(node: Allocate) -> int | None:
    """How many elements, if that is known here."""
    count = 1
    for extent in node.extents:
        if not isinstance(extent, IntImm):
            return None
        count *= extent.value
    return count


class _Pool:
    """Allocations that share memory, in the order in which they live."""

    def __init__(self, life: _Life) -> None:
        self.lives = [life]

    @property
    def outermost(self) -> _Life:
        return min(self.lives, key=lambda life: life.place)

    def takes(self, life: _Life, statement: Stmt, buffers: dict[Var, Buffer | None]) -> bool:
        """Whether `life` may follow here."""
        last, node = self.lives[-1], life.node
        if node.dtype is not last.node.dtype or scope_of(node.buffer_var) != scope_of(last.node.buffer_var):
            return False
        if _count(node) is None or _count(last.node) is None:
            if len(node.extents) != len(last.node.extents):
                return False
            if any(has_data(extent) for extent in node.extents):  # what is loaded may have changed in between
                return False
            if not all(structural_equal(a, b) for a, b in zip(node.extents, last.node.extents, strict=True)):
                return False
        if last.last < life.first:
            return True
        old, new = buffers.get(last.node.buffer_var), buffers.get(node.buffer_var)
        if last.last > life.first or old is None or new is None:
            return False
        return _works_in_place(statement, old, new)


class _Chain(Visitor):
    """The allocations of one scope, and the statements that run one after the other in it."""

    def __init__(self) -> None:
        self.lives: dict[Var, _Life] = {}
        self.statements: list[Stmt] = []
        self.buffers: dict[Var, Buffer | None] = {}  # the one buffer of an allocation; None when there are several

    def visit_Stmt(self, statement: Stmt) -> None:
        time = len(self.statements)
        self.statements.append(statement)
        self._use(statement, time)

    def _use(self, node: Node, time: int) -> None:
        def look(part: object) -> None:
            data = part.data if isinstance(part, Buffer) else part
            if isinstance(data, Var) and data in self.lives:
                self.lives[data].use(time)
                if isinstance(part, Buffer) and self.buffers.setdefault(data, part) is not part:
                    self.buffers[data] = None

        pre_order_visit(node, look)

    def _pin(self, value: Expr) -> None:
        if uses_var(value, self.lives.__contains__):
            for var, life in self.lives.items():
                life.is_pinned = life.is_pinned or uses_var(value, lambda used, var=var: used is var)  # type: ignore[misc]

    def visit_Allocate(self, node: Allocate) -> None:
        for size in (*node.extents, node.condition):
            self._use(size, len(self.statements))
        self.lives[node.buffer_var] = _Life(node, len(self.lives))
        self.visit(node.body)

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        data = node.buffer.data
        if data in self.lives and self.buffers.setdefault(data, node.buffer) is not node.buffer:
            self.buffers[data] = None
        self.visit(node.body)

    def visit_LetStmt(self, node: LetStmt) -> None:
        if node.value.dtype.kind == "handle":
            self._pin(node.value)
            self._pin_loads(node.value)
        else:
            self._use(node.value, len(self.statements))
        self.visit(node.body)

    def _pin_loads(self, value: Expr) -> None:
        def look(part: object) -> None:
            if isinstance(part, Buffer) and part.data in self.lives:
                self.lives[part.data].is_pinned = True

        pre_order_visit(value, look)

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        if isinstance(node.node, Var) and node.node in self.lives:
            self.lives[node.node].is_pinned = True
        self._use(node.value, len(self.statements))
        self.visit(node.body)

    def visit_SeqStmt(self, node: SeqStmt) -> None:
        for part in node.seq[:-1]:
            # An allocation in the middle has a scope of its own.
            self.visit_Stmt(part)
        self.visit(node.seq[-1])

    def pools(self) -> list[_Pool]:
        pools: list[_Pool] = []
        lives = [life for life in self.lives.values() if life.first >= 0 and not life.is_pinned]
        for life in sorted(lives, key=lambda life: (life.first, life.place)):
            statement = self.statements[life.first]
            fitting = [pool for pool in pools if pool.takes(life, statement, self.buffers)]
            if fitting:
                # The memory that was touched last is the one that is still near.
                max(fitting, key=lambda pool: pool.lives[-1].last).lives.append(life)
            else:
                pools.append(_Pool(life))
        return [pool for pool in pools if len(pool.lives) > 1]


def _works_in_place(statement: Stmt, old: Buffer, new: Buffer) -> bool:
    """Whether the statement only reads `old[i]` to write `new[i]`, every i once."""
    same = [*zip(old.shape, new.shape, strict=False), *zip(old.strides, new.strides, strict=False)]
    if len(old.shape) != len(new.shape) or len(old.strides) != len(new.strides):
        return False
    if not all(structural_equal(a, b) for a, b in [*same, (old.elem_offset, new.elem_offset)]):
        return False
    loops: dict[Var, Range] = {}
    while True:
        if isinstance(statement, For):
            # The bounds of an inner loop are read again in every iteration of the outer ones.
            if _touches(statement.min, (old, new)) or _touches(statement.extent, (old, new)):
                return False
            loops[statement.loop_var] = Range.from_min_extent(statement.min, statement.extent)
            statement = statement.body
        elif isinstance(statement, IfThenElse) and statement.else_case is None:
            if _touches(statement.condition, (old, new)):
                return False
            statement = statement.then_case
        else:
            break
    if not isinstance(statement, BufferStore) or statement.buffer is not new:
        return False
    indices = statement.indices
    if any(index.dtype.lanes > 1 or _touches(index, (old, new)) for index in indices):
        return False
    if not _reads_only(statement.value, old, new, indices):
        return False
    if not loops:
        return True
    result = detect_iter_map(indices, loops, True, "bijective")
    return len(result.indices) == len(indices)


def _touches(expr: Expr, buffers: Sequence[Buffer]) -> bool:
    memory = [buffer.data for buffer in buffers]
    return any_node(expr, lambda part: (part.data if isinstance(part, Buffer) else part) in memory)


def _reads_only(value: Expr, old: Buffer, new: Buffer, indices: Sequence[Expr]) -> bool:
    """Whether `value` uses `old` only as old[indices], and `new` not at all."""
    is_fine = True

    def look(part: object) -> bool:
        nonlocal is_fine
        if isinstance(part, BufferLoad) and part.buffer is old:
            is_fine = is_fine and all(structural_equal(a, b) for a, b in zip(part.indices, indices, strict=True))
            return False  # the indices are the store's, which touch neither
        if part is old or part is new or part is old.data or part is new.data:
            is_fine = False
        return True

    pre_order_visit(value, look)
    return is_fine


class _Share(BufferRewriter):
    """Puts buffers where their pools are."""

    def __init__(self, pools: Sequence[_Pool]) -> None:
        super().__init__()
        self.memory: dict[Var, Var] = {}
        self.sizes: dict[Var, tuple[Expr, ...]] = {}
        for pool in pools:
            storage = pool.outermost.node
            counts = [_count(life.node) for life in pool.lives]
            known = [count for count in counts if count is not None]
            if len(known) == len(counts) and max(known) != _count(storage):
                dtype = storage.extents[0].dtype if storage.extents else "int32"
                self.sizes[storage.buffer_var] = (const(max(known), dtype),)
            for life in pool.lives:
                if life is not pool.outermost:
                    self.memory[life.node.buffer_var] = storage.buffer_var

    def visit_Var(self, var: Var) -> Expr:
        return self.memory.get(var, var)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        if node.buffer_var in self.memory:
            body: Stmt = self.visit(node.body)
            return body
        extents = self.sizes.get(node.buffer_var, node.extents)
        return node.with_(extents=extents, body=self.visit(node.body))


class _PlanStorage(StmtRewriter):
    def visit_Allocate(self, node: Allocate) -> Stmt:
        chain = _Chain()
        chain.visit(node)
        pools = chain.pools()
        shared: Stmt = _Share(pools).visit(node) if pools else node
        return self._inside(shared)

    def _inside(self, statement: Stmt) -> Stmt:
        """The allocations of a scope that has been planned, and what is inside the statements that use them."""
        if isinstance(statement, (Allocate, DeclBuffer, AttrStmt, LetStmt)):
            return statement.with_(body=self._inside(statement.body))
        if isinstance(statement, SeqStmt):
            parts = [self.visit(part) for part in statement.seq[:-1]]
            parts.append(self._inside(statement.seq[-1]))
            changed = any(new is not old for new, old in zip(parts, statement.seq, strict=True))
            return statement.with_(seq=tuple(parts)) if changed else statement
        return self.visit(statement)


@function_pass
@deep
def plan_storage(func: PrimFunc) -> PrimFunc:
    """Buffers that are never in use together share their memory."""
    if PassContext.current().setting("tir.disable_storage_rewrite"):
        return func
    return func.with_(body=_PlanStorage().visit(func.body))
