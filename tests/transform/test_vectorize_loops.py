"""vectorize_loops: vectorized loops become vector statements."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.runtime.call_errors import IndexOutOfRange
from loopwright.script import tir as T
from loopwright.transform import PassContext, VectorExtentUnknown, vectorize_loops
from tests.transform.before_after import PLAIN, check, same_at_every_stage, same_results, unchanged


def test_contiguous_and_uniform():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,)), x: T.float32):
        for o in range(2):
            for i in T.vectorized(4):
                B[o * 4 + i] = A[o * 4 + i] * x + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,)), x: T.float32):
        for o in range(2):
            B[o * 4 : o * 4 + 4] = A[o * 4 : o * 4 + 4] * T.Broadcast(x, 4) + T.Broadcast(T.float32(1), 4)

    check(vectorize_loops, before, after)


def test_strides_gathers_and_casts():
    @T.prim_func
    def before(A: T.Buffer((16,)), I: T.Buffer((4,), "int32"), B: T.Buffer((4,)), C: T.Buffer((4,), "int32")):
        for i in T.vectorized(4):
            B[i] = A[i * 4] + A[15 - i] + A[I[i]] + T.Cast("float32", i)
            C[i] = T.Select(A[i] < T.float32(0), i * i, I[i] // 3)

    @T.prim_func
    def after(A: T.Buffer((16,)), I: T.Buffer((4,), "int32"), B: T.Buffer((4,)), C: T.Buffer((4,), "int32")):
        B[0:4] = (
            A[T.Ramp(0, 4, 4)] + A[T.Ramp(15, -1, 4)] + A[I[T.Ramp(0, 1, 4)]] + T.Cast("float32x4", T.Ramp(0, 1, 4))
        )
        C[0:4] = T.Select(
            A[0:4] < T.Broadcast(T.float32(0), 4), T.Ramp(0, 1, 4) * T.Ramp(0, 1, 4), I[0:4] // T.Broadcast(3, 4)
        )

    check(vectorize_loops, before, after)


def test_remainders_that_all_lanes_share():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((32,)), n: T.int32):
        for q in T.vectorized(4):
            B[q * 2 + n] = A[(q * 2 + n) % 2 * 16 + (q * 2 + n) // 2]

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((32,)), n: T.int32):
        B[T.Ramp(n, 2, 4)] = A[T.Ramp(n % 2 * 16 + n // 2, 1, 4)]

    check(vectorize_loops, before, after)


def test_quotients_that_loops_decide():
    @T.prim_func
    def before(A: T.Buffer((90,)), B: T.Buffer((90,))):
        for z, i in T.grid(3, 7):
            for lane in T.vectorized(4):
                B[z * 30 + i * 4 + lane] = A[(z * 30 + i * 4 + lane) // 30 * 30 + (z * 30 + i * 4 + lane) % 30]

    @T.prim_func
    def after(A: T.Buffer((90,)), B: T.Buffer((90,))):
        for z, i in T.grid(3, 7):
            B[z * 30 + i * 4 : z * 30 + i * 4 + 4] = A[T.Ramp(z * 30 + i * 4, 1, 4)]

    check(vectorize_loops, before, after)


def test_math_calls_and_lets():
    @T.prim_func
    def before(A: T.Buffer((4,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in T.vectorized(4):
            with T.LetStmt(T.exp(A[i])) as x:
                B[i] = x / (x + T.float32(1))
                C[i] = T.power(x, T.float32(2))

    @T.prim_func
    def after(A: T.Buffer((4,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        with T.LetStmt(T.exp(A[0:4])) as x:
            B[0:4] = x / (x + T.Broadcast(T.float32(1), 4))
            C[0:4] = T.power(x, T.Broadcast(T.float32(2), 4))

    check(vectorize_loops, before, after)


def test_a_uniform_condition_stays_scalar():
    @T.prim_func
    def before(A: T.Buffer((4,)), B: T.Buffer((4,)), n: T.int32):
        for i in T.vectorized(4):
            if n > 3:
                B[i] = A[i]
            else:
                B[i] = T.if_then_else(n > 1, A[3 - i], T.float32(0))

    @T.prim_func
    def after(A: T.Buffer((4,)), B: T.Buffer((4,)), n: T.int32):
        if n > 3:
            B[0:4] = A[0:4]
        else:
            B[0:4] = T.if_then_else(n > 1, A[T.Ramp(3, -1, 4)], T.Broadcast(T.float32(0), 4))

    check(vectorize_loops, before, after)


def test_a_condition_of_the_lane_runs_lane_by_lane():
    @T.prim_func
    def before(A: T.Buffer((4,)), B: T.Buffer((4,)), n: T.int32):
        for i in T.vectorized(4):
            if i < n:
                B[i] = A[i]

    @T.prim_func
    def after(A: T.Buffer((4,)), B: T.Buffer((4,)), n: T.int32):
        for i in T.unroll(4):
            if i < n:
                B[i] = A[i]

    check(vectorize_loops, before, after)


def test_guarded_loads_stay_guarded():
    @T.prim_func
    def before(A: T.Buffer((2,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in T.vectorized(4):
            B[i] = T.if_then_else(i < 2, A[i], T.float32(0))
            C[i] = T.if_then_else(i < 2, T.float32(1), T.float32(0))

    @T.prim_func
    def after(A: T.Buffer((2,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in T.unroll(4):
            B[i] = T.if_then_else(i < 2, A[i], T.float32(0))
        C[0:4] = T.Select(
            T.Ramp(0, 1, 4) < T.Broadcast(2, 4), T.Broadcast(T.float32(1), 4), T.Broadcast(T.float32(0), 4)
        )

    check(vectorize_loops, before, after)


def test_a_choice_between_cells_of_own_memory_needs_no_guard():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        X = T.allocate((8,), "float32", "local")
        x = T.Buffer((8,), data=X, scope="local")
        for o in range(2):
            for i in T.vectorized(4):
                x[o * 4 + i] = A[o * 4 + i]
        for o in range(2):
            for i in T.vectorized(4):
                B[o * 4 + i] = T.if_then_else(A[o * 4 + i] < T.float32(0), x[o * 4 + i], x[7 - i])

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        X = T.allocate((8,), "float32", "local")
        x = T.Buffer((8,), data=X, scope="local")
        for o in range(2):
            x[o * 4 : o * 4 + 4] = A[o * 4 : o * 4 + 4]
        for o in range(2):
            B[o * 4 : o * 4 + 4] = T.Select(
                A[o * 4 : o * 4 + 4] < T.Broadcast(T.float32(0), 4), x[o * 4 : o * 4 + 4], x[T.Ramp(7, -1, 4)]
            )

    check(vectorize_loops, before, after)


def test_a_choice_between_cells_of_arguments_needs_no_guard():
    @T.prim_func
    def before(M: T.Buffer((8,), "bool"), A: T.Buffer((8,)), B: T.Buffer((7,)), C: T.Buffer((8,))):
        for i in T.vectorized(4):
            C[i + 4] = T.if_then_else(M[i], A[i + 4], B[i])
        for i in T.vectorized(4):
            C[i] = T.if_then_else(i < 3, B[i + 4], A[i])  # B[7] is not there

    @T.prim_func
    def after(M: T.Buffer((8,), "bool"), A: T.Buffer((8,)), B: T.Buffer((7,)), C: T.Buffer((8,))):
        C[4:8] = T.Select(M[0:4], A[4:8], B[0:4])
        for i in T.unroll(4):
            C[i] = T.if_then_else(i < 3, B[i + 4], A[i])

    check(vectorize_loops, before, after)


def test_a_load_that_may_leave_own_memory_stays_guarded():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        X = T.allocate((7,), "float32", "local")
        x = T.Buffer((7,), data=X, scope="local")
        for i in range(7):
            x[i] = A[i]
        for o in range(2):
            for i in T.vectorized(4):
                B[o * 4 + i] = T.if_then_else(o * 4 + i < 7, x[o * 4 + i], T.float32(0))

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        X = T.allocate((7,), "float32", "local")
        x = T.Buffer((7,), data=X, scope="local")
        for i in range(7):
            x[i] = A[i]
        for o in range(2):
            for i in T.unroll(4):
                B[o * 4 + i] = T.if_then_else(o * 4 + i < 7, x[o * 4 + i], T.float32(0))

    check(vectorize_loops, before, after)


def test_a_reduction_runs_in_order():
    @T.prim_func
    def before(A: T.Buffer((4,)), B: T.Buffer((1,))):
        for i in T.vectorized(4):
            B[0] = B[0] + A[i]

    @T.prim_func
    def after(A: T.Buffer((4,)), B: T.Buffer((1,))):
        for i in T.unroll(4):
            B[0] = B[0] + A[i]

    check(vectorize_loops, before, after, values=False)


def test_loops_inside_become_loops_of_vectors():
    @T.prim_func
    def before(A: T.Buffer((32,)), B: T.Buffer((4,))):
        for i in T.vectorized(4):
            for k in range(8):
                B[i] = B[i] + A[k * 4 + i]

    @T.prim_func
    def after(A: T.Buffer((32,)), B: T.Buffer((4,))):
        for k in range(8):
            B[0:4] = B[0:4] + A[k * 4 : k * 4 + 4]

    check(vectorize_loops, before, after)


def test_memory_inside_is_private_to_a_lane():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((4,))):
        for i in T.vectorized(4):
            C = T.decl_buffer((2,), scope="local")
            C[0] = A[i]
            C[1] = A[i + 4]
            B[i] = C[0] * C[1]

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((4,))):
        C = T.decl_buffer((8,), scope="local")
        C[0:4] = A[0:4]
        C[4:8] = A[4:8]
        B[0:4] = C[0:4] * C[4:8]

    check(vectorize_loops, before, after)


def test_a_quotient_all_lanes_share_is_scalar():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for o in range(16):
            for i in T.vectorized(4):
                B[(o * 4 + i) // 8 * 8 + (o * 4 + i) % 8] = A[(o * 4 + i) % 8 * 8 + (o * 4 + i) // 8]

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for o in range(16):
            B[T.Ramp(o * 4 // 8 * 8 + o * 4 % 8, 1, 4)] = A[T.Ramp(o * 4 % 8 * 8 + o * 4 // 8, 8, 4)]

    check(vectorize_loops, before, after)


def test_very_long_vectors_run_in_chunks():
    @T.prim_func
    def before(A: T.Buffer((150,)), B: T.Buffer((150,))):
        for i in T.vectorized(150):
            B[i] = A[i]

    @T.prim_func
    def after(A: T.Buffer((150,)), B: T.Buffer((150,))):
        for i_chunk in range(2):
            B[i_chunk * 64 : i_chunk * 64 + 64] = A[i_chunk * 64 : i_chunk * 64 + 64]
        B[128:150] = A[128:150]

    check(vectorize_loops, before, after)


def test_an_annotation_says_how_many_lanes_a_chunk_has():
    @T.prim_func
    def before(A: T.Buffer((11,)), B: T.Buffer((11,))):
        for i in T.vectorized(11, annotations={"vector_lanes": 4}):
            B[i] = A[i]

    @T.prim_func
    def after(A: T.Buffer((11,)), B: T.Buffer((11,))):
        for i_chunk in range(2):
            B[i_chunk * 4 : i_chunk * 4 + 4] = A[i_chunk * 4 : i_chunk * 4 + 4]
        B[8:11] = A[8:11]

    check(vectorize_loops, before, after)


def test_truth_values_come_in_whole_vectors():
    @T.prim_func
    def before(A: T.Buffer((44,), "bool"), B: T.Buffer((44,), "uint8")):
        for i in T.vectorized(44):
            B[i] = T.Cast("uint8", A[i])

    @T.prim_func
    def after(A: T.Buffer((44,), "bool"), B: T.Buffer((44,), "uint8")):
        for i_chunk in range(1):
            B[i_chunk * 32 : i_chunk * 32 + 32] = T.Cast("uint8x32", A[i_chunk * 32 : i_chunk * 32 + 32])
        B[32:44] = T.Cast("uint8x12", A[32:44])

    check(vectorize_loops, before, after)


def test_a_shift_in_place_is_not_cut_into_chunks():
    @T.prim_func
    def func(A: T.Buffer((101,))):
        for i in T.vectorized(100):
            A[i + 1] = A[i]

    with PLAIN:
        same_results(func, vectorize_loops(func))


def test_an_update_in_place_may_be_cut_into_chunks():
    @T.prim_func
    def before(A: T.Buffer((128,))):
        for i in T.vectorized(128):
            A[i] = A[i] + A[i]

    @T.prim_func
    def after(A: T.Buffer((128,))):
        for i_chunk in range(2):
            A[i_chunk * 64 : i_chunk * 64 + 64] = (
                A[i_chunk * 64 : i_chunk * 64 + 64] + A[i_chunk * 64 : i_chunk * 64 + 64]
            )

    check(vectorize_loops, before, after)


def test_one_lane_is_a_plain_loop():
    @T.prim_func
    def before(B: T.Buffer((1,))):
        for i in T.vectorized(1):
            B[i] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((1,))):
        for i in range(1):
            B[i] = T.float32(1)

    check(vectorize_loops, before, after)


def test_of_nested_vector_loops_the_inner_one_is_the_vector():
    @T.prim_func
    def before(B: T.Buffer((16,))):
        for i in T.vectorized(4):
            for j in T.vectorized(4):
                B[i * 4 + j] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((16,))):
        for i in range(4):
            B[i * 4 : i * 4 + 4] = T.Broadcast(T.float32(1), 4)

    check(vectorize_loops, before, after)


def test_calls_with_effects_happen_once_a_lane():
    @T.prim_func
    def before(B: T.Buffer((4,))):
        for i in T.vectorized(4):
            T.evaluate(T.call_extern("int32", "beep", i))

    got = vectorize_loops(before)
    assert got.body.kind.name == "UNROLLED" and got.body.extent.value == 4


def test_lane_dependent_lets_before_a_guard():
    @T.prim_func
    def func(A: T.Buffer((4,)), B: T.Buffer((4,))):
        for i in T.vectorized(4):
            with T.LetStmt(A[i] * T.float32(2)) as x:
                A[i] = T.float32(0)
                if x > T.float32(0):
                    B[i] = x

    same_results(func, vectorize_loops(func))


def test_the_extent_must_be_known():
    @T.prim_func
    def func(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in T.vectorized(n):
            A[i] = T.float32(0)

    message = r"vectorized loop i has extent n, which is not a constant[\s\S]*split the loop"
    with pytest.raises(VectorExtentUnknown, match=message):
        vectorize_loops(func)


def test_vectorization_can_be_switched_off():
    @T.prim_func
    def before(B: T.Buffer((4,))):
        for i in T.vectorized(4):
            B[i] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((4,))):
        for i in range(4):
            B[i] = T.float32(1)

    with PassContext(config={"tir.disable_vectorize": True}):
        check(vectorize_loops, before, after)


def test_without_vector_loops_nothing_changes():
    @T.prim_func
    def func(A: T.Buffer((4,)), B: T.Buffer((4,))):
        for i in range(4):
            B[i] = A[i]

    unchanged(vectorize_loops, func)


@T.prim_func
def diagonal_in_two_vectors(A: T.Buffer((3, 7), "int32")):
    for j in T.vectorized(2):
        for i in T.vectorized(2):
            for k in range(3):
                A[i + 1, j * 3 + k + 1] = A[i, j * 3 + k] * 3


def test_a_vector_loop_around_another_is_serial():
    same_at_every_stage(diagonal_in_two_vectors)


def test_conditions_on_what_is_loaded_anyway_are_vectors():
    @T.prim_func
    def before(A: T.Buffer((4,)), B: T.Buffer((4,)), I: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        for i in T.vectorized(4):
            C[i] = T.Select(A[i] > B[i] or (A[i] == B[i] and I[i] < i), I[i], i)

    @T.prim_func
    def after(A: T.Buffer((4,)), B: T.Buffer((4,)), I: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        C[0:4] = T.Select(
            T.Select(
                A[0:4] > B[0:4],
                T.Broadcast(T.bool(True), 4),
                T.Select(A[0:4] == B[0:4], I[0:4] < T.Ramp(0, 1, 4), T.Broadcast(T.bool(False), 4)),
            ),
            I[0:4],
            T.Ramp(0, 1, 4),
        )

    check(vectorize_loops, before, after)


def test_a_load_that_only_a_condition_allows_stays_lane_by_lane():
    @T.prim_func
    def func(A: T.Buffer((3,)), C: T.Buffer((4,), "int32")):
        for i in T.vectorized(4):
            C[i] = T.Select(i < 3 and A[i] > T.float32(0), 1, 2)

    assert "Ramp" not in vectorize_loops(func).script()
    same_at_every_stage(func)


def test_a_load_of_one_choice_is_not_sure_for_the_next():
    @T.prim_func
    def func(A: T.Buffer((3,)), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
        for i in T.vectorized(4):
            C[i] = T.if_then_else(i < 3, T.Select(A[i] > T.float32(0), 1, 2), 3)
            D[i] = T.Select(i < 3 and A[i] > T.float32(0), 1, 2)

    same_at_every_stage(func)


def test_a_check_that_lanes_agree_on_tells_of_the_first_lane():
    # The prefetch keeps the check inside the loop; only what it tells depends on the lane.
    @T.prim_func
    def func(I: T.Buffer((1,), "int32"), A: T.Buffer((4, 8)), B: T.Buffer((8,))):
        for j in T.vectorized(8):
            T.call_intrin("void", "tir.prefetch", T.address_of(A[0, j]), 0, 3, 1)
            B[j] = A[I[0], 7 - j]

    built = loopwright.build(func)
    rows, out = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros(8, np.float32)
    built(np.array([2], np.int32), rows, out)
    np.testing.assert_array_equal(out, rows[2, ::-1])
    with pytest.raises(IndexOutOfRange, match=r"reads A\[9, 7\], which is outside its shape \(4, 8\)"):
        built(np.array([9], np.int32), rows, out)


def test_a_check_that_tells_of_a_value_of_each_lane_runs_lane_by_lane():
    @T.prim_func
    def func(I: T.Buffer((1,), "int32"), J: T.Buffer((8,), "int32"), A: T.Buffer((4, 8)), B: T.Buffer((8,))):
        for j in T.vectorized(8):
            T.call_intrin("void", "tir.prefetch", T.address_of(A[0, j]), 0, 3, 1)
            with T.LetStmt(T.truncmod(T.abs(J[j]), 8)) as k:
                B[j] = A[I[0], k]

    built = loopwright.build(func)
    rows, out = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros(8, np.float32)
    order = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32)
    built(np.array([2], np.int32), order, rows, out)
    np.testing.assert_array_equal(out, rows[2, order % 8])
    with pytest.raises(IndexOutOfRange, match=r"reads A\[9, 3\], which is outside its shape \(4, 8\)"):
        built(np.array([9], np.int32), order, rows, out)
