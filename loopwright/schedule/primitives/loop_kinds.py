"""parallel, vectorize, unroll, bind: who runs the iterations of a loop.

    for i in range(n): …      →      for i in T.parallel(n): …

Parallel and bound loops are proved free of races: no two iterations touch one cell with a write among them. A
vectorized loop runs in lockstep, each statement's loads before its stores; proved that this keeps every value.
Unrolling changes nothing.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import For, ForKind, IntImm, IterType, IterVar, Range, Var
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View

_THREADS: Final = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread")


def parallel(view: View, loop: For) -> Step:
    """Run the iterations on threads."""
    return _with_kind(view, loop, ForKind.PARALLEL)


def vectorize(view: View, loop: For) -> Step:
    """Run the iterations as the lanes of a vector."""
    if not isinstance(loop.extent, IntImm):
        problem = f"loop {loop.loop_var.name} has extent {loop.extent}: a vector has a constant number of lanes"
        raise NotSupported(
            "vectorize", problem, loop, "split the loop by a constant factor and vectorize the inner part"
        )
    return _with_kind(view, loop, ForKind.VECTORIZED)


def unroll(view: View, loop: For) -> Step:
    """Write the iterations out one after the other."""
    after = view.replaced(view.loop_path(loop.loop_var), loop.with_(kind=ForKind.UNROLLED, thread_binding=None))
    return Step(after, Proof.ORDER_KEPT, at=loop)


def bind(view: View, loop: For, thread_axis: str) -> Step:
    """Run the iterations on the threads of `thread_axis`."""
    if thread_axis not in _THREADS and not thread_axis.startswith("vthread."):
        raise BadStepArgument(
            "bind", f"there is no thread axis {thread_axis!r}", loop, f"use one of {', '.join(_THREADS)}"
        )
    axis = IterVar(Range(0, loop.extent), Var(thread_axis, loop.loop_var.dtype), IterType.ThreadIndex, thread_axis)
    new = loop.with_(kind=ForKind.THREAD_BINDING, thread_binding=axis)
    return Step(
        view.replaced(view.loop_path(loop.loop_var), new), Proof.ORDER_KEPT, concurrent=[loop.loop_var], at=loop
    )


def _with_kind(view: View, loop: For, kind: ForKind) -> Step:
    after = view.replaced(view.loop_path(loop.loop_var), loop.with_(kind=kind, thread_binding=None))
    return Step(after, Proof.ORDER_KEPT, concurrent=[loop.loop_var], at=loop)
