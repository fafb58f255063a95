"""add_thread_loop: the threads of an axis run a loop together, from its first iteration to its last.

    for t in range(9):                                       →    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for i in T.thread_binding(4, thread="threadIdx.x"):           for t in range(9):
            with T.block("B"): …                                          for i in T.thread_binding(4, thread=…):
                                                                              with T.block("B"): …

Loops inside that are bound to the same axis are no second loops then: each thread runs the iteration of its own number,
between barriers (docs/semantics.md, "Threads"). So nine launches of four threads become one. Proved: every read sees
what it saw, and what is bound to no thread is not done by all of them at once.
"""

from __future__ import annotations

from loopwright.ir import For, ForKind, IterType, IterVar, Var, const
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.proof.loop_kinds import check_thread_loops
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View

_AXES = tuple([f"threadIdx.{axis}" for axis in "xyz"])


def add_thread_loop(view: View, loop: For, thread_axis: str, extent: int) -> Step:
    """A loop over `extent` threads of `thread_axis` right above `loop`."""
    if thread_axis not in _AXES:
        problem = f"{thread_axis!r} is no axis of threads that can wait for each other"
        raise BadStepArgument("add_thread_loop", problem, loop, f"use one of {', '.join(_AXES)}")
    if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
        raise BadStepArgument("add_thread_loop", f"the extent is {extent!r}", loop, "give the number of threads")
    dtype = loop.loop_var.dtype
    thread = Var(thread_axis.replace("threadIdx.", "t"), dtype)
    axis = IterVar(None, Var(thread_axis, dtype), IterType.ThreadIndex, thread_axis)
    new = For(thread, const(0, dtype), const(extent, dtype), ForKind.THREAD_BINDING, loop, thread_binding=axis)
    step = Step(
        view.replaced(view.loop_path(loop.loop_var), new),
        Proof.VALUES,
        concurrent=[thread],
        results=[LoopResult(thread)],
        at=loop,
    )
    check_thread_loops("add_thread_loop", View(step.after))
    return step
