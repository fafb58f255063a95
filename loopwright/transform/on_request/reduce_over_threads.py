"""reduce_over_threads: a value is reduced over the threads of a block by a tree in shared memory.

    with T.attr(T.comm_reducer(…), "reduce_scope", …):     →    S = T.decl_buffer((1, 8), scope="shared")
        T.tvm_thread_allreduce(1, P[0], True, R[0], tx)         S[0, tx] = P[0]
                                                                T.tvm_storage_sync("shared")
                                                                if tx < 4:
                                                                    S[0, tx] = S[0, tx] + S[0, tx + 4]
                                                                T.tvm_storage_sync("shared")
                                                                …   # then 2, then 1
                                                                R[0] = S[0, 0]

Of n threads the first half adds the second, until one sum is left: log2(n) barriers where threads that take turns need
2 n. Threads along axes that are not reduced over have a row of S of their own. A sum of floats is rounded in the order
of the tree.

Needs: `allreduce_threads`, extents of threads that are constants.  Leaves: no `tvm_thread_allreduce`.
"""

from __future__ import annotations

from math import prod

from loopwright.analysis.thread_axes import barrier, has_threads, is_allreduce, tag_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    BufferLoad,
    BufferStore,
    Call,
    CommReducer,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    IntImm,
    PrimFunc,
    Stmt,
    Var,
    const,
    decl_buffer,
    deep,
    is_one,
    seq,
    substitute,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.statements import StmtRewriter


class _Reduce(StmtRewriter):
    def __init__(self) -> None:
        self.threads: dict[Var, For] = {}  # loops around that are bound to threads of a block
        self.count = 0

    def visit_For(self, loop: For) -> Stmt:
        if not tag_of(loop).startswith("threadIdx"):
            return self.rebuild(loop)
        self.threads[loop.loop_var] = loop
        result: Stmt = self.rebuild(loop)
        del self.threads[loop.loop_var]
        return result

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        reducer, body = node.node, node.body
        if not isinstance(reducer, CommReducer) or not isinstance(body, Evaluate) or not is_allreduce(body):
            return self.rebuild(node)
        call = body.value
        assert isinstance(call, Call)
        _, part, condition, result, *over = call.args
        are_known = all([isinstance(loop.extent, IntImm) for loop in self.threads.values()])
        is_plain = len(reducer.lhs) == 1 and isinstance(result, BufferLoad)
        if not (is_plain and are_known and all([var in self.threads for var in over])):
            return node
        assert isinstance(result, BufferLoad)
        return self._tree(reducer, part, condition, result, [var for var in over if isinstance(var, Var)])

    def _tree(self, reducer: CommReducer, part: Expr, condition: Expr, result: BufferLoad, over: list[Var]) -> Stmt:
        others = [var for var in self.threads if var not in set(over)]
        count, rows = self._count(over), self._count(others)
        thread, row = self._number(over), self._number(others)
        name = f"red_buf{self.count}"
        self.count += 1
        shared = decl_buffer((rows, count), result.dtype, name, scope="shared")

        def cell(index: Expr) -> BufferLoad:
            return BufferLoad(shared, (row, index))

        if not is_one(condition):
            part = if_then_else(condition, part, reducer.identity_element[0])
        steps: list[Stmt] = [BufferStore(shared, part, (row, thread)), barrier()]
        half = 1
        while half < count:
            half *= 2
        while half > 1:
            half //= 2
            joined = {reducer.lhs[0]: cell(thread), reducer.rhs[0]: cell(thread + half)}
            store = BufferStore(shared, substitute(reducer.result[0], joined), (row, thread))
            has_partner = thread < min(half, count - half)
            steps += [IfThenElse(has_partner, store), barrier()]
        steps.append(BufferStore(result.buffer, cell(const(0, thread.dtype)), result.indices))
        steps.append(barrier())  # the memory may be filled again
        declared = DeclBuffer(shared, seq(steps))
        return Allocate(shared.data, shared.dtype, tuple(shared.shape), const(True), declared)

    def _count(self, variables: list[Var]) -> int:
        return prod([int(self.threads[var].extent) for var in variables])  # type: ignore[call-overload]

    def _number(self, variables: list[Var]) -> Expr:
        """Which of the threads along these axes it is."""
        number: Expr = const(0)
        for var in variables:
            loop = self.threads[var]
            number = number * loop.extent + (var - loop.min)
        return number


@function_pass
@deep
def reduce_over_threads(func: PrimFunc) -> PrimFunc:
    """Values are reduced over the threads of a block by a tree in shared memory."""
    return func.with_(body=_Reduce().visit(func.body)) if has_threads(func.body) else func
