"""separate_full_tiles: threads that are wholly inside run without guards."""

from __future__ import annotations

from loopwright.script import tir as T
from loopwright.transform import separate_full_tiles
from tests.transform.before_after import check, unchanged


def test_all_corners_are_asked_once():
    @T.prim_func
    def before(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(5):
            for i in T.unroll(2):
                for j in T.vectorized(4):
                    if b * 8 + i * 4 + j < n and b - n <= 3 - j:
                        B[b * 8 + i * 4 + j] = A[b * 8 + i * 4 + j]

    @T.prim_func
    def after(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(5):
            if b * 8 + 7 < n and b - n <= 0:
                for i in T.unroll(2):
                    for j in T.vectorized(4):
                        B[b * 8 + i * 4 + j] = A[b * 8 + i * 4 + j]
            else:
                for i in T.unroll(2):
                    for j in T.vectorized(4):
                        if b * 8 + i * 4 + j < n and b - n <= 3 - j:
                            B[b * 8 + i * 4 + j] = A[b * 8 + i * 4 + j]

    check(separate_full_tiles, before, after, again=False)


def test_a_comparison_that_falls_and_one_that_memory_decides():
    @T.prim_func
    def before(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(5):
            for j in T.vectorized(8):
                if n > 7 - j and A[b * 8 + j] > T.float32(0):
                    B[b * 8 + j] = A[b * 8 + j]

    @T.prim_func
    def after(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(5):
            if n > 7:
                for j in T.vectorized(8):
                    if A[b * 8 + j] > T.float32(0):
                        B[b * 8 + j] = A[b * 8 + j]
            else:
                for j in T.vectorized(8):
                    if n > 7 - j and A[b * 8 + j] > T.float32(0):
                        B[b * 8 + j] = A[b * 8 + j]

    check(separate_full_tiles, before, after, again=False)


def test_a_choice_between_a_load_and_a_constant():
    @T.prim_func
    def before(A: T.Buffer(40), B: T.Buffer(4), n: T.int32):
        for b in range(5):
            for i in T.unroll(2):
                for j in T.vectorized(4):
                    B[j] = B[j] + T.if_then_else(b * 8 + i * 4 + j < n, A[b * 8 + i * 4 + j], T.float32(0))

    @T.prim_func
    def after(A: T.Buffer(40), B: T.Buffer(4), n: T.int32):
        for b in range(5):
            if b * 8 + 7 < n:
                for i in T.unroll(2):
                    for j in T.vectorized(4):
                        B[j] = B[j] + A[b * 8 + i * 4 + j]
            else:
                for i in T.unroll(2):
                    for j in T.vectorized(4):
                        B[j] = B[j] + T.if_then_else(b * 8 + i * 4 + j < n, A[b * 8 + i * 4 + j], T.float32(0))

    check(separate_full_tiles, before, after, again=False)


def test_several_loads_of_a_thread_are_under_way_together():
    @T.prim_func
    def before(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(5):
            for i in T.unroll(2):
                for j in T.unroll(2):
                    if b * 8 + i * 4 + j * 2 < n:
                        B[b * 8 + i * 4 + j * 2] = A[b * 8 + i * 4 + j * 2]

    @T.prim_func
    def after(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(5):
            if b * 8 + 6 < n:
                for i in T.unroll(2):
                    for j in T.unroll(2):
                        B[b * 8 + i * 4 + j * 2] = A[b * 8 + i * 4 + j * 2]
            else:
                for i in T.unroll(2):
                    for j in T.unroll(2):
                        if b * 8 + i * 4 + j * 2 < n:
                            B[b * 8 + i * 4 + j * 2] = A[b * 8 + i * 4 + j * 2]

    check(separate_full_tiles, before, after, again=False)


def test_threads_of_every_block_that_are_outside_are_guarded_in_the_last_iteration():
    @T.prim_func
    def before(A: T.Buffer(2500), B: T.Buffer(2500)):
        for b in T.thread_binding(10, thread="blockIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                for i in T.unroll(8):
                    if i * 32 + t < 250:
                        B[b * 250 + i * 32 + t] = A[b * 250 + i * 32 + t]

    @T.prim_func
    def after(A: T.Buffer(2500), B: T.Buffer(2500)):
        for b in T.thread_binding(10, thread="blockIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                for i in T.unroll(7):
                    B[b * 250 + i * 32 + t] = A[b * 250 + i * 32 + t]
                if T.Mul(7, 32) + t < 250:
                    B[b * 250 + T.Mul(7, 32) + t] = A[b * 250 + T.Mul(7, 32) + t]

    check(separate_full_tiles, before, after, again=False)


def test_choices_that_stay():
    @T.prim_func
    def the_same_for_all(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(5):
            for j in T.vectorized(8):
                B[b * 8 + j] = T.if_then_else(b < n, A[b * 8 + j], T.float32(0))

    @T.prim_func
    def between_loads(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(5):
            for j in T.vectorized(8):
                B[b * 8 + j] = T.if_then_else(b * 8 + j < n, A[b * 8 + j], A[0])

    unchanged(separate_full_tiles, the_same_for_all)
    unchanged(separate_full_tiles, between_loads)


def test_what_stays():
    @T.prim_func
    def few(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(10):
            for j in T.unroll(3):
                if b * 3 + j < n:
                    B[b * 3 + j] = A[b * 3 + j]

    @T.prim_func
    def not_linear(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(10):
            for j in T.vectorized(4):
                if j * j < n and T.Cast("int32", A[b * 4]) < j:
                    B[b * 4 + j] = A[b * 4 + j]

    @T.prim_func
    def with_an_else(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(10):
            for j in T.vectorized(4):
                if b * 4 + j < n:
                    B[b * 4 + j] = A[b * 4 + j]
                else:
                    B[b * 4 + j] = T.float32(0)

    @T.prim_func
    def known_inside_only(A: T.Buffer(40), B: T.Buffer(40), n: T.int32):
        for b in range(10):
            for j in T.vectorized(4):
                with T.LetStmt(T.Cast("int32", A[b * 4 + j])) as limit:
                    if b * 4 + j < limit:
                        B[b * 4 + j] = A[b * 4 + j]

    for func in (few, not_linear, with_an_else, known_inside_only):
        unchanged(separate_full_tiles, func)


def test_a_nest_with_a_barrier_is_separated_on_both_sides_of_it():
    @T.prim_func
    def func(A: T.Buffer(64), B: T.Buffer(64), n: T.int32):
        S = T.alloc_buffer((64,), scope="shared")
        for t in T.thread_binding(16, thread="threadIdx.x"):
            for _i in T.unroll(1):
                for j in T.vectorized(4):
                    if t * 4 + j < n:
                        S[t * 4 + j] = A[t * 4 + j]
                T.evaluate(T.tvm_storage_sync("shared"))
                for j in T.vectorized(4):
                    if t * 4 + j < n:
                        B[t * 4 + j] = S[63 - t * 4 - j]

    got = str(separate_full_tiles(func))
    assert got.count("tvm_storage_sync") == 1
    assert got.count("else") == 2
    assert got.count("T.unroll(1)") == 1


def test_borders_that_warp_upon_warp_meets_keep_their_guards():
    def rows_of(length):
        @T.prim_func
        def func(A: T.Buffer(65536), B: T.Buffer(65536)):
            for b in T.thread_binding(64, thread="blockIdx.x"):
                for t in T.thread_binding(256, thread="threadIdx.x"):
                    for j in T.vectorized(4):
                        B[b * 1024 + t * 4 + j] = T.if_then_else(
                            (b * 256 + t) % length * 4 + j >= 1, A[b * 1024 + t * 4 + j - 1], T.float32(0)
                        )

        return func

    unchanged(separate_full_tiles, rows_of(57))
    assert str(separate_full_tiles(rows_of(2048))).count("else") > str(rows_of(2048)).count("else")


def test_lanes_that_exchange_values_stay_in_one_statement():
    @T.prim_func
    def stored(A: T.Buffer(1000), B: T.Buffer(1000)):
        tx = T.launch_thread("threadIdx.x", 64)
        s = T.decl_buffer((1,), scope="local")
        for k in T.unroll(8):
            if tx * 16 + k < 1000:
                A[tx * 16 + k] = T.float32(0)
            s[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), B[tx], 1, 32, 32)

    @T.prim_func
    def named(A: T.Buffer(1000), B: T.Buffer(1000)):
        tx = T.launch_thread("threadIdx.x", 64)
        s = T.decl_buffer((1,), scope="local")
        for k in T.unroll(8):
            if tx * 16 + k < 1000:
                A[tx * 16 + k] = T.float32(0)
            with T.LetStmt(T.tvm_warp_shuffle_xor(T.uint32(4294967295), B[tx], 1, 32, 32)) as v:
                s[0] = v + T.float32(1)

    @T.prim_func
    def asked(A: T.Buffer(1000), B: T.Buffer(1000)):
        tx = T.launch_thread("threadIdx.x", 64)
        for k in T.unroll(8):
            if tx * 16 + k < 1000:
                A[tx * 16 + k] = T.float32(0)
            if T.tvm_warp_shuffle_xor(T.uint32(4294967295), B[tx], 1, 32, 32) > T.float32(0):
                A[0] = T.float32(1)

    for function in (stored, named, asked):
        unchanged(separate_full_tiles, function)
