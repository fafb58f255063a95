"""partition_loops: loops are cut where their guards change."""

from __future__ import annotations

import pytest

import loopwright
from loopwright import te
from loopwright.ir import For, PrimFunc, pre_order_visit
from loopwright.script import tir as T
from loopwright.transform import PassContext, lower, partition_loops
from tests.transform.before_after import PLAIN, check, same_at_every_stage, same_results, unchanged


def test_the_part_that_does_nothing_is_dropped():
    @T.prim_func
    def before(A: T.Buffer((10,)), B: T.Buffer((10,))):
        for i in range(11):
            if i < 10:
                B[i] = A[i]

    @T.prim_func
    def after(A: T.Buffer((10,)), B: T.Buffer((10,))):
        for i in range(10):
            B[i] = A[i]

    check(partition_loops, before, after)


def test_the_tail_of_a_split_loop():
    @T.prim_func
    def before(B: T.Buffer((10,))):
        for i in range(3):
            for j in T.vectorized(4):
                if i * 4 + j < 10:
                    B[i * 4 + j] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((10,))):
        for i in range(2):
            for j in T.vectorized(4):
                B[i * 4 + j] = T.float32(1)
        for j in T.vectorized(2):
            B[8 + j] = T.float32(1)

    check(partition_loops, before, after)


def test_phases_are_written_out_before_what_they_decide():
    @T.prim_func
    def before(A: T.Buffer((9,)), B: T.Buffer((18,))):
        for r in T.unroll(2, annotations={"written_out_first": 1}):
            for q in T.vectorized(9):
                B[q * 2 + r] = T.if_then_else((q * 2 + r + 1) // 2 < 9, A[(q * 2 + r + 1) // 2], T.float32(0))

    @T.prim_func
    def after(A: T.Buffer((9,)), B: T.Buffer((18,))):
        for q in T.vectorized(9):
            B[q * 2] = A[(q * 2 + 1) // 2]
        for q in T.vectorized(8):
            B[q * 2 + 1] = A[(q * 2 + 1 + 1) // 2]
        B[17] = T.float32(0)

    check(partition_loops, before, after)


def test_iterations_that_do_nothing_are_cut_off():
    """The guard of a tile fails altogether in its last rows: what is left between is one row, and constant."""

    @T.prim_func
    def before(B: T.Buffer((10,))):
        for i in range(5):
            for j in T.vectorized(4):
                if i * 4 + j < 10:
                    B[i * 4 + j] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((10,))):
        for i in range(2):
            for j in T.vectorized(4):
                B[i * 4 + j] = T.float32(1)
        for j in T.vectorized(2):
            B[8 + j] = T.float32(1)

    check(partition_loops, before, after)


def test_iterations_that_do_nothing_at_first_are_cut_off():
    @T.prim_func
    def before(B: T.Buffer((20,))):
        for i in range(5):
            for j in range(4):
                if 10 <= i * 4 + j:
                    B[i * 4 + j] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((20,))):
        for j in range(2):
            B[8 + (j + 2)] = T.float32(1)
        for i in range(2):
            for j in range(4):
                B[(i + 3) * 4 + j] = T.float32(1)

    check(partition_loops, before, after)


def test_a_guard_that_reads_what_the_loop_writes_is_left_alone():
    @T.prim_func
    def before(N: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            M = T.decl_buffer((1,), "int32")
            M[0] = N[i]
            if i < M[0]:
                B[i] = 1

    unchanged(partition_loops, before)
    same_results(before, partition_loops(before))


def test_padding_has_two_borders_and_a_middle():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((10,))):
        for i in range(10):
            B[i] = T.if_then_else(1 <= i and i < 9, A[i - 1], T.float32(0))

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((10,))):
        B[0] = T.float32(0)
        for i in range(8):
            B[i + 1] = A[i + 1 - 1]
        B[9] = T.float32(0)

    check(partition_loops, before, after)


def test_a_guard_with_an_inner_loop_variable_holds_throughout_the_middle():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            for k in range(3):
                B[i] = B[i] + T.if_then_else(1 <= i + k and i + k < 9, A[i + k - 1], T.float32(0))

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        B[0] = B[0] + T.float32(0)
        for k in range(2):
            B[0] = B[0] + A[k + 1 - 1]
        for i in range(6):
            for k in range(3):
                B[i + 1] = B[i + 1] + A[i + 1 + k - 1]
        for k in range(2):
            B[7] = B[7] + A[7 + k - 1]
        B[7] = B[7] + T.float32(0)

    check(partition_loops, before, after)


def test_an_equality_is_cut_out():
    @T.prim_func
    def before(B: T.Buffer((8,))):
        for i in range(8):
            if i == 0:
                B[i] = T.float32(5)
            else:
                B[i] = B[i - 1] + T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((8,))):
        B[0] = T.float32(5)
        for i in range(7):
            B[i + 1] = B[i + 1 - 1] + T.float32(1)

    check(partition_loops, before, after)


def test_a_parallel_loop_branches_inside():
    @T.prim_func
    def before(B: T.Buffer((10,))):
        for i in T.parallel(3):
            for j in T.vectorized(4):
                if i * 4 + j < 10:
                    B[i * 4 + j] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((10,))):
        for i in T.parallel(3):
            if i < 2:
                for j in T.vectorized(4):
                    B[i * 4 + j] = T.float32(1)
            else:
                for j in T.vectorized(2):
                    B[8 + j] = T.float32(1)

    check(partition_loops, before, after)


def test_a_symbolic_guard():
    @T.prim_func
    def before(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range((n + 3) // 4):
            for j in T.vectorized(4):
                if i * 4 + j < n:
                    B[i * 4 + j] = A[i * 4 + j]

    got = partition_loops(before)
    same_results(before, got)
    # The whole vectors come first, without a guard.
    assert got.body.seq[0].body.kind.name == "VECTORIZED" and type(got.body.seq[0].body.body).__name__ == "BufferStore"
    same_at_every_stage(before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9])
def test_boundary_sizes(n):
    @T.prim_func
    def before(A: T.Buffer((n, n)), B: T.Buffer((n, n))):
        for i_0, j_0 in T.grid((n + 3) // 4, (n + 3) // 4):
            for i_1 in range(4):
                for j_1 in T.vectorized(4):
                    if i_0 * 4 + i_1 < n and j_0 * 4 + j_1 < n:
                        B[i_0 * 4 + i_1, j_0 * 4 + j_1] = A[j_0 * 4 + j_1, i_0 * 4 + i_1]

    same_at_every_stage(before)


def test_guards_on_data_stay():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            if A[i] < i:
                B[i] = A[i]

    unchanged(partition_loops, func)


def test_copies_are_limited():
    @T.prim_func
    def func(A: T.Buffer((6, 6, 6)), B: T.Buffer((8, 8, 8))):
        for i, j, k in T.grid(8, 8, 8):
            B[i, j, k] = T.if_then_else(
                1 <= i and i < 7 and 1 <= j and j < 7 and 1 <= k and k < 7, A[i - 1, j - 1, k - 1], T.float32(0)
            )

    got = partition_loops(func)
    stores = str(got.script()).count("B[")
    assert stores <= 12
    same_results(func, got)


def test_a_reduction_keeps_its_order():
    @T.prim_func
    def before(A: T.Buffer((10,)), B: T.Buffer((1,))):
        for i in range(3):
            for j in range(4):
                if i * 4 + j < 10:
                    B[0] = B[0] * T.float32(0.5) + A[i * 4 + j]

    same_at_every_stage(before)


def test_an_outer_guard_and_two_symbolic_ends():
    @T.prim_func
    def before(A: T.Buffer((5,)), B: T.Buffer((16,)), n: T.int32, m: T.int32):
        for i in range(16):
            B[i] = T.if_then_else(n <= i and i < n + m, A[i - n], T.float32(-1))

    got = partition_loops(before)
    same_results(before, got)
    assert "if_then_else" not in got.script()


def test_a_loop_of_one_iteration_may_stay():
    @T.prim_func
    def before(B: T.Buffer((8,))):
        for i in range(8):
            if i == 0:
                B[i] = T.float32(5)
            else:
                B[i] = B[i - 1] + T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((8,))):
        for i in range(1):
            B[i] = T.float32(5)
        for i in range(7):
            B[i + 1] = B[i + 1 - 1] + T.float32(1)

    settings = {"partition_const_loop": True, "no_unroll_loop_with_extent_one": True}
    with PassContext(config={"tir.LoopPartition": settings}):
        check(partition_loops, before, after)


def test_sizes_are_not_negative():
    @T.prim_func
    def before(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in range((n + 3) // 4):
            for j in range(4):
                if i * 4 + j < n:
                    A[i * 4 + j] = T.float32(1)

    text = partition_loops(before).script()
    assert "for i, j in T.grid(n // 4, 4):" in text
    same_at_every_stage(before)


def test_an_inner_loop_whose_length_depends_on_the_loop_gives_no_place_to_cut():
    # For all j the guard holds while i > (i + 1) // 3 * 3: that is no point known before the loop.
    @T.prim_func
    def before(B: T.Buffer((7,), "int32")):
        for i in range(7):
            for j in range((i + 1) // 3):
                if j * 3 < i - 1:
                    B[i] = B[i] + j + 1

    assert "i = T.int32()" not in partition_loops(before).script()
    same_at_every_stage(before)


def test_an_inner_loop_whose_length_is_read_from_memory_gives_no_place_to_cut():
    # The loop itself writes N[0]: it must not be asked before it.
    @T.prim_func
    def before(N: T.Buffer((1,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            N[0] = i
            for j in range(N[0]):
                if j < i - 1:
                    B[i] = B[i] + 1

    assert "N[0]" not in partition_loops(before).script().split("for i", 1)[1].split(":", 1)[0]
    same_at_every_stage(before)


def test_the_quotient_of_a_fused_variable_is_a_guard():
    @T.prim_func
    def before(A: T.Buffer((15,)), B: T.Buffer((9,)), C: T.Buffer((24,))):
        for f in range(24):
            C[f] = T.if_then_else(f // 3 < 5, A[f], B[23 - f])

    @T.prim_func
    def after(A: T.Buffer((15,)), B: T.Buffer((9,)), C: T.Buffer((24,))):
        for f in range(15):
            C[f] = A[f]
        for f in range(9):
            C[f + 15] = B[23 - (f + 15)]

    check(partition_loops, before, after)


def test_many_points_leave_the_longest_stretch_without_conditions():
    @T.prim_func
    def before(A: T.Buffer((40,)), B: T.Buffer((40,))):
        for i in range(40):
            B[i] = (
                T.if_then_else(3 <= i, A[i - 3], T.float32(0))
                + T.if_then_else(2 <= i, A[i - 2], T.float32(0))
                + T.if_then_else(1 <= i, A[i - 1], T.float32(0))
                + T.if_then_else(i < 39, A[i + 1], T.float32(0))
                + T.if_then_else(i < 38, A[i + 2], T.float32(0))
            )

    got = partition_loops(before)
    loops = _loops(got)
    assert [(loop.extent, "if_then_else" in str(loop.body)) for loop in loops] == [(3, True), (35, False), (2, True)]
    same_results(before, got)


def test_a_stencil_in_two_dimensions_is_cut_around_its_middle():
    taps = [(a, b) for a in range(-2, 3) for b in range(-2, 3)]
    source = te.placeholder((20, 20), name="A")

    def at(i, j):
        return te.if_then_else(te.all(i >= 0, i < 20, j >= 0, j < 20), source[i, j], 0.0)

    result = te.compute((20, 20), lambda i, j: sum((at(i + a, j + b) for a, b in taps), 0.0 * source[i, j]), name="B")
    before = te.create_prim_func([source, result])
    got = lower(before, PLAIN, stop_after="partition_loops")["main"]
    inner = [loop for loop in _loops(got) if not isinstance(loop.body, For)]
    assert [int(loop.extent) for loop in inner if "if_then_else" not in str(loop)] == [16]
    assert str(got).count("B[") <= 9
    same_results(before, got)


def _loops(func: PrimFunc) -> list[For]:
    found: list[For] = []
    pre_order_visit(func.body, lambda node: found.append(node) if isinstance(node, For) else None)
    return found


def test_a_loop_whose_extent_is_read_from_memory_is_not_cut():
    @T.prim_func
    def func(t: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
        t[0] = 6
        for i in range(t[0]):
            if i < 3:
                t[0] = 2
            B[i] = i

    unchanged(partition_loops, func)
    same_at_every_stage(func)


def test_a_loop_that_lanes_go_through_in_lockstep_is_not_cut_lane_by_lane():
    """Lane j stores in iteration j: cut there, all lanes would store at once, and read what is not there yet."""

    @T.prim_func
    def chain(A: T.Buffer((2, 6), "int32")):
        for j in T.vectorized(5):
            for k in range(5):
                if k >= j and k <= j:
                    A[1, k + 1] = A[0, k + 1] + A[1, k] * 2

    same_at_every_stage(chain)


def test_a_guard_with_a_factor_that_no_number_of_the_loop_holds():
    @T.prim_func
    def steep(C: T.Buffer((5,), "int64")):
        for i in range(5):
            C[i] = T.int64(1)
            if i + i + (i * 2147483646 + -2) >= i - i:
                C[i] = T.int64(2)

    same_at_every_stage(steep)


@pytest.mark.parametrize(
    "settings, cut, unit_loops",
    [
        (None, True, False),
        ({"partition_const_loop": True}, True, False),
        ({"partition_const_loop": True, "no_unroll_loop_with_extent_one": True}, True, True),
        ({"partition_const_loop": False}, False, False),
    ],
)
def test_lower_reads_the_settings(settings, cut, unit_loops):
    A = te.placeholder((21,), name="A")
    B = te.compute((21,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=4)
    with PassContext(config={} if settings is None else {"tir.LoopPartition": settings}):
        text = loopwright.lower(s, [A, B])["main"].script()
    assert ("if i_outer" not in text) == cut
    assert ("T.grid(1, 1)" in text) == unit_loops


@pytest.mark.parametrize("length, line", [(21, "B[20] = A[20]"), (8, "B[i_inner + 4] = A[i_inner + 4]")])
def test_a_hint_cuts_or_unrolls(length, line):
    A = te.placeholder((length,), name="A")
    B = te.compute((length,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, _ = s[B].split(B.op.axis[0], factor=4)
    s[B].pragma(outer, "loop_partition_hint")
    with PassContext(config={"tir.LoopPartition": {"unroll_loop_with_partition_hint_no_interval": True}}):
        text = loopwright.lower(s, [A, B])["main"].script()
    assert line in text and "if i_outer" not in text and "pragma" not in text
