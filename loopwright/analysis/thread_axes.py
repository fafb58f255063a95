"""Thread axes: who runs a bound loop, whose memory a scope is, and what the threads of a block do together.

Threads come in blocks. A loop bound to `blockIdx.*` runs its iterations as blocks, one bound to `threadIdx.*` as the
threads of a block, `vthread` as virtual threads, which are threads of a block as well. Memory is one for all (global),
one a block (shared), one for the threads along x (warp), or one a thread (local and every other scope).

What threads do is cut at barriers. A barrier is `tvm_storage_sync`, and:

    for tx in T.thread_binding(32, thread="threadIdx.x"):
        for k in range(4):
            for u in T.thread_binding(32, thread="threadIdx.x"):     a loop bound to an axis that is running already:
                S[u] = A[k, u]                                       thread tx runs iteration u = tx; barriers around it
            for v in range(32):
                C[tx] = C[tx] + S[v]

A loop bound to threads begins after a barrier and ends in one. A statement under such loops that writes nothing but
memory of the block, and does not depend on the thread, is run once, by one thread, with barriers around it.
Where a loop over threads is a loop of a reduction, the threads take turns: each adds its part to what those before it
made, in the order of their numbers, with barriers around the whole.

    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("B"):
            v_k = T.axis.reduce(32, tx)
            B[0] = B[0] + L[v_k]

An axis launched by an attribute (`T.launch_thread`) follows no such rules: all threads run everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IterType,
    IterVar,
    Node,
    PointerType,
    Stmt,
    Var,
    Visitor,
    pre_order_visit,
    uses_var,
)
from loopwright.runtime.dtype import HANDLE

LAUNCHES = ("thread_extent", "virtual_thread")
_BARRIER = "tir.tvm_storage_sync"
_ALLREDUCE = "tir.tvm_thread_allreduce"


class Axis(NamedTuple):
    """A running thread axis: its tag, the variable that tells the threads apart, and what launched it."""

    tag: str
    var: Var
    node: For | AttrStmt

    @property
    def is_launched(self) -> bool:
        """By an attribute rather than a loop."""
        return isinstance(self.node, AttrStmt)

    @property
    def extent(self) -> Expr:
        return self.node.value if isinstance(self.node, AttrStmt) else self.node.extent


def tag_of(node: Stmt) -> str:
    """The thread axis that a loop is bound to, or that an attribute launches; "" for every other statement."""
    if isinstance(node, For):
        return node.thread_binding.thread_tag if node.thread_binding is not None else ""
    if isinstance(node, AttrStmt) and node.attr_key in LAUNCHES and isinstance(node.node, IterVar):
        return node.node.thread_tag or "vthread"
    return ""


def takes_turns(node: Node) -> bool:
    """Whether a loop runs threads one after the other, as `thread_regions.py` writes a reduction over them."""
    return isinstance(node, For) and node.kind is ForKind.SERIAL and node.thread_binding is not None


def axis_of(node: For | AttrStmt) -> Axis:
    """The axis that a bound loop or a launch runs."""
    if isinstance(node, For):
        return Axis(tag_of(node), node.loop_var, node)
    assert isinstance(node.node, IterVar)
    return Axis(tag_of(node), node.node.var, node)


def is_block_tag(tag: str) -> bool:
    """Whether the iterations are blocks of threads."""
    return tag.startswith("blockIdx")


def is_thread_tag(tag: str) -> bool:
    """Whether the iterations are threads of a block, virtual ones included."""
    return tag.startswith("threadIdx") or is_virtual_tag(tag)


def is_virtual_tag(tag: str) -> bool:
    """Whether the iterations are virtual threads: each such loop is an axis of its own, whatever its tag."""
    return tag.startswith(("vthread", "cthread"))


# --- memory -------------------------------------------------------------------------------------------------------


def scope_of(data: Var) -> str:
    """The kind of memory behind a pointer: "global", "shared", "local", …"""
    annotation = data.type_annotation
    return (annotation.storage_scope if isinstance(annotation, PointerType) else "") or "global"


def is_per(scope: str, tag: str) -> bool:
    """Whether memory of `scope` is one for each index of the axis `tag`."""
    kind = scope.split(".")[0]
    if kind in ("global", "texture") or is_virtual_tag(tag):
        return False
    if is_block_tag(tag):
        return True
    return kind != "shared" and not (kind == "warp" and tag == "threadIdx.x")


def is_of_block(scope: str) -> bool:
    """Whether the threads of a block share memory of `scope`, and other blocks do not see it."""
    return scope.split(".")[0] == "shared"


def owner_tags(root: Stmt) -> dict[Var, frozenset[str]]:
    """Memory that is not one for all → the axes around all its uses whose every index has a copy of its own.

    What is also used outside the loops of an axis lives there, once.
    """
    walk = _Uses()
    walk.visit(root)
    return {data: frozenset([tag for tag in tags if is_per(scope_of(data), tag)]) for data, tags in walk.found.items()}


class _Uses(Visitor):
    def __init__(self) -> None:
        self.tags: frozenset[str] = frozenset()
        self.found: dict[Var, frozenset[str]] = {}
        self.sources: dict[Var, Var] = {}  # a name for a part of other memory → that memory

    def visit_Stmt(self, statement: Stmt) -> None:
        outside, tag = self.tags, tag_of(statement)
        if tag and not is_virtual_tag(tag):
            self.tags = self.tags | {tag}
        if isinstance(statement, BufferStore):
            self._use(statement.buffer.data)
        statement.each_child(self.visit)
        self.tags = outside

    def visit_Allocate(self, allocation: Allocate) -> None:
        self.visit(allocation.body)

    def visit_Block(self, block: Block) -> None:
        for match in block.match_buffers:
            self.sources[match.buffer.data] = match.source.buffer.data
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._use(load.buffer.data)
        load.each_child(self.visit)

    def visit_Var(self, var: Var) -> None:
        if var.dtype is HANDLE:
            self._use(var)

    def _use(self, data: Var) -> None:
        while data in self.sources:
            data = self.sources[data]
        if scope_of(data) != "global":
            self.found[data] = self.found.get(data, self.tags) & self.tags

    def visit_Buffer(self, _: Node) -> None:
        """A buffer that is named is not used."""

    visit_BufferRegion = visit_MatchBufferRegion = visit_Buffer


# --- what threads do together -------------------------------------------------------------------------------------


def is_barrier(statement: Stmt) -> bool:
    """Whether the statement is a barrier of the threads of a block."""
    return isinstance(statement, Evaluate) and _calls(statement.value, _BARRIER)


def is_allreduce(statement: Stmt) -> bool:
    """Whether the statement reduces a value over threads."""
    return isinstance(statement, Evaluate) and _calls(statement.value, _ALLREDUCE)


def _calls(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and expr.op.name == name


def same_axis(loop: Stmt, axes: Sequence[Axis]) -> Axis | None:
    """The running axis that a loop is bound to once more."""
    tag = tag_of(loop)
    if not isinstance(loop, For) or not tag.startswith("threadIdx"):
        return None
    return next((axis for axis in axes if axis.tag == tag), None)


def uses(node: Node, variables: set[Var]) -> bool:
    """Whether one of the variables is used."""
    return uses_var(node, variables.__contains__)


class Together:
    """Which statements under thread axes need all threads at once; asked once for each statement."""

    def __init__(self) -> None:
        self._cut: dict[tuple[Stmt, int], bool] = {}
        self._differ: dict[Var, set[Var]] = {}  # an axis → variables whose value differs between its threads

    def alias(self, var: Var, axis: Axis) -> None:
        """The value of `var` differs between the threads of an axis."""
        self._differ.setdefault(axis.var, set()).add(var)

    def names(self, axis: Axis) -> set[Var]:
        """The variables that tell the threads of an axis apart."""
        return {axis.var, *self._differ.get(axis.var, ())}

    def depends(self, node: Node, axes: Sequence[Axis]) -> bool:
        """Whether it names a thread."""
        return uses(node, {var for axis in axes for var in self.names(axis)})

    def once(self, statement: Stmt, axes: Sequence[Axis]) -> list[Axis] | None:
        """The axes over which the statement still runs, when one thread runs it for others; else None.

        It writes memory of the block only, reads nobody's private memory, and holds no barrier.
        """
        if all([axis.is_launched for axis in axes]) or not _writes_block_memory(statement):
            return None
        kept = [axis for axis in axes if axis.is_launched or self.depends(statement, [axis])]
        return kept if len(kept) < len(axes) else None

    def crossing(self, statement: Stmt, axes: Sequence[Axis]) -> list[Axis]:
        """The axes whose threads take turns at the statement: it is a reduction over them, in loops of its own."""
        inside = statement
        while not isinstance(inside, BlockRealize):
            if isinstance(inside, For) and inside.kind in (ForKind.SERIAL, ForKind.UNROLLED):
                inside = inside.body
            elif isinstance(inside, IfThenElse) and inside.else_case is None:
                inside = inside.then_case
            else:
                return []
        block = inside.block
        summed: list[Expr] = []
        data: list[Expr] = []
        for item, value in zip(block.iter_vars, inside.iter_values, strict=True):
            (summed if item.iter_type is IterType.CommReduce else data).append(value)
        if not summed or has_barrier(block.body):
            return []
        return [
            axis
            for axis in axes
            if axis.tag.startswith("threadIdx")
            and not axis.is_launched
            and any([self.depends(value, [axis]) for value in summed])
            and not any([self.depends(value, [axis]) for value in data])
        ]

    def is_cut(self, statement: Stmt, axes: Sequence[Axis]) -> bool:
        """Whether the threads have to reach something in the statement together."""
        key = statement, len(axes)
        found = self._cut.get(key)
        if found is None:
            found = self._cut[key] = self._ask(statement, axes)
        return found

    def _ask(self, statement: Stmt, axes: Sequence[Axis]) -> bool:
        if is_barrier(statement) or is_allreduce(statement) or self.once(statement, axes) is not None:
            return True
        if self.crossing(statement, axes):
            return True
        tag = tag_of(statement)
        if tag.startswith("threadIdx"):
            return True
        if tag:
            assert isinstance(statement, (For, AttrStmt))
            inner = [*axes, axis_of(statement)] if is_virtual_tag(tag) else axes
            return self.is_cut(statement.body, inner)
        if isinstance(statement, Allocate) and is_of_block(scope_of(statement.buffer_var)):
            return True
        if isinstance(statement, BufferRealize) and is_of_block(statement.buffer.scope()):
            return True
        if isinstance(statement, BlockRealize):
            block = statement.block
            return any([is_of_block(b.scope()) for b in block.alloc_buffers]) or (
                self._below(statement, axes, [*statement.iter_values, statement.predicate], [block.body])
            )
        if isinstance(statement, IfThenElse):
            parts = [statement.then_case, *([] if statement.else_case is None else [statement.else_case])]
            return self._below(statement, axes, [statement.condition], parts)
        if isinstance(statement, For):
            return self._below(statement, axes, [statement.min, statement.extent], [statement.body])
        return any([self.is_cut(child, axes) for child in statement.children() if isinstance(child, Stmt)])

    def _below(self, statement: Stmt, axes: Sequence[Axis], steers: Sequence[Expr], parts: Sequence[Stmt]) -> bool:
        """What is inside a statement that some threads may skip is for one thread: only barriers are looked for."""
        if any([self.depends(expr, axes) for expr in steers]):
            return any([has_barrier(part) for part in parts])
        return any([self.is_cut(part, axes) for part in parts])


def has_barrier(statement: Stmt) -> bool:
    """Whether something in the statement has to be reached by all threads, whoever they are."""
    found = False

    def look(node: Node) -> bool:
        nonlocal found
        if isinstance(node, Stmt):
            found = found or is_barrier(node) or is_allreduce(node) or tag_of(node).startswith("threadIdx")
        return not found and isinstance(node, (Stmt, Block))

    pre_order_visit(statement, look)
    return found


def _writes_block_memory(statement: Stmt) -> bool:
    """Whether a statement writes memory of the block, nothing else, and reads no private memory; without calls."""
    stores = 0
    fits = True
    own: set[Var] = set()

    def look(node: Node) -> bool:
        nonlocal stores, fits
        if isinstance(node, BufferStore):
            stores += 1
            fits = fits and is_of_block(node.buffer.scope())
        elif isinstance(node, BufferLoad):
            scope = node.buffer.scope()
            fits = fits and (scope == "global" or is_of_block(scope)) and node.buffer.data not in own
        elif isinstance(node, Call):
            fits = fits and bool(getattr(node.op, "is_pure", False))
        elif isinstance(node, Allocate):
            own.add(node.buffer_var)
        elif isinstance(node, Block):
            own.update([buffer.data for buffer in node.alloc_buffers])
        elif isinstance(node, Var) and node.dtype is HANDLE:
            fits = fits and node in own
        elif isinstance(node, Stmt) and tag_of(node):
            fits = False
        return fits

    pre_order_visit(statement, look)
    return fits and stores > 0 and not own


def is_thread_loop(node: Node) -> bool:
    """Whether it runs blocks or threads."""
    return isinstance(node, Stmt) and (
        (isinstance(node, For) and node.kind is ForKind.THREAD_BINDING) or bool(tag_of(node))
    )


def has_threads(root: Stmt) -> bool:
    """Whether loops are bound to threads, or threads launched."""
    found = False

    def look(node: Node) -> bool:
        nonlocal found
        found = found or is_thread_loop(node)
        return not found and isinstance(node, (Stmt, Block))

    pre_order_visit(root, look)
    return found
