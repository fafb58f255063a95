"""Schedules for blocks of threads: staged in shared memory, proved, run, lowered to a launch with barriers.

Every example is right in the evaluator as scheduled and as lowered; every barrier of the lowered program is needed.
"""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te, tir
from loopwright.analysis import check_program
from loopwright.evaluator import difference, evaluate, evaluate_terms
from loopwright.evaluator.errors import ThreadRace
from loopwright.ir import PrimFunc, Rewriter, const, structural_digest
from loopwright.ir.stmt import Evaluate
from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotProved, NotSupported, WouldChangeValues, WouldRace
from loopwright.schedule.proof.loop_kinds import ThreadExtentsDiffer
from loopwright.script import from_source
from loopwright.transform import insert_barriers, launch_threads, lower_blocks, write_allocations, write_inits
from tests.schedule.steps import check_replay, matmul, refused
from tests.transform.before_after import barriers


def stage(sch: Schedule, block: object, loop: object, threads: dict[str, int]) -> None:
    """Compute a copy under `loop`, its elements parallelised over the threads."""
    sch.compute_at(block, loop, preserve_unit_loops=True)
    fused = sch.fuse(*sch.get_loops(block)[-2:])
    _, *parts = sch.split(fused, [None, *threads.values()])
    for part, axis in zip(parts, threads, strict=True):
        sch.bind(part, axis)


def tiled_matmul(m: int, n: int, k: int, virtual: bool = False) -> tuple[Schedule, PrimFunc]:
    before = matmul(m, n, k)
    sch = Schedule(before)
    block = sch.get_block("C")
    back = sch.cache_write(block, 0, "local")
    i, j, r = sch.get_loops(block)
    inner = [2, 2, 1] if virtual else [2, 2]
    i0, *vi, i1, i2 = sch.split(i, [None, *inner])
    j0, *vj, j1, j2 = sch.split(j, [None, *inner])
    k0, k1 = sch.split(r, [None, 2])
    sch.reorder(i0, j0, *vi, *vj, i1, j1, k0, k1, i2, j2)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    for loop in [*vi, *vj]:
        sch.bind(loop, "vthread")
    sch.bind(i1, "threadIdx.y")
    sch.bind(j1, "threadIdx.x")
    sch.reverse_compute_at(back, j1)
    for operand in range(2):
        stage(sch, sch.cache_read(block, operand, "shared"), k0, {"threadIdx.y": 2, "threadIdx.x": 2})
    return sch, before


def reduction(rows: int, length: int) -> tuple[Schedule, PrimFunc]:
    A = te.placeholder((rows, length), name="A")
    k = te.reduce_axis((0, length), "k")
    before = te.create_prim_func([A, te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")])
    sch = Schedule(before)
    i, r = sch.get_loops("B")
    _, inner = sch.split(r, [None, 4])
    part = sch.rfactor(inner, 0)
    sch.set_scope(part, 0, "shared")
    (i, *_) = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    sch.compute_at(part, i)
    sch.bind(sch.get_loops(part)[1], "threadIdx.x")
    return sch, before


def transpose(m: int, n: int) -> tuple[Schedule, PrimFunc]:
    A = te.placeholder((m, n), name="A")
    before = te.create_prim_func([A, te.compute((n, m), lambda i, j: A[j, i], name="B")])
    sch = Schedule(before)
    i, j = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, i1, j1)
    for loop, axis in zip((i0, j0, i1, j1), ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"), strict=True):
        sch.bind(loop, axis)
    tile = sch.cache_read("B", 0, "shared")
    sch.compute_at(tile, j1)
    rows, columns = sch.get_loops(tile)[-2:]
    sch.bind(rows, "threadIdx.y")
    sch.bind(columns, "threadIdx.x")
    return sch, before


def stencil(n: int) -> tuple[Schedule, PrimFunc]:
    A = te.placeholder((n + 2,), name="A")
    before = te.create_prim_func([A, te.compute((n,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")])
    sch = Schedule(before)
    (i,) = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, 4])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    halo = sch.cache_read("B", 0, "shared")
    sch.compute_at(halo, i1)
    _, part = sch.split(sch.get_loops(halo)[-1], [None, 4])
    sch.bind(part, "threadIdx.x")
    return sch, before


EXAMPLES = {
    "matmul": (lambda: tiled_matmul(8, 8, 4), lambda a, b: a @ b, 1),
    "matmul of odd sizes": (lambda: tiled_matmul(5, 7, 3), lambda a, b: a @ b, 1),
    "matmul of one": (lambda: tiled_matmul(1, 1, 1), lambda a, b: a @ b, None),
    "matmul with virtual threads": (lambda: tiled_matmul(8, 8, 4, virtual=True), lambda a, b: a @ b, 1),
    "reduction": (lambda: reduction(3, 12), lambda a: a.sum(1), 1),
    "reduction with a tail": (lambda: reduction(3, 13), lambda a: a.sum(1), 1),
    "transpose": (lambda: transpose(8, 12), lambda a: a.T, 1),
    "transpose of odd sizes": (lambda: transpose(5, 7), lambda a: a.T, 1),
    "stencil": (lambda: stencil(12), lambda a: a[:-2] + a[1:-1] + a[2:], 1),
    "stencil with a tail": (lambda: stencil(9), lambda a: a[:-2] + a[1:-1] + a[2:], 1),
}


def lowered(func: PrimFunc) -> PrimFunc:
    for step in (write_inits, write_allocations, lower_blocks, launch_threads, insert_barriers):
        func = step(func)
    return func


def run(func: PrimFunc, expected) -> None:
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 9, [int(n) for n in b.shape]).astype("float32") for b in func.argument_buffers()]
    evaluate(func, *arrays)
    np.testing.assert_array_equal(arrays[-1], expected(*arrays[:-1]))


class _Without(Rewriter):
    def __init__(self, call: object) -> None:
        self.call = call

    def visit_Evaluate(self, node: Evaluate) -> Evaluate:
        return Evaluate(const(0)) if node.value is self.call else node


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    make, expected, count = EXAMPLES[name]
    sch, before = make()
    func = sch.mod["main"]
    check_program(func)
    run(func, expected)
    if "reduction" not in name:  # whose sums are in another order
        assert difference(evaluate_terms(before), evaluate_terms(func, check_races=True)) is None
    check_replay(sch, before)

    flat = lowered(func)
    check_program(flat)
    run(flat, expected)
    calls = barriers(flat.body)
    if count is not None:
        assert len(calls) == count
        for call in calls:
            broken = flat.with_(body=_Without(call).visit(flat.body))
            with pytest.raises(ThreadRace, match="no barrier between"):
                run(broken, expected)


def test_a_tile_in_shared_memory_is_what_all_threads_need():
    sch, _ = transpose(8, 12)
    text = str(sch.mod["main"])
    assert 'for ax0 in T.thread_binding(4, thread="threadIdx.y"):' in text
    assert "v0 = T.axis.spatial(8, j_0 * 4 + ax0)" in text  # no i_1, j_1: the part of all threads


def test_local_memory_is_what_one_thread_needs():
    sch = Schedule(matmul(8, 8, 4))
    i, j, k = sch.get_loops("C")
    sch.bind(i, "threadIdx.y")
    sch.bind(j, "threadIdx.x")
    copy = sch.cache_read("C", 0, "local")
    sch.compute_at(copy, k)
    assert 'v0, v1 = T.axis.remap("SS", [i, k])' in str(sch.mod["main"])
    assert difference(evaluate_terms(matmul(8, 8, 4)), evaluate_terms(sch.mod["main"], check_races=True)) is None


# --- mistakes -------------------------------------------------------------------------------------------------------


def test_two_lengths_of_one_axis():
    sch = Schedule(matmul(8, 6, 4))
    _, j, _ = sch.get_loops("C")
    copy = sch.cache_read("C", 0, "shared")
    sch.bind(j, "threadIdx.x")
    sch.compute_at(copy, j)
    before = structural_digest(sch.mod["main"])
    error = refused(
        sch,
        ThreadExtentsDiffer,
        "bind: threadIdx.x would have 6 threads for loop j and 4 for loop ax0",
        "bind",
        sch.get_loops(copy)[-1],
        "threadIdx.x",
    )
    assert "split j into [None, 4] and bind its inner part" in str(error)
    assert structural_digest(sch.mod["main"]) == before


def test_local_memory_for_what_threads_exchange():
    sch = Schedule(transpose(8, 8)[1])
    i, j = sch.get_loops("B")
    tile = sch.cache_read("B", 0, "shared")
    sch.bind(i, "threadIdx.x")
    ax0, ax1 = sch.get_loops(tile)
    sch.bind(ax0, "threadIdx.x")
    refused(sch, WouldChangeValues, "set_scope would change a value", "set_scope", tile, 0, "local")


def test_shared_memory_between_blocks():
    sch = Schedule(transpose(8, 8)[1])
    i, j = sch.get_loops("B")
    tile = sch.cache_read("B", 0, "shared")
    sch.bind(i, "blockIdx.x")
    ax0, ax1 = sch.get_loops(tile)
    refused(sch, WouldChangeValues, r"reads A_shared\[1, 0\]", "bind", ax0, "blockIdx.x")


def test_blocks_that_sum_into_one_cell():
    sch = Schedule(reduction(3, 12)[1])
    refused(sch, WouldRace, "bind: loop k", "bind", sch.get_loops("B")[1], "blockIdx.x")


def test_a_part_for_one_thread_that_others_read():
    """The window of one thread in shared memory, written by each thread: neighbours overlap."""
    A = te.placeholder((10,), name="A")
    S = te.compute((10,), lambda i: A[i] * 2.0, name="S")
    func = te.create_prim_func([A, te.compute((8,), lambda i: S[i] + S[i + 1], name="B")])
    sch = Schedule(func)
    sch.compute_at("S", sch.get_loops("B")[0])
    error = refused(sch, WouldRace, "bind: loop i", "bind", sch.get_loops("B")[0], "threadIdx.x")
    assert "S[1]" in str(error)


def test_merging_away_a_barrier():
    sch = Schedule(transpose(8, 8)[1])
    tile = sch.cache_read("B", 0, "shared")
    ax0, _ = sch.get_loops(tile)
    i, _ = sch.get_loops("B")
    with pytest.raises((WouldRace, WouldChangeValues)):
        merged = sch.merge(ax0, i)
        sch.bind(merged, "threadIdx.x")


def test_a_vector_loop_around_a_barrier():
    sch = Schedule(matmul(8, 8, 4))
    i, j, k = sch.get_loops("C")
    copy = sch.cache_read("C", 0, "shared")
    sch.bind(j, "threadIdx.x")
    sch.compute_at(copy, k)
    refused(sch, NotProved, "a barrier stands in the vectorized loop k", "vectorize", k)


def test_facade():
    assert tir.Schedule is Schedule


@pytest.mark.parametrize("is_bound_first", [True, False])
def test_a_window_outside_of_the_threads_shows_no_memory_of_theirs(is_bound_first):
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    with T.block("o"):
        T.reads(A[0:4], B[0:4])
        T.writes(B[0:4], C[0:4])
        W = T.match_buffer(B[0:4], (4,), "int32")
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + 1
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = W[3 - vi]
""")
    sch = Schedule(program)
    problem = "W is a window of B, which is local to threads inside"
    if is_bound_first:
        sch.bind(sch.add_unit_loop(sch.get_loops("B")[0]), "threadIdx.x")
        refused(sch, NotSupported, problem, "set_scope", "B", 0, "local")
    else:
        sch.set_scope("B", 0, "local")
        refused(sch, NotSupported, problem, "bind", sch.add_unit_loop(sch.get_loops("B")[0]), "threadIdx.x")
