"""scalarize_vectors: vector statements as loops over their lanes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.evaluator import evaluate
from loopwright.ir import Expr, Node, pre_order_visit
from loopwright.runtime.errors import NotBuilt
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import lower, scalarize_long_vectors, scalarize_vectors
from tests.transform.before_after import check, same_at_every_stage, unchanged

PLAIN_C = Target("c -mtriple=x86_64-linux-gnu -mcpu=x86-64")


def has_vectors(program: Node) -> bool:
    found = []

    def look(node: Node) -> None:
        if isinstance(node, Expr) and node.dtype.lanes > 1:
            found.append(node)

    pre_order_visit(program, look)
    return bool(found)


def test_a_vector_store_is_a_loop():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((4,)), x: T.float32):
        B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 2, 4)] + T.Broadcast(x, 4)

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((4,)), x: T.float32):
        for lane in range(4):
            B[lane] = A[lane * 2] + x

    check(scalarize_vectors, before, after, values=False)


def test_scalars_stay_the_same_object():
    @T.prim_func
    def scalar(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = A[7 - i]

    unchanged(scalarize_vectors, scalar)


def test_a_lane_may_read_its_own_place():
    @T.prim_func
    def before(A: T.Buffer((4,))):
        A[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4)] * T.Broadcast(T.float32(2), 4)

    @T.prim_func
    def after(A: T.Buffer((4,))):
        for lane in range(4):
            A[lane] = A[lane] * T.float32(2)

    check(scalarize_vectors, before, after)


def test_lanes_that_read_other_places_are_computed_first():
    @T.prim_func
    def before(A: T.Buffer((5,))):
        A[T.Ramp(1, 1, 4)] = A[T.Ramp(0, 1, 4)] + T.Broadcast(T.float32(1), 4)

    @T.prim_func
    def after(A: T.Buffer((5,))):
        A_lanes = T.allocate([4], "float32", "global")
        A_lanes_1 = T.Buffer((4,), data=A_lanes)
        for lane in range(4):
            A_lanes_1[lane] = A[lane] + T.float32(1)
        for lane in range(4):
            A[1 + lane] = A_lanes_1[lane]

    check(scalarize_vectors, before, after)


def test_places_that_the_store_itself_moves_are_found_first():
    @T.prim_func
    def before(A: T.Buffer((4,), "int32")):
        A[A[T.Ramp(0, 1, 4)]] = T.Ramp(10, 1, 4)

    given = np.array([1, 2, 3, 0], "int32")
    wanted, got = given.copy(), given.copy()
    evaluate(before, wanted)
    evaluate(scalarize_vectors(before), got)
    assert wanted.tolist() == got.tolist() == [13, 10, 11, 12]


def test_a_vector_variable_has_memory():
    @T.prim_func
    def before(A: T.Buffer((4,)), B: T.Buffer((4,))):
        with T.LetStmt(A[T.Ramp(0, 1, 4)] * T.Broadcast(T.float32(3), 4)) as v:
            B[T.Ramp(0, 1, 4)] = v + v

    @T.prim_func
    def after(A: T.Buffer((4,)), B: T.Buffer((4,))):
        v = T.allocate([4], "float32", "global")
        v_1 = T.Buffer((4,), data=v)
        for lane in range(4):
            v_1[lane] = A[lane] * T.float32(3)
        for lane in range(4):
            B[lane] = v_1[lane] + v_1[lane]

    check(scalarize_vectors, before, after)


@T.prim_func
def mixed(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((2,), "uint32"), D: T.Buffer((8,), "uint8")):
    B[T.Ramp(0, 1, 8)] = T.if_then_else(
        A[T.Ramp(0, 1, 8)] > T.Broadcast(T.float32(0), 8), A[T.Ramp(7, -1, 8)], T.Broadcast(T.float32(-1), 8)
    )
    B[T.Ramp(4, 1, 4)] = T.Shuffle([B[T.Ramp(0, 1, 4)], A[T.Ramp(0, 1, 4)]], [7, 0, 5, 2])
    C[T.Ramp(0, 1, 2)] = T.reinterpret("uint32x2", D[T.Ramp(0, 1, 8)])
    C[0] = T.reinterpret("uint32", D[T.Ramp(2, 1, 4)])
    D[T.Ramp(0, 1, 4)] = T.reinterpret("uint8x4", C[0])
    D[4] = T.Cast("uint8", T.Shuffle([D[T.Ramp(0, 1, 4)]], [2]))


def test_shuffles_bits_and_choices():
    lowered = same_at_every_stage(mixed, PLAIN_C)
    assert not has_vectors(lowered.body)


def test_vectorized_loops_keep_their_lockstep():
    @T.prim_func
    def shift(A: T.Buffer((9,)), B: T.Buffer((8,))):
        for i in T.vectorized(8):
            A[i + 1] = A[i]
            B[i] = A[8 - i]

    assert not has_vectors(same_at_every_stage(shift, PLAIN_C).body)


@pytest.mark.parametrize("lanes", [2, 3, 4])
def test_buffers_of_vectors(lanes):
    @T.prim_func
    def reverse(A: T.Buffer((5,), f"int32x{lanes}"), B: T.Buffer((5,), f"int32x{lanes}")):
        for i in range(5):
            B[i] = A[4 - i] + T.Broadcast(i, lanes)

    for _, lowered in lower(reverse, PLAIN_C).functions_items():
        assert not has_vectors(lowered.body)


def test_a_call_that_takes_vectors_has_no_lanes():
    @T.prim_func
    def call(A: T.Buffer((4,))):
        A[T.Ramp(0, 1, 4)] = T.call_pure_extern("float32x4", "four_at_once", A[T.Ramp(0, 1, 4)])

    with pytest.raises(NotBuilt, match=r"tir.call_pure_extern on vectors, for a target without vectors"):
        scalarize_vectors(call)


def test_only_functions_with_long_vectors_lose_them():
    @T.prim_func
    def short(A: T.Buffer((1024,)), B: T.Buffer((1024,))):
        B[T.Ramp(0, 1, 1024)] = A[T.Ramp(0, 1, 1024)] * T.Broadcast(T.float32(2), 1024)

    @T.prim_func
    def before(A: T.Buffer((1025,)), B: T.Buffer((1025,))):
        B[T.Ramp(0, 1, 1025)] = A[T.Ramp(0, 1, 1025)] * T.Broadcast(T.float32(2), 1025)

    @T.prim_func
    def after(A: T.Buffer((1025,)), B: T.Buffer((1025,))):
        for lane in range(1025):
            B[lane] = A[lane] * T.float32(2)

    unchanged(scalarize_long_vectors, short)
    check(scalarize_long_vectors, before, after)


_LONG = {
    "slice": ("O[0:{n}] = A[0:{n}] * 3", lambda a: a * 3),
    "ramp": ("O[T.ramp({n} - 1, -1, {n})] = A[T.ramp(0, 1, {n})] // 3", lambda a: a[::-1] // 3),
    "in place": ("O[0:{n}] = A[0:{n}]\n    O[0:{n}] = O[T.ramp({n} - 1, -1, {n})]", lambda a: a[::-1]),
    "loop": ("for i in T.vectorized({n}):\n        O[i] = A[i] * 3", lambda a: a * 3),
    "loop in place": (
        "O[0:{n}] = A[0:{n}]\n    for i in T.vectorized({n} - 1):\n        O[i] = O[i + 1]",
        lambda a: np.append(a[1:], a[-1]),
    ),
    "vectors in memory": (
        'K = T.alloc_buffer((1,), "int32x{n}")\n    K[0] = A[0:{n}]\n    O[0:{n}] = K[0] + K[0]',
        lambda a: a + a,
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("kind", _LONG)
def test_vectors_of_more_lanes_than_llvm_takes(kind, target):
    n = 65536
    text, expected = _LONG[kind]
    program = from_source(
        f'@T.prim_func\ndef main(A: T.Buffer(({n},), "int32"), O: T.Buffer(({n},), "int32")):\n    {text.format(n=n)}\n'
    )
    a, o = np.arange(n, dtype="int32"), np.zeros(n, "int32")
    lw.build(program, target=target)(a, o)
    np.testing.assert_array_equal(o, expected(a))


def test_a_long_vector_inside_a_scalar_is_refused():
    program = from_source(
        '@T.prim_func\ndef main(A: T.Buffer((65536,), "int32"), O: T.Buffer((1,), "int32")):\n'
        "    O[0] = T.Shuffle([A[0:65536]], [5])\n"
    )
    with pytest.raises(NotBuilt, match=r"a vector of 65,536 lanes \(int32x65536\)"):
        lw.build(program, target="llvm")
