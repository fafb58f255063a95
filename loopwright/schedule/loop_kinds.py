"""Loop kinds: who runs the iterations of a loop, and what that asks of the program.

`parallel`, `vectorize`, `unroll` and `bind` give a loop its kind. Later steps change what lies under such a loop, so
the engine asks here which loops have to be proved again.
"""

from __future__ import annotations

from typing import Final

from loopwright.analysis.thread_axes import axis_of, is_thread_loop, scope_of
from loopwright.analysis.thread_extents import extent_hint, find_mismatch_of_extents
from loopwright.ir import Allocate, AttrStmt, Block, For, ForKind, IterVar, Node, Stmt, Var, pre_order_visit
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View

CONCURRENT: Final = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING)  # iterations at the same time
_ON_THREADS: Final = (ForKind.PARALLEL, ForKind.THREAD_BINDING)


def with_kind(view: View, loop: For, kind: ForKind, binding: IterVar | None = None) -> Step:
    """The step that changes nothing but the kind of a loop; one that runs iterations together is proved race free.

    Where memory belongs to threads, or other loops are bound, binding one changes who sees what: that is proved too.
    """
    after = view.replaced(view.loop_path(loop.loop_var), loop.with_(kind=kind, thread_binding=binding))
    concurrent = [loop.loop_var] if kind in CONCURRENT else []
    proof = Proof.VALUES if kind is ForKind.THREAD_BINDING and has_own_order(view.function.body) else Proof.ORDER_KEPT
    return Step(after, proof, concurrent=concurrent, at=loop)


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


def has_own_order(body: Stmt) -> bool:
    """Whether threads are bound or memory belongs to them, so that the order of the text is not that of the program."""
    found = False

    def look(node: Node) -> bool:
        nonlocal found
        if isinstance(node, Block):
            found = found or any([buffer.scope() != "global" for buffer in node.alloc_buffers])
        elif isinstance(node, Allocate):
            found = found or scope_of(node.buffer_var) != "global"
        elif isinstance(node, Stmt):
            found = found or is_thread_loop(node)
        return not found and isinstance(node, (Stmt, Block))

    pre_order_visit(body, look)
    return found


class ThreadExtentsDiffer(ScheduleError):
    """Two loops of one kernel would be bound to the same thread axis, but have different numbers of iterations.

    An axis such as `threadIdx.x` has one length in the whole kernel, which is everything under its outermost bound
    loop. Split the longer loop so that its inner part is as long as the other, and bind that.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8, 64), name="A")
        B = te.compute((8, 64), lambda i, j: A[i, j] + 1, name="B")
        C = te.compute((8, 32), lambda i, j: B[i, j] * 2, name="C")
        sch = tir.Schedule(te.create_prim_func([A, B, C]))
        sch.bind(sch.get_loops("B")[0], "blockIdx.x")
        sch.reverse_compute_at("C", sch.get_loops("B")[0])
        sch.bind(sch.get_loops("B")[1], "threadIdx.x")
        sch.bind(sch.get_loops("C")[1], "threadIdx.x")  # 64 threads, 32 iterations
    """

    code = "LW0838"

    def __init__(self, method: str, first: For | AttrStmt, second: For | AttrStmt) -> None:
        one, other = axis_of(first), axis_of(second)
        super().__init__(
            f"{method}: {one.tag} would have {one.extent} threads for loop {one.var.name} and {other.extent} for loop "
            f"{other.var.name}",
            at=second,
            why=f"{one.tag} has one number of threads in the whole kernel",
            hint=extent_hint(first, second),
            fields={"axis": one.tag, "loops": (one.var.name, other.var.name)},
        )


def check_thread_loops(method: str, view: View) -> None:
    """Loops bound to one axis are equally long, and no threads run inside vectors."""
    check_threads_outside_vectors(method, view)
    if any([isinstance(loop, For) and loop.kind is ForKind.THREAD_BINDING for *_, loop in view.index.loops.values()]):
        found = find_mismatch_of_extents(view.function.body)
        if found is not None:
            raise ThreadExtentsDiffer(method, *found)


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
