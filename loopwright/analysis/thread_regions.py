"""write_regions: what the threads of a block do between two barriers becomes a nest of thread loops of its own.

    for tx in thread_binding(32):                     →    for k in range(4):
        for k in range(4):                                     barrier
            for u in thread_binding(32):                       for tx in thread_binding(32):
                S[u] = A[k, u]                                     let u = tx: S[u] = A[k, u]
            for v in range(32):                                barrier
                C[tx] = C[tx] + S[v]                           for tx in thread_binding(32):
                                                                   for v in range(32):
                                                                       C[tx] = C[tx] + S[v]

A reduction over threads becomes a serial loop over them, innermost (`takes_turns` knows it by its thread axis).

After that a program with threads is one like any other: its order is that of the text, and its thread loops run
iterations that must not disturb each other. Analysis reads programs in this form, for proofs and for checks. Where
threads meet barriers apart from each other, or the form cannot be told, `reason` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from loopwright.analysis.thread_axes import (
    Axis,
    axis_of,
    barrier,
    has_threads,
    is_allreduce,
    is_barrier,
    is_block_tag,
    is_of_block,
    is_shared_along,
    is_shuffle,
    is_thread_tag,
    is_virtual_tag,
    same_axis,
    scope_of,
    tag_of,
    uses,
)
from loopwright.analysis.thread_work import Together
from loopwright.ir import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BlockRealize,
    BufferLoad,
    BufferRealize,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Node,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    While,
    any_node,
    const,
    deep,
    seq,
)

_KERNELS: Final = 64  # whose regions are kept
_UNIFORM: Final = (ForKind.SERIAL, ForKind.UNROLLED)


class Regions:
    """The program with its regions written down, and what is known of them."""

    def __init__(self, body: Stmt) -> None:
        self.body = body
        self.aliases: dict[Var, Var] = {}  # a loop bound to an axis once more → the axis
        self.kernels: dict[Stmt, Stmt] = {}  # a thread loop of a region → the outermost loop of its threads
        self.hoisted: dict[Var, tuple[Axis, ...]] = {}  # memory that each thread allocates for several regions
        self.implied = True
        self.reason: str | None = None  # why the regions are not known
        self.divergent: list[tuple[Stmt, Expr, tuple[Axis, ...]]] = []  # barriers that only some threads may reach

    def add(self, other: Regions) -> None:
        """Take over what is known of another part of the program."""
        self.aliases |= other.aliases
        self.kernels |= other.kernels
        self.hoisted |= other.hoisted
        self.divergent += other.divergent
        self.reason = self.reason or other.reason


@deep
def write_regions(body: Stmt, implied: bool = True) -> Regions:
    """The regions of a program; its body itself where no threads are bound.

    Barriers that bound loops imply are written down, unless `implied` is off.
    """
    regions = Regions(body)
    regions.implied = implied
    if has_threads(body):
        regions.body = _Write(regions).visit(body)
    return regions


class _Write(Rewriter):
    """Finds the outermost thread loops."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions

    def visit_For(self, loop: For) -> Stmt:
        return self._threads(loop)

    def visit_AttrStmt(self, launch: AttrStmt) -> Stmt:
        return self._threads(launch)

    def _threads(self, node: For | AttrStmt) -> Stmt:
        if not is_thread_tag(tag_of(node)):
            return self.rebuild(node)
        own = _of_kernel(node, self.regions.implied)
        self.regions.add(own)
        return own.body


@lru_cache(maxsize=_KERNELS)
def _of_kernel(outermost: For | AttrStmt, implied: bool) -> Regions:
    """The regions of one kernel. Steps of a schedule change one kernel, and ask for the regions of all."""
    regions = Regions(outermost)
    regions.implied = implied
    regions.body = _Kernel(regions, outermost).write()
    return regions


class _Kernel:
    """The threads of one outermost thread loop."""

    def __init__(self, regions: Regions, outermost: For | AttrStmt) -> None:
        self.regions, self.outermost = regions, outermost
        self.together = Together(calls_cut=regions.implied)
        self.axes: list[Axis] = []
        self.lets: list[LetStmt] = []  # values that differ between threads, outermost first

    def write(self) -> Stmt:
        body: Stmt = self.outermost
        chain: list[For | AttrStmt] = []
        while isinstance(body, (For, AttrStmt)) and is_thread_tag(tag_of(body)):
            if same_axis(body, [axis_of(item) for item in chain]) is not None:
                break
            chain.append(body)
            body = body.body
        self.axes = [axis_of(item) for item in chain]
        if not self.together.is_cut(body, self.axes):
            for item in chain:
                self.regions.kernels[item] = self.outermost
            return self.outermost  # one region: the loops as they are
        return self.split(body)

    # --- regions ----------------------------------------------------------------------------------------------------

    def split(self, statement: Stmt) -> Stmt:
        """The statement, run by all threads, with thread loops inside and none around."""
        kept = self.together.once(statement, self.axes)
        turns = self.together.crossing(statement, self.axes)
        if kept is not None or turns:
            return self.between_barriers(self.region(statement, self.axes if kept is None else kept, turns))
        if not self.together.is_cut(statement, self.axes):
            return self.region(statement, self.axes)
        if is_barrier(statement):
            return statement
        if is_allreduce(statement):
            return self.fail("a value is reduced over threads by a call", statement)
        if is_shuffle(statement):
            return self.fail("the lanes of a warp exchange values", statement)
        if isinstance(statement, SeqStmt):
            return self.sequence(statement)
        if isinstance(statement, (For, AttrStmt)) and is_thread_tag(tag_of(statement)):
            return self.thread_loop(statement)
        return self.through(statement)

    def between_barriers(self, statement: Stmt) -> Stmt:
        return seq([barrier(), statement, barrier()]) if self.regions.implied else statement

    def sequence(self, statement: SeqStmt) -> Stmt:
        result: list[Stmt] = []
        run: list[Stmt] = []
        for part in statement.seq:
            if self.together.is_cut(part, self.axes):
                if run:
                    result.append(self.region(seq(run), self.axes))
                result.append(self.split(part))
                run = []
            else:
                run.append(part)
        if run:
            result.append(self.region(seq(run), self.axes))
        return seq(result)

    def region(self, statement: Stmt, axes: Sequence[Axis], turns: Sequence[Axis] = ()) -> Stmt:
        """Thread loops around a statement, those of threads that take turns innermost."""
        for let in reversed(self.lets):
            if uses(statement, {let.var}):
                statement = let.with_(body=statement)
        for axis in reversed([*[axis for axis in axes if axis not in turns], *turns]):
            kind = {"kind": ForKind.SERIAL} if axis in turns else {}
            statement = axis.node.with_(body=statement, **kind)
            self.regions.kernels[statement] = self.outermost
        return statement

    def thread_loop(self, node: For | AttrStmt) -> Stmt:
        axis = same_axis(node, self.axes)
        if axis is None:
            self.axes.append(axis_of(node))
            body = self.split(node.body)
            self.axes.pop()
        else:
            assert isinstance(node, For)
            self.regions.aliases[node.loop_var] = self.regions.aliases.get(axis.var, axis.var)
            low = axis.node.min if isinstance(axis.node, For) else const(0, axis.var.dtype)
            value: Expr = axis.var
            if not (isinstance(low, IntImm) and isinstance(node.min, IntImm) and low.value == node.min.value):
                value = axis.var + (node.min - low)
            value = value.astype(node.loop_var.dtype)
            body = self.let(LetStmt(node.loop_var, value, node.body))
        return body if is_virtual_tag(tag_of(node)) else self.between_barriers(body)

    # --- statements around barriers ---------------------------------------------------------------------------------

    def through(self, statement: Stmt) -> Stmt:
        """A statement with a barrier inside: all threads go through it together."""
        if isinstance(statement, LetStmt):
            return self.let(statement)
        for expr in _steering(statement):
            if self.together.depends(expr, self.axes) or _loads_private(expr):
                self.regions.divergent.append((statement, expr, tuple(self.axes)))
                return self.fail("a barrier stands where not all threads may reach it", statement)
        if isinstance(statement, For) and statement.kind not in _UNIFORM and not tag_of(statement):
            kind, name = statement.kind.name.lower(), statement.loop_var.name
            return self.fail(f"a barrier stands in the {kind} loop {name}", statement)
        if is_block_tag(tag_of(statement)):
            return self.fail(f"a barrier stands in a loop over {tag_of(statement)} inside threads", statement)
        if isinstance(statement, While):
            return self.fail("a barrier stands in a while loop", statement)
        if isinstance(statement, Allocate):
            self.hoist(statement.buffer_var)
        elif isinstance(statement, BufferRealize):
            self.hoist(statement.buffer.data)
        elif isinstance(statement, BlockRealize):
            for buffer in statement.block.alloc_buffers:
                self.hoist(buffer.data)
            return statement.with_(block=statement.block.with_(body=self.split(statement.block.body)))
        if isinstance(statement, IfThenElse):
            other = None if statement.else_case is None else self.split(statement.else_case)
            return statement.with_(then_case=self.split(statement.then_case), else_case=other)
        if isinstance(statement, (For, AttrStmt, Allocate, BufferRealize, DeclBuffer, AssertStmt)):
            return statement.with_(body=self.split(statement.body))
        return self.fail(f"a barrier stands in a {type(statement).__name__}", statement)

    def let(self, statement: LetStmt) -> Stmt:
        """A value that differs between threads is bound again in each region."""
        result = [axis for axis in self.axes if self.together.depends(statement.value, [axis])]
        if not result and not _loads_private(statement.value):
            return statement.with_(body=self.split(statement.body))
        if _loads_private(statement.value, everything=True):
            return self.fail(f"{statement.var.name} is read from memory and lives across a barrier", statement)
        for axis in result:
            self.together.alias(statement.var, axis)
        self.lets.append(statement)
        body = self.split(statement.body)
        self.lets.pop()
        return body

    def hoist(self, data: Var) -> None:
        if not is_of_block(scope_of(data)):
            scope = scope_of(data)
            self.regions.hoisted[data] = tuple([axis for axis in self.axes if not is_shared_along(scope, axis.tag)])

    def fail(self, reason: str, statement: Stmt) -> Stmt:
        """The regions are not known; the statement counts as one."""
        self.regions.reason = self.regions.reason or reason
        return self.region(statement, self.axes)


def _steering(statement: Stmt) -> list[Expr]:
    """What decides whether and how often the inside of a statement runs."""
    if isinstance(statement, For):
        return [statement.min, statement.extent]
    if isinstance(statement, (IfThenElse, While, AssertStmt)):
        return [statement.condition]
    if isinstance(statement, BlockRealize):
        return [statement.predicate, *statement.iter_values]
    return []


def _loads_private(expr: Expr, everything: bool = False) -> bool:
    """Whether a value is read from memory of the thread, or (`everything`) from any memory."""

    def is_private(node: Node) -> bool:
        if not isinstance(node, BufferLoad):
            return False
        scope = node.buffer.scope()
        return everything or not (scope == "global" or is_of_block(scope))

    return any_node(expr, is_private)
