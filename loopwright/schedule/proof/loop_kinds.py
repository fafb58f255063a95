"""Loop kinds: who runs the iterations of a loop, and what that asks of the program.

`parallel`, `vectorize`, `unroll` and `bind` give a loop its kind. Later steps change what lies under such a loop, so
the engine asks here which loops have to be proved again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.analysis.memory_owners import written_owners
from loopwright.analysis.thread_axes import axis_of
from loopwright.analysis.thread_extents import extent_hint, find_mismatch_of_extents
from loopwright.analysis.thread_regions import write_regions
from loopwright.ir import (
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    ForKind,
    IterType,
    IterVar,
    Node,
    Stmt,
    Var,
    pre_order_visit,
    uses_var,
)
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.proof.lemmas import beside, memory_named
from loopwright.schedule.proof.thread_reduction_order import only_turns_change, runs_alike
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import Path, View

CONCURRENT: Final = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING)  # iterations at the same time
_ON_THREADS: Final = (ForKind.PARALLEL, ForKind.THREAD_BINDING)


def with_kind(view: View, loop: For, kind: ForKind, binding: IterVar | None = None) -> Step:
    """The step that changes nothing but the kind of a loop; one that runs iterations together is proved race free.

    Where memory belongs to threads, or barriers cut what they do, binding a loop, or freeing one that was bound,
    changes who sees what: that is proved as well.
    """
    after = view.replaced(view.loop_path(loop.loop_var), loop.with_(kind=kind, thread_binding=binding))
    concurrent = [loop.loop_var] if kind in CONCURRENT else []
    if ForKind.THREAD_BINDING not in (kind, loop.kind):
        return Step(after, Proof.ORDER_KEPT, concurrent=concurrent, at=loop)
    is_ordered = all([write_regions(func.body).body is func.body for func in (view.function, after)])
    is_ordered = is_ordered or runs_alike(view.function, after) or only_turns_change(View(after), loop.loop_var)
    owned = owned_memory(after.body)
    proof = Proof.ORDER_KEPT if is_ordered and not owned else Proof.VALUES
    return Step(after, proof, concurrent=concurrent, at=loop, buffers=owned if is_ordered else None)


def concurrent_loops(view: View) -> list[For]:
    """The loops whose iterations run at the same time."""
    loops = [path[-1] for path in view.index.loops.values()]
    return [loop for loop in loops if isinstance(loop, For) and loop.kind in CONCURRENT]


def to_prove_again(before: View, after: View, step: Step) -> list[Var]:
    """Loops whose iterations run at the same time, and under which something is new, or whose memory is used outside.

    Memory that is used in a parallel loop only may be that of each iteration; used elsewhere too, it is one for all.
    Lanes of a vector have no memory of their own. Where threads are, all loops: which iterations they run, what memory
    they have and where they wait depends on the other bound loops.
    """
    result = list(step.concurrent)
    if before.index.has_threads or after.index.has_threads:
        return list(dict.fromkeys([*result, *[loop.loop_var for loop in concurrent_loops(after)]]))
    for loop in concurrent_loops(after):
        old, new = before.index.loops.get(loop.loop_var), after.index.loops[loop.loop_var]
        if loop.loop_var in result:
            continue
        if old is None or old[-1] is not loop or (loop.kind in _ON_THREADS and _shares_more(loop, old, new)):
            result.append(loop.loop_var)
    return result


def _shares_more(loop: For, old: Path, new: Path) -> bool:
    """Whether memory that the loop names is named outside of it, and was not before."""
    known = set(beside(old))
    added = frozenset[Var]().union(*[memory_named(node) for node in beside(new) if node not in known])
    shared = added & memory_named(loop) if added else added
    return bool(shared) and not shared <= frozenset().union(*map(memory_named, known))


def owned_memory(statement: Stmt) -> list[Buffer]:
    """The buffers whose memory is not one for all: who sees what in them depends on the loops that are bound."""
    told = written_owners(statement)  # what it says of a statement is kept
    if told is not None:
        return list(told)
    result: dict[Buffer, None] = {}

    def look(node: Node) -> None:
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.scope() != "global":
            result[node.buffer] = None
        elif isinstance(node, Block):
            result.update({match.source.buffer: None for match in node.match_buffers})

    pre_order_visit(statement, look)
    return list(result)


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

    code = "LW0261"

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
    if view.index.has_threads:
        result = find_mismatch_of_extents(view.function.body, certain=False)
        if result is not None:
            raise ThreadExtentsDiffer(method, *result)
        _check_sums(method, view)
        _check_order(method, view)
        _check_windows(method, view)


def _check_order(method: str, view: View) -> None:
    """Blocks hold threads, and no other blocks along the same axis: who would run them?

    No loop over blocks stands between loops over threads, which wait for each other there.
    """
    for path in view.index.loops.values():
        bound = [loop for loop in path if isinstance(loop, For) and loop.kind is ForKind.THREAD_BINDING]
        tags = [axis_of(loop).tag for loop in bound]
        again = next((k for k, tag in enumerate(tags) if tag.startswith("blockIdx") and tag in tags[:k]), None)
        if again is not None:
            names = [f"loop {bound[k].loop_var.name} over {tags[again]}" for k in (again, tags.index(tags[again]))]
            hint = "bind one of them to another axis, or leave it unbound"
            raise NotSupported(method, f"{names[0]} is in {names[1]}", bound[again], hint)
        for first, tag in enumerate(tags):
            block = next((k for k in range(first, len(tags)) if tags[k].startswith("blockIdx")), None)
            last = None if block is None else next((k for k in range(block, len(tags)) if _is_thread(tags[k])), None)
            if _is_thread(tag) and block is not None and last is not None:
                names = [f"loop {bound[k].loop_var.name} over {tags[k]}" for k in (last, block, first)]
                problem = f"{names[0]} is in {names[1]}, and that in {names[2]}"
                hint = f"blocks hold threads: reorder, so that loop {bound[block].loop_var.name} is outermost"
                raise NotSupported(method, problem, bound[block], hint)


def _check_windows(method: str, view: View) -> None:
    """A window of memory that threads have for themselves is opened where they run: outside, whose would it show?"""
    for *around, realize in view.index.blocks.values():
        if not isinstance(realize, BlockRealize):
            continue
        if any([isinstance(loop, For) and loop.kind is ForKind.THREAD_BINDING for loop in around]):
            continue
        for match in realize.block.match_buffers:
            source = match.source.buffer
            if source.scope() != "global":
                window, scope = match.buffer.name, source.scope()
                problem = f"{window} is a window of {source.name}, which is {scope} to threads inside"
                hint = f"set_scope of {source.name} to global, or open the window in the loop over threads"
                raise NotSupported(method, problem, realize, hint)


def _is_thread(tag: str) -> bool:
    return tag.startswith("threadIdx")


def _check_sums(method: str, view: View) -> None:
    """A sum over threads is in one loop over them: in two, whose turn it is, and who writes the start, is not clear."""
    for *around, realize in view.index.blocks.values():
        if not isinstance(realize, BlockRealize):
            continue
        summed = [
            value
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type is IterType.CommReduce
        ]
        bound = [loop for loop in around if isinstance(loop, For) and loop.kind is ForKind.THREAD_BINDING]
        for loop in bound:
            tag = axis_of(loop).tag
            other = next((item for item in bound if item is not loop and axis_of(item).tag == tag), None)
            if other is not None and _is_thread(tag) and _sums_over(loop, summed):
                names = f"{realize.block.name_hint} sums over loop {loop.loop_var.name}, bound to {tag}"
                hint = f"bind one of them to another axis, or leave loop {loop.loop_var.name} unbound"
                raise NotSupported(method, f"{names} as loop {other.loop_var.name} is", loop, hint)


def _sums_over(loop: For, values: Sequence[Expr]) -> bool:
    return any([uses_var(value, lambda var: var is loop.loop_var) for value in values])


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
