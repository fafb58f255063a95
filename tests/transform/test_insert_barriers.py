"""launch_threads and insert_barriers: bound loops become a launch; barriers where threads need them."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import tir
from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import ThreadRace
from loopwright.ir import Allocate, PrimFunc, assert_structural_equal
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import (
    compact_buffers,
    hoist_shared_memory,
    insert_barriers,
    launch_threads,
    lower_blocks,
    write_allocations,
    write_inits,
)
from loopwright.transform.errors import ThreadLoopOnCpu
from loopwright.transform.on_request.hoist_shared_memory import SharedSizeVaries
from loopwright.transform.on_request.insert_barriers import NeedsBarrier
from loopwright.transform.on_request.launch_threads import NotALaunch
from tests.transform.before_after import barriers, launches


def same(got: PrimFunc, wanted: PrimFunc) -> None:
    assert_structural_equal(got.without_attr("global_symbol"), wanted.without_attr("global_symbol"))


def flat(func: PrimFunc) -> PrimFunc:
    return lower_blocks(write_allocations(func))


# --- insert_barriers ------------------------------------------------------------------------------------------------


@T.prim_func
def reused(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
    tx = T.launch_thread("threadIdx.x", 8)
    S = T.decl_buffer((8,), scope="shared")
    for k in range(4):
        S[tx] = A[k, tx]
        B[k, tx] = S[7 - tx]


def test_memory_that_a_loop_uses_again_needs_two_barriers():
    @T.prim_func
    def expected(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), scope="shared")
        for k in range(4):
            T.tvm_storage_sync("shared")
            S[tx] = A[k, tx]
            T.tvm_storage_sync("shared")
            B[k, tx] = S[7 - tx]

    got = insert_barriers(flat(reused))
    same(got, flat(expected))
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    evaluate(got, a, b)
    np.testing.assert_array_equal(b, a[:, ::-1])
    with pytest.raises(ThreadRace):
        evaluate(reused, a, b)
    assert insert_barriers(got) is got


def test_memory_allocated_in_a_loop_is_the_same_in_each_iteration():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        tx = T.launch_thread("threadIdx.x", 8)
        for k in range(4):
            S = T.decl_buffer((8,), scope="shared")
            S[tx] = A[k, tx]
            B[k, tx] = S[7 - tx]

    got = insert_barriers(flat(func))
    assert len(barriers(got.body)) == 2
    kernel = got.body.body
    assert isinstance(kernel, Allocate) and kernel.buffer_var.name == "S"  # right under the launch
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    evaluate(got, a, b)
    np.testing.assert_array_equal(b, a[:, ::-1])
    assert insert_barriers(got) is got


def test_a_schedule_that_stages_in_shared_memory_waits_before_it_writes_again():
    """Cooperative fetch: rows of A in shared memory, one loop over k."""

    @T.prim_func
    def matmul(A: T.Buffer((8, 16)), B: T.Buffer((16, 8)), C: T.Buffer((8, 8))):
        for i, j, k in T.grid(8, 8, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(k, [None, 8])
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    copy = sch.cache_read("C", 0, "shared")
    sch.compute_at(copy, outer)
    fetch = sch.get_loops(copy)[-1]
    sch.bind(fetch, "threadIdx.x")
    sch.sink_alloc("C", "A_shared")
    lowered = launch_threads(compact_buffers(lower_blocks(write_allocations(write_inits(sch.mod["main"])))))
    got = insert_barriers(lowered)
    assert len(barriers(got.body)) == 2
    assert insert_barriers(got) is got


@pytest.mark.parametrize(("size", "largest"), [("k + 8", 11), ("T.min(k, 2) + 8", 10), ("8", 8)])
def test_a_size_that_changes_becomes_the_largest(size, largest):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
    tx = T.launch_thread("threadIdx.x", 8)
    for k in range(4):
        S = T.decl_buffer(({size},), scope="shared")
        S[tx] = A[k, tx]
        B[k, tx] = S[7 - tx]
""")
    got = hoist_shared_memory(flat(func))
    assert [int(extent) for extent in got.body.body.extents] == [largest]


def test_what_stays_where_it_is():
    @T.prim_func
    def private(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        tx = T.launch_thread("threadIdx.x", 8)
        for k in range(4):
            S = T.decl_buffer((8,), scope="local")
            S[tx] = A[k, tx]
            B[k, tx] = S[tx]

    @T.prim_func
    def serial(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for k in range(4):
            S = T.decl_buffer((8,), scope="shared")
            for i in range(8):
                S[i] = A[k, i]
                B[k, i] = S[i]

    for func in (private, serial, reused):
        before = flat(func)
        assert hoist_shared_memory(before) is before


def test_a_size_without_a_limit_is_refused():
    @T.prim_func
    def func(A: T.Buffer(32), n: T.int32):
        tx = T.launch_thread("threadIdx.x", 32)
        for k in range(n):
            S = T.decl_buffer((k + 32,), scope="shared")
            S[tx] = A[tx]
            A[tx] = S[31 - tx]

    with pytest.raises(SharedSizeVaries, match=r"S needs k \+ 32 elements, which changes between iterations"):
        insert_barriers(flat(func))


def test_memory_of_its_own_in_each_iteration_needs_one():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((4, 8), scope="shared")
        for k in range(4):
            S[k, tx] = A[k, tx]
            B[k, tx] = S[k, 7 - tx]

    assert len(barriers(insert_barriers(flat(func)).body)) == 1


def test_a_barrier_stands_before_a_loop_rather_than_in_it():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8)):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), scope="shared")
        S[tx] = A[tx]
        for k in range(8):
            B[tx] = B[tx] + S[k]

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), scope="shared")
        S[tx] = A[tx]
        T.tvm_storage_sync("shared")
        for k in range(8):
            B[tx] = B[tx] + S[k]

    same(insert_barriers(flat(func)), flat(expected))


def test_what_threads_keep_to_themselves_needs_none():
    @T.prim_func
    def func(A: T.Buffer((8, 4)), B: T.Buffer((8, 4))):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8, 4), scope="shared")
        L = T.decl_buffer((4,), scope="local")
        for k in range(4):
            S[tx, k] = A[tx, k]
            L[k] = S[tx, k]
        for k in range(4):
            B[tx, k] = L[3 - k]

    before = flat(func)
    assert insert_barriers(before) is before


def test_before_a_condition_not_inside():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8)):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), scope="shared")
        S[tx] = A[tx]
        if tx < 4:
            B[tx] = S[7 - tx]

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), scope="shared")
        S[tx] = A[tx]
        T.tvm_storage_sync("shared")
        if tx < 4:
            B[tx] = S[7 - tx]

    same(insert_barriers(flat(func)), flat(expected))


def test_inside_a_condition_that_all_threads_share():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8), n: T.int32):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), scope="shared")
        if n > 0:
            S[tx] = A[tx]
            B[tx] = S[7 - tx]

    got = insert_barriers(flat(func))
    assert len(barriers(got.body)) == 1
    for n in (0, 1):
        a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
        evaluate(got, a, b, n)
        np.testing.assert_array_equal(b, a[::-1] * n)


@pytest.mark.parametrize(
    "lines",
    ["if tx < 4:\n        S[tx] = A[tx]\n        B[tx] = S[3 - tx]", "S[tx] = S[7 - tx]", "S[0] = A[tx]"],
    ids=["under a condition", "in one statement", "one cell"],
)
def test_where_no_barrier_can_stand(lines):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer(8), B: T.Buffer(8)):
    tx = T.launch_thread("threadIdx.x", 8)
    S = T.decl_buffer((8,), scope="shared")
    {lines}
""")
    with pytest.raises(NeedsBarrier, match="threads meet at S in one statement, or where only some of them arrive"):
        insert_barriers(flat(func))


def test_the_name_scripts_know():
    got = tir.transform.ThreadSync("shared")(flat(reused))
    assert len(barriers(got.body)) == 2


# --- launch_threads -------------------------------------------------------------------------------------------------


def test_bound_loops_become_one_launch():
    @T.prim_func
    def func(A: T.Buffer((3, 4, 8)), B: T.Buffer((3, 4, 8))):
        S = T.alloc_buffer(8, scope="shared")
        for bx in T.thread_binding(3, thread="blockIdx.x"):
            for k in range(4):
                for u in T.thread_binding(8, thread="threadIdx.x"):
                    S[u] = A[bx, k, u]
                for v in T.thread_binding(8, thread="threadIdx.x"):
                    B[bx, k, v] = S[7 - v]

    @T.prim_func
    def expected(A: T.Buffer((3, 4, 8)), B: T.Buffer((3, 4, 8))):
        bx = T.launch_thread("blockIdx.x", 3)
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), scope="shared")
        for k in range(4):
            S[tx] = A[bx, k, tx]
            B[bx, k, tx] = S[7 - tx]

    got = launch_threads(flat(func))
    same(got, flat(expected))
    assert len(launches(got.body)) == 2
    a, b = np.arange(96, dtype="float32").reshape(3, 4, 8), np.zeros((3, 4, 8), "float32")
    evaluate(insert_barriers(got), a, b)
    np.testing.assert_array_equal(b, a[:, :, ::-1])


def test_what_no_thread_is_named_for_the_first_does():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8)):
        S = T.alloc_buffer(1, scope="shared")
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(8):
                S[0] = A[k]
                B[tx] = B[tx] + S[0]

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((1,), scope="shared")
        for k in range(8):
            T.tvm_storage_sync("shared")
            if tx == 0:
                S[0] = A[k]
            T.tvm_storage_sync("shared")
            B[tx] = B[tx] + S[0]

    got = insert_barriers(launch_threads(flat(func)))
    same(got, flat(expected))
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    evaluate(got, a, b)
    assert b.tolist() == [28.0] * 8


def test_virtual_threads_have_copies_of_what_lives_across_barriers():
    @T.prim_func
    def func(A: T.Buffer((2, 4)), B: T.Buffer((2, 4))):
        S = T.alloc_buffer((2, 4), scope="shared")
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for vx in T.thread_binding(2, thread="vthread"):
                L = T.decl_buffer((1,), scope="local")
                L[0] = A[vx, tx]
                S[vx, tx] = L[0]
                T.evaluate(T.tvm_storage_sync("shared"))
                B[vx, tx] = L[0] + S[1 - vx, 3 - tx]

    got = insert_barriers(launch_threads(flat(func)))
    assert "L = T.decl_buffer((2, 1)" in str(got)
    a = np.arange(8, dtype="float32").reshape(2, 4)
    for program in (func, got):
        b = np.zeros((2, 4), "float32")
        evaluate(program, a, b)
        np.testing.assert_array_equal(b, a + a[::-1, ::-1])


NO_LAUNCH = {
    "a loop over blocks stands beside other statements": """
    for by in T.thread_binding(3, thread="blockIdx.y"):
        B[by] = T.float32(0)
        for bx in T.thread_binding(3, thread="blockIdx.x"):
            A[bx] = T.float32(1)
""",
    "S has scope 'shared', but is used outside the kernel": """
    S = T.decl_buffer((8,), scope="shared")
    for i in range(8):
        S[i] = A[i]
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        B[tx] = S[tx]
""",
    "L has scope 'local', but is written outside the loops over threadIdx.x": """
    L = T.decl_buffer((1,), scope="local")
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        L[0] = A[bx]
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            B[tx] = L[0]
""",
    "L has scope 'local', but is written outside the loops over threadIdx.y": """
    L = T.decl_buffer((1,), "int32", scope="local")
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        L[0] = 3
        if L[0] > 2:  # all threads ask
            for ty in T.thread_binding(8, thread="threadIdx.y"):
                B[ty] = A[ty]
""",
    "L has scope 'local', but is read outside the loops over threadIdx.x": """
    L = T.decl_buffer((8,), scope="local")
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            L[tx] = A[bx * 4 + tx]
        for i in range(4):
            B[bx * 4 + i] = L[3 - i]
""",
    "L has scope 'local', but is read outside the loops over threadIdx.y": """
    L = T.decl_buffer((8,), "int32", scope="local")
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for ty in T.thread_binding(8, thread="threadIdx.y"):
            L[ty] = ty
        for _i in range(L[5]):
            for ty in T.thread_binding(8, thread="threadIdx.y"):
                B[ty] = A[ty]
""",
    "loop tx over blockIdx.x stands inside another loop over blockIdx.x": """
    for bx in T.thread_binding(8, thread="blockIdx.x"):
        for tx in T.thread_binding(8, thread="blockIdx.x"):
            B[tx] = T.Cast("float32", bx)
""",
    "there is no thread axis 'threadIdx.w'": """
    for tw in T.thread_binding(8, thread="threadIdx.w"):
        B[tw] = T.float32(0)
""",
    "a barrier stands where not all threads may reach it": """
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        if tx < 4:
            T.evaluate(T.tvm_storage_sync("shared"))
""",
}


@pytest.mark.parametrize("message", NO_LAUNCH)
def test_what_is_no_launch(message):
    func = from_source(f"@T.prim_func\ndef main(A: T.Buffer(8), B: T.Buffer(8)):{NO_LAUNCH[message]}")
    with pytest.raises(NotALaunch, match=message):
        launch_threads(flat(func))


def test_blocks_come_first():
    @T.prim_func
    def func(A: T.Buffer(8)):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("A"):
                v = T.axis.spatial(8, tx)
                A[v] = T.float32(1)

    with pytest.raises(NotALaunch, match="is still there"):
        launch_threads(func)


def test_what_a_check_or_a_name_reads_waits_as_well():
    """An assertion and a LetStmt read before their body runs: the barrier comes before them, not inside."""

    @T.prim_func
    def func(I: T.Buffer(8, "int32"), B: T.Buffer(8)):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), "int32", scope="shared")
        S[tx] = I[tx]
        assert S[7 - tx] < 8, "too large"
        B[tx] = T.float32(1)
        S[tx] = 3
        with T.LetStmt(S[7 - tx]) as x:
            B[tx] = T.Cast("float32", x)

    @T.prim_func
    def expected(I: T.Buffer(8, "int32"), B: T.Buffer(8)):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), "int32", scope="shared")
        S[tx] = I[tx]
        T.tvm_storage_sync("shared")
        assert S[7 - tx] < 8, "too large"
        B[tx] = T.float32(1)
        T.tvm_storage_sync("shared")
        S[tx] = 3
        T.tvm_storage_sync("shared")
        with T.LetStmt(S[7 - tx]) as x:
            B[tx] = T.Cast("float32", x)

    got = insert_barriers(flat(func))
    same(got, flat(expected))
    assert insert_barriers(got) is got


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("k % 2", 1),  # the iteration before the last one ended before the barrier of the last one
        ("k % 3", 1),
        ("k // 2 % 2", 2),  # two iterations after each other have one place
        ("0", 2),
        ("k % 2 * k", 2),
    ],
)
def test_every_other_iteration_has_another_place(place, wanted):
    """What was read in the last iteration may still be read; what was read before that has been."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((9, 32)), B: T.Buffer((9, 32))):
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((72, 32), scope="shared")
    for k in range(9):
        S[{place}, tx] = A[k, tx]
        B[k, tx] = S[{place}, 31 - tx]
""")
    got = insert_barriers(flat(func))
    assert len(barriers(got)) == wanted
    assert insert_barriers(got) is got


def test_a_place_that_one_iteration_skips():
    """What the last iteration has left alone is as old as the one before it."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((9, 32)), B: T.Buffer((9, 32))):
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((2, 32), scope="shared")
    for k in range(9):
        if k % 2 == 0:
            S[k // 2 % 2, tx] = A[k, tx]
            T.tvm_storage_sync("shared")
        B[k, tx] = S[k // 2 % 2, 31 - tx]
""")
    a, b = np.arange(288, dtype="float32").reshape(9, 32), np.zeros((9, 32), "float32")
    module = loopwright.build(func, target="cuda -model=emulated")
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        module(a, b)
        np.testing.assert_array_equal(b, a[np.arange(9) // 2 * 2, ::-1])


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_memory_of_a_kernel_ends_with_it(scope):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer(8), B: T.Buffer(8)):
    S = T.decl_buffer((8,), scope="{scope}")
    for bx in T.thread_binding(8, thread="blockIdx.x"):
        S[bx] = A[bx]
    for bx in T.thread_binding(8, thread="blockIdx.x"):
        B[bx] = S[bx] + S[bx]
""")
    with pytest.raises(NotALaunch, match=f"one kernel reads S of scope '{scope}', which another kernel has written"):
        launch_threads(flat(func))


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_memory_around_a_launch_moves_into_it(scope):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((2, 8)), B: T.Buffer((2, 8))):
    S = T.alloc_buffer((8,), scope="{scope}")
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 8)
    S[tx] = A[bx, tx]
    T.tvm_storage_sync("shared")
    B[bx, tx] = S[tx] + S[{"7 - tx" if scope == "shared" else "tx"}]
""")
    a, b = np.arange(16, dtype="float32").reshape(2, 8), np.zeros((2, 8), "float32")
    text = loopwright.build(func, target="cuda").get_source()
    assert text.index("threadIdx.x") < text.index("float S[")
    loopwright.build(func, target="cuda -model=emulated")(a, b)
    np.testing.assert_array_equal(b, a + (a[:, ::-1] if scope == "shared" else a))


def test_two_launches_do_not_share_memory():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer(8), B: T.Buffer(8)):
    S = T.decl_buffer((8,), scope="shared")
    with T.launch_thread("threadIdx.x", 8) as tx:
        S[tx] = A[tx]
    with T.launch_thread("threadIdx.x", 8) as tx:
        B[tx] = S[tx]
""")
    with pytest.raises(NotALaunch, match="one kernel reads S of scope 'shared', which another kernel has written"):
        launch_threads(flat(func))


@pytest.mark.parametrize(
    "program, name",
    [
        ("""
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for bx in T.thread_binding(T.max(2 - tx, 0), thread="blockIdx.x"):
            A[tx + bx] = T.float32(1)
""", "tx"),
        ("""
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for k in range(3):
            for tx in T.thread_binding(k, thread="threadIdx.x"):
                A[bx + tx] = T.float32(1)
""", "k"),
        ("""
    for bx in T.thread_binding(T.Cast("int32", B[0]), thread="blockIdx.x"):
        A[bx] = T.float32(1)
""", "B"),
    ],
)
def test_extents_that_are_not_known_before_the_kernel_runs(program, name):
    func = from_source(f"@T.prim_func\ndef main(A: T.Buffer(8), B: T.Buffer(8)):{program}")
    with pytest.raises(NotALaunch, match=f"and {name} is not known before the kernel runs"):
        launch_threads(flat(func))


def test_memory_of_two_kernels_has_two_shapes():
    """One array of a schedule, and each kernel keeps of it what its threads use."""

    @T.prim_func
    def func(A: T.Buffer(8, "int32"), B: T.Buffer(8, "int32")):
        L = T.decl_buffer((8,), "int32", scope="local")
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            L[tx] = A[tx]
            B[tx] = L[tx] + 1
        for _ in T.thread_binding(1, thread="threadIdx.x"):
            for i in range(8):
                L[i] = B[i]
                A[i] = L[i] * 2

    a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    loopwright.build(func, target="cuda -model=emulated")(a, b)
    np.testing.assert_array_equal(b, np.arange(8) + 1)
    np.testing.assert_array_equal(a, 2 * b)


def test_kernels_may_use_one_name_for_memory_of_their_own():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8)):
        S = T.decl_buffer((8,), scope="shared")
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            S[tx] = A[tx]
            B[tx] = S[tx]
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            S[tx] = B[tx]
            B[tx] = S[tx] + S[tx]

    assert launches(launch_threads(flat(func)).body)


def test_without_threads_nothing_happens():
    @T.prim_func
    def func(A: T.Buffer(8)):
        for i in range(8):
            A[i] = T.float32(1)

    before = flat(func)
    assert launch_threads(before) is before
    assert insert_barriers(before) is before


def test_a_cpu_says_no():
    with pytest.raises(ThreadLoopOnCpu, match=r"bound to threadIdx.x, which a CPU does not have"):
        loopwright.build(insert_barriers(flat(reused)), target="llvm")


# --- what all threads read ------------------------------------------------------------------------------------------


def numbered(let: str) -> PrimFunc:
    """Threads store a tile whose number one of them has put into shared memory."""
    return from_source(
        f"""
@T.prim_func
def main(N: T.Buffer(8, "int32"), B: T.Buffer(512)):
    tx = T.launch_thread("threadIdx.x", 16)
    S = T.decl_buffer((16,), "int32", scope="shared")
    S[tx] = N[tx % 8]
    with T.LetStmt({let}) as tile:
        for u in range(4):
            B[tile * 64 + u * 16 + tx] = 1.0
"""
    )


@pytest.mark.parametrize(
    ("let", "count"),
    [
        ("S[0]", 1),
        ("T.min(S[0] + S[15], 7)", 1),
        ("S[15 - tx]", 2),  # each thread has another tile: two may store one element, at different `u`
        ("N[0]", 1),
        ("N[tx % 8]", 1),
    ],
)
def test_what_all_threads_read_from_one_cell_is_the_same_for_all(let, count):
    assert len(barriers(insert_barriers(numbered(let)))) == count


def test_what_is_read_in_a_loop_is_another_value_in_each_iteration():
    @T.prim_func
    def func(N: T.Buffer((4, 8), "int32"), B: T.Buffer(512)):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((8,), "int32", scope="shared")
        for k in range(4):
            S[tx] = N[k, tx]
            with T.LetStmt(S[0]) as tile:
                B[tile * 8 + tx] = T.float32(1)

    assert len(barriers(insert_barriers(func))) == 2


def test_status_words_between_threads_of_a_block_need_barriers():
    @T.prim_func
    def func(W: T.Buffer(8, "uint64"), B: T.Buffer(8, "uint64")):
        tx = T.launch_thread("threadIdx.x", 8)
        T.evaluate(T.publish(T.address_of(W[tx]), T.uint64(1)))
        B[tx] = T.await_published(T.address_of(W[7 - tx]))

    assert len(barriers(insert_barriers(func))) == 1
