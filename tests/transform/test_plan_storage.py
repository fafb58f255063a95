"""plan_storage: buffers that are never in use together share their memory."""

from __future__ import annotations

import pytest

from loopwright.ir import Allocate, PrimFunc, pre_order_visit
from loopwright.script import tir as T
from loopwright.transform import PassContext, plan_storage
from tests.transform.before_after import check_all, same_at_every_stage, same_native, same_results, unchanged


def elements(func: PrimFunc) -> list[int]:
    found = []

    def look(node):
        if isinstance(node, Allocate):
            size = 1
            for extent in node.extents:
                size *= extent.value
            found.append(size)

    pre_order_visit(func.body, look)
    return found


def test_one_after_the_other():
    @T.prim_func
    def before(A: T.Buffer((100,)), D: T.Buffer((100,))):
        B = T.decl_buffer((100,))
        C = T.decl_buffer((100,))
        for i in range(100):
            B[i] = A[i]
        for i in range(100):
            D[i] = B[99 - i]
        for i in range(100):
            C[i] = D[i] + D[99 - i]
        for i in range(100):
            D[i] = C[99 - i]

    @T.prim_func
    def after(A: T.Buffer((100,)), D: T.Buffer((100,))):
        B_data = T.allocate([100], "float32", "global")
        B = T.decl_buffer((100,), data=B_data)
        C = T.decl_buffer((100,), data=B_data)
        for i in range(100):
            B[i] = A[i]
        for i in range(100):
            D[i] = B[99 - i]
        for i in range(100):
            C[i] = D[i] + D[99 - i]
        for i in range(100):
            D[i] = C[99 - i]

    check_all(plan_storage, before, after)


def test_in_place_also_in_parallel():
    @T.prim_func
    def before(A: T.Buffer((100,)), D: T.Buffer((100,))):
        B = T.decl_buffer((100,))
        C = T.decl_buffer((100,))
        for i in range(100):
            B[i] = A[i]
        for i in T.parallel(100):
            C[i] = B[i] * T.float32(2)
        for i in range(100):
            D[i] = C[99 - i]

    got = plan_storage(before)
    assert elements(got) == [100]
    same_results(before, got)
    same_native(before, got)


def test_not_in_place_where_another_cell_is_read():
    @T.prim_func
    def func(A: T.Buffer((100,)), D: T.Buffer((100,))):
        B = T.decl_buffer((100,))
        C = T.decl_buffer((100,))
        for i in range(100):
            B[i] = A[i]
        for i in range(100):
            C[i] = B[99 - i]
        for i in range(100):
            D[i] = C[i]

    unchanged(plan_storage, func)


def test_not_in_place_where_a_cell_is_written_more_than_once():
    @T.prim_func
    def func(A: T.Buffer((100,)), D: T.Buffer((100,))):
        B = T.decl_buffer((100,))
        C = T.decl_buffer((100,))
        for i in range(100):
            B[i] = A[i]
        for _, i in T.grid(3, 100):
            C[i] = B[i] * T.float32(2)
        for i in range(100):
            D[i] = C[i]

    unchanged(plan_storage, func)


def test_in_place_under_a_guard_and_with_other_inputs():
    @T.prim_func
    def before(A: T.Buffer((10, 10)), D: T.Buffer((10, 10))):
        B = T.decl_buffer((10, 10))
        C = T.decl_buffer((10, 10))
        for i, j in T.grid(10, 10):
            B[i, j] = A[i, j]
        for i in range(10):
            for j_0 in range(3):
                for j_1 in T.vectorized(4):
                    if j_0 * 4 + j_1 < 10:
                        C[i, j_0 * 4 + j_1] = B[i, j_0 * 4 + j_1] + A[j_0 * 4 + j_1, i]
        for i, j in T.grid(10, 10):
            D[i, j] = C[j, i]

    got = plan_storage(before)
    assert elements(got) == [100]
    same_results(before, got)
    same_at_every_stage(before)


def test_the_largest_decides_the_size():
    @T.prim_func
    def before(A: T.Buffer((100,)), D: T.Buffer((200,))):
        B = T.decl_buffer((100,))
        C = T.decl_buffer((10, 20))
        for i in range(100):
            B[i] = A[i]
        for i in range(100):
            D[i] = B[99 - i]
        for i, j in T.grid(10, 20):
            C[i, j] = D[0] + T.Cast("float32", j)
        for i, j in T.grid(10, 20):
            D[i * 20 + j] = C[9 - i, j]

    got = plan_storage(before)
    assert elements(got) == [200]
    same_results(before, got)
    same_native(before, got)


def test_types_and_scopes_do_not_mix():
    @T.prim_func
    def func(A: T.Buffer((100,)), I: T.Buffer((100,), "int32"), D: T.Buffer((100,))):
        B = T.decl_buffer((100,))
        C = T.decl_buffer((100,), "int32")
        L = T.decl_buffer((100,), scope="local")
        for i in range(100):
            B[i] = A[i]
        for i in range(100):
            D[i] = B[99 - i]
        for i in range(100):
            C[i] = I[i]
        for i in range(100):
            I[i] = C[99 - i]
        for i in range(100):
            L[i] = A[i]
        for i in range(100):
            D[i] = L[99 - i] + D[i]

    unchanged(plan_storage, func)


def test_small_buffers_are_registers():
    @T.prim_func
    def func(A: T.Buffer((8,)), D: T.Buffer((8,))):
        B = T.decl_buffer((8,))
        C = T.decl_buffer((8,))
        for i in range(8):
            B[i] = A[i]
        for i in range(8):
            D[i] = B[7 - i]
        for i in range(8):
            C[i] = D[i]
        for i in range(8):
            D[i] = C[7 - i]

    unchanged(plan_storage, func)


def test_symbolic_sizes_share_when_they_are_equal():
    @T.prim_func
    def before(a: T.handle, d: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        D = T.match_buffer(d, (n,))
        B = T.decl_buffer((n,))
        C = T.decl_buffer((n,))
        E = T.decl_buffer((n + 1,))
        for i in range(n):
            B[i] = A[i]
        for i in range(n):
            C[i] = B[i] * T.float32(2)
        for i in range(n):
            E[i + 1] = C[i]
        for i in range(n):
            D[i] = E[i + 1]

    got = plan_storage(before)
    count = []
    pre_order_visit(got.body, lambda node: count.append(node) if isinstance(node, Allocate) else None)
    assert len(count) == 2
    same_results(before, got)
    same_native(before, got)


def test_each_iteration_plans_its_own():
    """Memory allocated inside a parallel loop belongs to an iteration; memory outside is never used for it."""

    @T.prim_func
    def before(A: T.Buffer((4, 100)), D: T.Buffer((4, 100))):
        O = T.decl_buffer((100,))
        for i in range(100):
            O[i] = A[0, i]
        for i in range(100):
            D[0, i] = O[99 - i]
        for p in T.parallel(4):
            B = T.decl_buffer((100,))
            C = T.decl_buffer((100,))
            for i in range(100):
                B[i] = A[p, i]
            for i in range(100):
                D[p, i] = B[99 - i]
            for i in range(100):
                C[i] = D[p, i]
            for i in range(100):
                D[p, i] = C[99 - i]

    got = plan_storage(before)
    assert elements(got) == [100, 100]
    same_results(before, got)
    same_native(before, got)


def test_a_pointer_keeps_memory_alive():
    @T.prim_func
    def func(A: T.Buffer((100,)), D: T.Buffer((100,))):
        B = T.decl_buffer((100,))
        C = T.decl_buffer((100,))
        with T.LetStmt(T.address_of(B[0])) as p:
            for i in range(100):
                B[i] = A[i]
            for i in range(100):
                C[i] = A[i]
            for i in range(100):
                D[i] = C[i]
            T.evaluate(T.call_extern("int32", "touch", p))

    unchanged(plan_storage, func)


def test_the_setting():
    @T.prim_func
    def func(A: T.Buffer((100,)), D: T.Buffer((100,))):
        B = T.decl_buffer((100,))
        C = T.decl_buffer((100,))
        for i in range(100):
            B[i] = A[i]
        for i in range(100):
            C[i] = B[i] + T.float32(1)
        for i in range(100):
            D[i] = C[i]

    assert elements(plan_storage(func)) == [100]
    with PassContext(config={"tir.disable_storage_rewrite": True}):
        unchanged(plan_storage, func)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_chains(seed):
    """Stages that read one earlier buffer or two, straight or reversed, keep their results whatever is shared."""
    from random import Random

    random = Random(seed)
    count = random.randint(3, 7)
    lines = ["@T.prim_func", "def main(A: T.Buffer((80,)), D: T.Buffer((80,))):"]
    lines += [f"    B{k} = T.decl_buffer((80,))" for k in range(count)]
    for k in range(count):
        sources = [f"B{random.randrange(k)}" if k and random.random() < 0.8 else "A" for _ in range(2)]
        first, second = random.choice(["i", "i", "79 - i"]), random.choice(["i", "79 - i"])
        kind = random.choice(["range", "T.parallel", "T.serial"])
        lines += [f"    for i in {kind}(80):", f"        B{k}[i] = {sources[0]}[{first}] + {sources[1]}[{second}]"]
    lines += ["    for i in range(80):", f"        D[i] = B{count - 1}[i] + B{random.randrange(count)}[79 - i]"]
    from loopwright.script import from_source

    func = from_source("\n".join(lines))
    same_results(func, plan_storage(func))
    same_native(func, plan_storage(func))


def test_not_in_place_where_a_loop_bound_reads_the_old_buffer():
    @T.prim_func
    def func(A: T.Buffer((10, 10), "int32"), D: T.Buffer((10, 10), "int32")):
        B = T.decl_buffer((10, 10), "int32")
        C = T.decl_buffer((10, 10), "int32")
        for i, j in T.grid(10, 10):
            B[i, j] = A[i, j]
        for i in range(10):
            for j in range(B[0, 0] + 8):
                C[i, j] = B[i, j] + 2
        for i, j in T.grid(10, 8):
            D[i, j] = C[i, j]

    assert elements(plan_storage(func)) == [100, 100]
    same_at_every_stage(func)
    same_native(func, plan_storage(func))


def test_not_in_place_where_a_loop_starts_at_the_old_buffer():
    @T.prim_func
    def func(A: T.Buffer((10, 10), "int32"), D: T.Buffer((10, 10), "int32")):
        B = T.decl_buffer((10, 10), "int32")
        C = T.decl_buffer((10, 10), "int32")
        for i, j in T.grid(10, 10):
            B[i, j] = A[i, j]
        for i in range(10):
            for j in range(B[0, 0], 10):
                C[i, j] = B[i, j] + 2
        for i in range(10):
            D[i, 9] = C[i, 9]

    assert elements(plan_storage(func)) == [100, 100]
    same_at_every_stage(func)


def test_sizes_that_are_read_from_memory_may_differ():
    @T.prim_func
    def func(A: T.Buffer((1,), "int32"), D: T.Buffer((500,), "int32")):
        A[0] = 100
        B = T.decl_buffer((A[0],), "int32")
        for i in range(A[0]):
            B[i] = i
        for i in range(A[0]):
            D[i] = B[i]
        A[0] = 500
        C = T.decl_buffer((A[0],), "int32")
        for i in range(A[0]):
            C[i] = i * 3
        for i in range(A[0]):
            D[i] = C[i]

    unchanged(plan_storage, func)
    same_at_every_stage(func)
    same_native(func, plan_storage(func))


def test_the_size_of_a_buffer_is_a_use_of_what_it_reads():
    @T.prim_func
    def func(A: T.Buffer((100,), "int32"), D: T.Buffer((100,), "int32")):
        B = T.decl_buffer((100,), "int32")
        C = T.decl_buffer((100,), "int32")
        for i in range(100):
            B[i] = A[i] + 1
        for i in range(100):
            C[i] = A[99 - i] + 50
        E = T.decl_buffer((B[0],), "int32")
        E[0] = 7
        for i in range(100):
            D[i] = C[i] + E[0]

    unchanged(plan_storage, func)
    same_at_every_stage(func)
    same_native(func, plan_storage(func))
