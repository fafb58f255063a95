"""serialize_thread_reduction: threads that reduce to one cell take turns, and the turns become a loop with barriers.

    for tx in T.thread_binding(4, thread="threadIdx.x"):    →    for tx in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("B"):                                           for turn in range(4):
            v_k = T.axis.reduce(4, tx)                                   T.tvm_storage_sync("shared")
            B[0] = B[0] + L[v_k]                                         if tx == turn:
                                                                             with T.block("B"): …
                                                                     T.tvm_storage_sync("shared")

Which statements these are, `analysis/thread_work.py` says, by their blocks: so this comes before blocks are lowered.

Needs: inits written, blocks.  Leaves: no reduction over threads without barriers. For targets that have threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.thread_axes import (
    Axis,
    axis_of,
    barrier,
    has_threads,
    is_thread_tag,
    same_axis,
    tag_of,
)
from loopwright.analysis.thread_work import Together
from loopwright.ir import (
    Expr,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    Rewriter,
    Stmt,
    Var,
    deep,
    logical_and,
    seq,
)
from loopwright.ir.passes import function_pass


class _WriteTurns(Rewriter):
    def __init__(self) -> None:
        self.axes: list[Axis] = []
        self.together = Together()

    def visit_Stmt(self, statement: Stmt) -> Stmt:
        turns = self.together.crossing(statement, self.axes)
        return _in_turns(statement, turns) if turns else self.rebuild(statement)

    def visit_For(self, loop: For) -> Stmt:
        if not is_thread_tag(tag_of(loop)):
            return self.visit_Stmt(loop)
        axis = same_axis(loop, self.axes)
        if axis is not None:
            self.together.alias(loop.loop_var, axis)
            return self.rebuild(loop)
        self.axes.append(axis_of(loop))
        result: Stmt = self.rebuild(loop)
        self.axes.pop()
        return result


def _in_turns(statement: Stmt, axes: Sequence[Axis]) -> Stmt:
    """The statement, run by one thread after the other along `axes`."""
    loops: list[For] = []
    mine: list[Expr] = []
    for axis in axes:
        assert isinstance(axis.node, For)
        turn = Var("turn", axis.var.dtype)
        loops.append(axis.node.with_(loop_var=turn, kind=ForKind.SERIAL, thread_binding=None))
        mine.append(axis.var.equal(turn))
    body: Stmt = seq([barrier(), IfThenElse(logical_and(*mine), statement)])
    for loop in reversed(loops):
        body = loop.with_(body=body)
    return seq([body, barrier()])


@function_pass
@deep
def serialize_thread_reduction(func: PrimFunc) -> PrimFunc:
    """Threads that reduce to one cell take turns."""
    return func.with_(body=_WriteTurns().visit(func.body)) if has_threads(func.body) else func
