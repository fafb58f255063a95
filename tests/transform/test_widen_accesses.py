"""widen_accesses: vector statements as wide loads, lanes, and wide stores."""

from __future__ import annotations

import pytest

from loopwright.ir import Allocate, BufferLoad, BufferStore, collect
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import scalarize_vectors, stages, widen_accesses
from tests.transform.before_after import check, same_results, unchanged


def test_a_load_and_a_store_are_wide_and_the_lanes_stand_between():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,)), x: T.float32):
        for i in range(16):
            B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 4, 1, 4)] * T.Broadcast(x, 4)

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,)), x: T.float32):
        for i in range(16):
            A_data = T.allocate([4], "float32", "local")
            A_lanes = T.Buffer((4,), data=A_data, scope="local")
            A_lanes[T.Ramp(0, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]
            B_data = T.allocate([4], "float32", "local")
            B_lanes = T.Buffer((4,), data=B_data, scope="local")
            B_lanes[T.Ramp(0, 1, 4)] = A_lanes[T.Ramp(0, 1, 4)] * T.Broadcast(x, 4)
            B[T.Ramp(i * 4, 1, 4)] = B_lanes[T.Ramp(0, 1, 4)]

    check(widen_accesses, before, after, again=False)


def test_many_lanes_are_several_accesses():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i in range(8):
            B[T.Ramp(i * 8, 1, 8)] = A[T.Ramp(i * 8, 1, 8)]

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i in range(8):
            for piece in T.unroll(2):
                B[T.Ramp(i * 8 + piece * 4, 1, 4)] = A[T.Ramp(i * 8 + piece * 4, 1, 4)]

    check(widen_accesses, before, after, again=False)


def test_a_copy_into_local_memory_has_nothing_between():
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))):
        L_data = T.allocate([4], "float32", "local")
        L = T.Buffer((4,), data=L_data, scope="local")
        for i in range(16):
            L[T.Ramp(0, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]
            B[T.Ramp(i * 4, 1, 4)] = L[T.Ramp(0, 1, 4)]

    unchanged(widen_accesses, func)


@pytest.mark.parametrize(
    "statement",
    [
        "B[T.Ramp(i * 4 + 1, 1, 4)] = A[T.Ramp(i * 3, 1, 4)]",  # nobody knows where they begin
        "B[T.Ramp(i * 12, 1, 3)] = A[T.Ramp(i * 12, 1, 3)]",  # 12 bytes
        "B[T.Ramp(i * 8, 2, 4)] = A[T.Ramp(i * 4 + 3, -1, 4)]",  # no neighbours
        "B[T.Ramp(i * 8, 2, 4)] = -T.if_then_else(i < 3, A[T.Ramp(i * 4, 1, 4)], T.Broadcast(T.float32(0), 4))",
    ],
)
def test_what_is_not_aligned_stays(statement):
    func = from_source(
        "@T.prim_func\ndef func(A: T.Buffer((256,)), B: T.Buffer((256,))):\n    for i in range(8):\n        "
        + statement
    )
    unchanged(widen_accesses, func)


def test_one_side_alone_may_be_wide():
    @T.prim_func
    def func(A: T.Buffer((256,)), B: T.Buffer((256,))):
        for i in range(8):
            B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 3, 1, 4)]

    got = widen_accesses(func)
    wide = [store.buffer.name for store in collect(got.body, BufferStore)]
    assert wide == ["B_lanes", "B"]
    same_results(func, got)


def test_a_size_may_have_to_be_a_multiple():
    source = """
@T.prim_func
def func(a: T.handle, b: T.handle):
    m = T.int32()
    A = T.match_buffer(a, (8 * m,))
    B = T.match_buffer(b, (8 * m,))
    for i, j in T.grid(8, m // 4):
        B[T.Ramp(i * m + j * 4, 1, 4)] = A[T.Ramp(i * m + j * 4, 1, 4)]
"""
    unchanged(widen_accesses, from_source(source))


def test_a_choice_that_all_lanes_share_guards_its_loads():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((128,))):
        for i in range(32):
            B[T.Ramp(i * 4, 1, 4)] = T.if_then_else(i < 16, A[T.Ramp(i * 4, 1, 4)], T.Broadcast(T.float32(0), 4))

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((128,))):
        for i in range(32):
            if i < 16:
                B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]
            else:
                B_data = T.allocate([4], "float32", "local")
                B_lanes = T.Buffer((4,), data=B_data, scope="local")
                B_lanes[T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 4)
                B[T.Ramp(i * 4, 1, 4)] = B_lanes[T.Ramp(0, 1, 4)]

    check(widen_accesses, before, after, again=False)


def test_lanes_that_read_what_others_write_load_first():
    @T.prim_func
    def func(A: T.Buffer((16,))):
        A[T.Ramp(0, 1, 4)] = A[T.Ramp(4, 1, 4)] + A[T.Ramp(1, 1, 4)] + A[T.Ramp(4, 1, 4)]

    got = widen_accesses(func)
    assert len(collect(got.body, Allocate)) == 2  # what is loaded twice is loaded once
    same_results(func, got)
    same_results(func, scalarize_vectors(got))


def test_bytes_of_bool_are_copied_by_their_truth():
    @T.prim_func
    def func(A: T.Buffer((16,), "bool"), B: T.Buffer((16,), "bool")):
        B[T.Ramp(0, 1, 16)] = A[T.Ramp(0, 1, 16)]

    got = widen_accesses(func)
    assert [store.buffer.name for store in collect(got.body, BufferStore)] == ["A_lanes", "B_lanes", "B"]
    same_results(func, got)


def test_on_a_gpu_wide_copies_reach_code_generation():
    @T.prim_func
    def func(A: T.Buffer((4, 64)), B: T.Buffer((4, 64))):
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for t in T.thread_binding(16, thread="threadIdx.x"):
                for v in T.vectorized(4):
                    B[b, t * 4 + v] = A[b, t * 4 + v]

    *_, (_, last) = stages(func, "cuda")
    (load,) = collect(last.body, BufferLoad)
    assert load.dtype.lanes == 4
    same_results(func, last)
    with Target("cuda"):
        assert scalarize_vectors(last) is last
