"""check_barriers: a barrier is reached by all threads of a block or by none.

Which barriers stand under conditions that may differ between threads, `thread_regions.py` says; here two threads are
looked for that do differ. Where other variables take part they are at 0, and what depends on data is not judged.
"""

from __future__ import annotations

from typing import Final

from loopwright.analysis.accesses import Program
from loopwright.analysis.thread_axes import Axis
from loopwright.arith import Analyzer
from loopwright.ir import Expr, IntImm, Stmt, Var, const, substitute, variables_in
from loopwright.runtime.errors import LoopwrightError

_THREADS: Final = 1024  # tried for a witness


class BarrierNotReached(LoopwrightError, ValueError):
    """A barrier stands where some threads of the block come by and others do not.

    A barrier waits for every thread of the block: those that do come would wait for ever. Move the barrier out of the
    condition, and leave under it only what the chosen threads do.

    For example:

        from loopwright.analysis import check_program
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(32)):
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                if tx < 16:
                    A[tx] = T.float32(1)
                    T.evaluate(T.tvm_storage_sync("shared"))

        check_program(f)
    """

    code = "LW0835"

    def __init__(self, statement: Stmt, expr: Expr, axis: Axis, pair: tuple[tuple[int, int], tuple[int, int]]) -> None:
        (one, a), (other, b) = pair
        texts = [("true" if x else "false") if expr.dtype.is_bool else str(x) for x in (a, b)]
        what = f"{expr} is {texts[0]} for {axis.var.name} = {one} and {texts[1]} for {axis.var.name} = {other}"
        super().__init__(
            f"not all threads along {axis.tag} reach a barrier alike: {what}",
            at=statement,
            why="a barrier waits for all threads of the block",
            hint="move the barrier out of the condition or loop, and keep only the threads' own work in it",
            fields={"axis": axis.tag, "threads": (one, other)},
        )


def check_barriers(program: Program) -> None:
    """Raise BarrierNotReached for a barrier under a condition that differs between threads."""
    for statement, expr, axes in program.regions.divergent:
        for axis in axes:
            if isinstance(axis.extent, IntImm):
                pair = _differing(expr, axis)
                if pair is not None:
                    raise BarrierNotReached(statement, expr, axis, pair)


def _differing(expr: Expr, axis: Axis) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Two threads along an axis for which the expression is not the same; other variables are at 0."""
    facts = Analyzer()
    first: tuple[int, int] | None = None
    others: dict[Var, Expr] = {
        var: const(0, var.dtype) for var in variables_in(expr) if var is not axis.var and var.dtype.is_int
    }
    assert isinstance(axis.extent, IntImm)
    for thread in range(min(axis.extent.value, _THREADS)):
        value = facts.simplify(substitute(expr, {**others, axis.var: const(thread, axis.var.dtype)}))
        if not isinstance(value, IntImm):
            return None
        if first is None:
            first = thread, value.value
        elif value.value != first[1]:
            return first, (thread, value.value)
    return None
