"""What the threads of a block do together, and what each does for itself.

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
from typing import Final

from loopwright.analysis.effects import effects, is_pure_call
from loopwright.analysis.thread_axes import (
    Axis,
    axis_of,
    is_allreduce,
    is_barrier,
    is_of_block,
    is_shuffle,
    is_shuffle_call,
    is_virtual_tag,
    is_warp_call,
    scope_of,
    tag_of,
    uses,
)
from loopwright.ir import (
    Allocate,
    AttrStmt,
    BlockRealize,
    BufferLoad,
    BufferRealize,
    Call,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IterType,
    LetStmt,
    Node,
    Stmt,
    Var,
    any_node,
    any_statement,
)

_MEETINGS: Final = (
    *("tir.role_barrier", "tir.mbarrier_wait", "tir.bulk_copy_async", "tir.tensor_copy_async"),
    *("tir.wgmma_fence", "tir.wgmma", "tir.wgmma_commit", "tir.wgmma_wait", "tir.set_max_registers"),
)


class Together:
    """Which statements under thread axes need all threads at once; asked once for each statement.

    A reduction over threads by a call is one of them, and so is a shuffle, unless `calls_cut` is off: a launch keeps
    such calls as they are.
    """

    def __init__(self, calls_cut: bool = True) -> None:
        self.calls_cut = calls_cut
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
        lets: list[LetStmt] = []
        while not isinstance(inside, BlockRealize):
            if isinstance(inside, For) and inside.kind in (ForKind.SERIAL, ForKind.UNROLLED):
                inside = inside.body
            elif isinstance(inside, LetStmt) and is_arithmetic(inside.value):
                lets.append(inside)
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
        result: list[Axis] = []
        for axis in axes:
            names = self.names(axis)
            for let in lets:
                if uses(let.value, names):
                    names.add(let.var)
            if axis.tag.startswith("threadIdx") and not axis.is_launched:
                if any([uses(value, names) for value in summed]) and not any([uses(value, names) for value in data]):
                    result.append(axis)
        return result

    def is_cut(self, statement: Stmt, axes: Sequence[Axis]) -> bool:
        """Whether the threads have to reach something in the statement together."""
        key = statement, len(axes)
        result = self._cut.get(key)
        if result is None:
            result = self._cut[key] = self._ask(statement, axes)
        return result

    def _ask(self, statement: Stmt, axes: Sequence[Axis]) -> bool:
        if is_barrier(statement) or self.once(statement, axes) is not None:
            return True
        if is_allreduce(statement) or is_shuffle(statement):
            return self.calls_cut
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
                self._below(axes, [*statement.iter_values, statement.predicate], [block.body])
            )
        if isinstance(statement, IfThenElse):
            parts = [statement.then_case, *([] if statement.else_case is None else [statement.else_case])]
            return self._below(axes, [statement.condition], parts)
        if isinstance(statement, For):
            return self._below(axes, [statement.min, statement.extent], [statement.body])
        return any([self.is_cut(child, axes) for child in statement.children() if isinstance(child, Stmt)])

    def _below(self, axes: Sequence[Axis], steers: Sequence[Expr], parts: Sequence[Stmt]) -> bool:
        """What is inside a statement that some threads may skip is for one thread: only barriers are looked for."""
        if any([self.depends(expr, axes) for expr in steers]):
            return any([has_barrier(part) for part in parts])
        return any([self.is_cut(part, axes) for part in parts])


def is_arithmetic(value: Expr) -> bool:
    """Whether it does not matter when the value is computed: it reads no memory, and calls nothing with effects."""
    return not any_node(
        value, lambda node: isinstance(node, BufferLoad) or (isinstance(node, Call) and not is_pure_call(node))
    )


def has_barrier(statement: Stmt) -> bool:
    """Whether something in the statement has to be reached by all threads, whoever they are."""
    return any_statement(
        statement, lambda node: is_barrier(node) or is_allreduce(node) or tag_of(node).startswith("threadIdx")
    )


def has_meeting(statement: Stmt) -> bool:
    """The same, or by all threads of a role, or all lanes of a warp."""
    return has_barrier(statement) or any_node(statement, is_shuffle_call) or any_statement(statement, _is_met)


def _is_met(statement: Stmt) -> bool:
    call = statement.value if isinstance(statement, Evaluate) else None
    return is_warp_call(statement) or (isinstance(call, Call) and call.op.name in _MEETINGS)


def _writes_block_memory(statement: Stmt) -> bool:
    """Whether a statement writes memory of the block, nothing else, and reads no private memory; without calls."""
    done = effects(statement)
    if not done.stores or done.calls or done.hints or done.pointers or done.named or done.allocated:
        return False
    reads = {load.buffer.scope() for load in done.loads}
    if not all([is_of_block(store.buffer.scope()) for store in done.stores]):
        return False
    if not all([scope == "global" or is_of_block(scope) for scope in reads]):
        return False
    return not any_node(statement, lambda node: isinstance(node, Stmt) and bool(tag_of(node)))
