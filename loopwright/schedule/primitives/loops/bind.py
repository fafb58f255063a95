"""bind: the iterations of a loop run on the threads of an axis.

    for i in range(64): …      →      for i in T.thread_binding(64, thread="threadIdx.x"): …

Proved, as for `parallel`: no two iterations touch one cell with a write among them. Where memory belongs to blocks or
threads (scopes "shared", "local"), or other loops are bound, it is also proved that every read sees what it saw. A loop
under another one that is bound to the same axis is run by the same threads, one iteration each, between barriers
(docs/semantics.md, "Threads"). Threads of `threadIdx` along a loop of a reduction take turns. Loops of one kernel that
share an axis are equally long.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import For, ForKind, IterType, IterVar, Var
from loopwright.schedule.errors import BadStepArgument, nearest
from loopwright.schedule.proof.loop_kinds import check_thread_loops, with_kind
from loopwright.schedule.step import Step
from loopwright.schedule.view import View

_KINDS: Final = ("blockIdx", "threadIdx", "vthread")
_AXES: Final = (*[f"{kind}.{axis}" for kind in _KINDS for axis in "xyz"], "vthread")


def bind(view: View, loop: For, thread_axis: str) -> Step:
    """Run the iterations on the threads of `thread_axis`."""
    if thread_axis not in _AXES:
        problem = f"there is no thread axis {thread_axis!r}"
        near = nearest(thread_axis, _AXES) if isinstance(thread_axis, str) else None
        hint = f"use one of {', '.join(_AXES)}"
        raise BadStepArgument("bind", problem, loop, f"did you mean {near!r}? {hint}" if near else hint)
    # No range of its own: it is the loop's, and a script says it there.
    axis = IterVar(None, Var(thread_axis, loop.loop_var.dtype), IterType.ThreadIndex, thread_axis)
    step = with_kind(view, loop, ForKind.THREAD_BINDING, axis)
    check_thread_loops("bind", View(step.after))  # before the proof, which takes one length of an axis for granted
    return step
