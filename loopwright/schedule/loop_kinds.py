"""Loop kinds: who runs the iterations of a loop, and what that asks of the program.

`parallel`, `vectorize`, `unroll` and `bind` give a loop its kind. Later steps change what lies under such a loop, so
the engine asks here which loops have to be proved again.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import For, ForKind, IterVar, Var
from loopwright.schedule.errors import NotSupported
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View

CONCURRENT: Final = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING)  # iterations at the same time
_ON_THREADS: Final = (ForKind.PARALLEL, ForKind.THREAD_BINDING)


def with_kind(view: View, loop: For, kind: ForKind, binding: IterVar | None = None) -> Step:
    """The step that changes nothing but the kind of a loop; one that runs iterations together is proved race free."""
    after = view.replaced(view.loop_path(loop.loop_var), loop.with_(kind=kind, thread_binding=binding))
    concurrent = [loop.loop_var] if kind in CONCURRENT else []
    return Step(after, Proof.ORDER_KEPT, concurrent=concurrent, at=loop)


def concurrent_loops(view: View) -> list[For]:
    """The loops whose iterations run at the same time."""
    loops = [path[-1] for path in view.index.loops.values()]
    return [loop for loop in loops if isinstance(loop, For) and loop.kind in CONCURRENT]


def to_prove_again(before: View, after: View, step: Step) -> list[Var]:
    """Loops whose iterations run at the same time, and under which something is new."""
    found = list(step.concurrent)
    for loop in concurrent_loops(after):
        old = before.index.loops.get(loop.loop_var)
        if loop.loop_var not in found and (old is None or old[-1] is not loop):
            found.append(loop.loop_var)
    return found


def check_threads_outside_vectors(method: str, view: View) -> None:
    """Lanes run in lockstep, and races are judged lane by lane: threads inside would need a proof across lanes."""
    for path in view.index.loops.values():
        loop, around = path[-1], path[:-1]
        if isinstance(loop, For) and loop.kind in _ON_THREADS:
            for outer in around:
                if isinstance(outer, For) and outer.kind is ForKind.VECTORIZED:
                    names = (
                        f"loop {loop.loop_var.name} runs on threads inside the vectorized loop {outer.loop_var.name}"
                    )
                    raise NotSupported(method, names, outer)
