"""flatten_buffers: every buffer has one dimension."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.ir import BufferStore, For, ForKind, PrimFunc, Var, const, decl_buffer
from loopwright.script import tir as T
from loopwright.transform import BlockNotLowered, flatten_buffers
from tests.transform.before_after import check, same_program, same_results, unchanged


def test_arguments_keep_their_declaration_and_the_body_sees_flat_memory():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), B: T.Buffer((8, 4))):
        for i, j in T.grid(4, 8):
            B[j, i] = A[i, j]

    @T.prim_func
    def after(A: T.Buffer((4, 8)), B: T.Buffer((8, 4))):
        A_1 = T.decl_buffer((32,), data=A.data)
        B_1 = T.decl_buffer((32,), data=B.data)
        for i, j in T.grid(4, 8):
            B_1[j * 4 + i] = A_1[i * 8 + j]

    check(flatten_buffers, before, after)


def test_strides_and_offset_go_into_the_index():
    @T.prim_func
    def before(a: T.handle, B: T.Buffer((3, 4))):
        A = T.match_buffer(a, (3, 4), strides=(5, 1))
        for i, j in T.grid(3, 4):
            B[i, j] = A[i, j]

    @T.prim_func
    def after(a: T.handle, B: T.Buffer((3, 4))):
        A = T.match_buffer(a, (3, 4), strides=(5, 1))
        A_1 = T.decl_buffer((14,), data=A.data)
        B_1 = T.decl_buffer((12,), data=B.data)
        for i, j in T.grid(3, 4):
            B_1[i * 4 + j] = A_1[i * 5 + j]

    same_program(flatten_buffers(before), after)


def test_allocations_get_one_extent():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        C = T.decl_buffer((4, 8))
        for i, j in T.grid(4, 8):
            C[i, j] = A[i, j]
        for i, j in T.grid(4, 8):
            B[i, j] = C[i, 7 - j]

    @T.prim_func
    def after(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        A_1 = T.decl_buffer((32,), data=A.data)
        B_1 = T.decl_buffer((32,), data=B.data)
        C = T.decl_buffer((32,))
        for i, j in T.grid(4, 8):
            C[i * 8 + j] = A_1[i * 8 + j]
        for i, j in T.grid(4, 8):
            B_1[i * 8 + j] = C[i * 8 + (7 - j)]

    check(flatten_buffers, before, after)


def test_a_scalar_buffer_has_one_element():
    @T.prim_func
    def before(A: T.Buffer(()), B: T.Buffer((4,))):
        for i in range(4):
            A[()] = A[()] + B[i]

    @T.prim_func
    def after(A: T.Buffer(()), B: T.Buffer((4,))):
        A_1 = T.decl_buffer((1,), data=A.data)
        for i in range(4):
            A_1[0] = A_1[0] + B[i]

    check(flatten_buffers, before, after)


def test_vectors_of_the_last_dimension_stay_ramps():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for i in range(4):
            B[i, 0:8] = A[i, T.Ramp(7, -1, 8)]

    @T.prim_func
    def after(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        A_1 = T.decl_buffer((32,), data=A.data)
        B_1 = T.decl_buffer((32,), data=B.data)
        for i in range(4):
            B_1[i * 8 : i * 8 + 8] = A_1[T.Ramp(i * 8 + 7, -1, 8)]

    check(flatten_buffers, before, after)


def test_symbolic_shapes():
    @T.prim_func
    def before(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4))
        B = T.match_buffer(b, (4, n))
        for i, j in T.grid(n, 4):
            B[j, i] = A[i, j]

    @T.prim_func
    def after(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4))
        B = T.match_buffer(b, (4, n))
        A_1 = T.decl_buffer((4 * n,), data=A.data)
        B_1 = T.decl_buffer((4 * n,), data=B.data)
        for i, j in T.grid(n, 4):
            B_1[j * n + i] = A_1[i * 4 + j]

    check(flatten_buffers, before, after)


def test_an_index_that_needs_64_bits_is_computed_in_64():
    A = decl_buffer((70_000, 70_000), "int8", name="A")
    i = Var("i")
    func = PrimFunc([A], For(i, 0, 70_000, ForKind.SERIAL, BufferStore(A, const(1, "int8"), [i, i])))
    flat = flatten_buffers(func)
    store = flat.body.body.body
    assert store.indices[0].dtype == "int64"
    assert flat.body.buffer.shape[0].value == 4_900_000_000


def test_flat_buffers_stay():
    @T.prim_func
    def func(A: T.Buffer((4,)), B: T.Buffer((4,), "bool")):
        for i in range(4):
            B[i] = A[i] < T.float32(0)

    unchanged(flatten_buffers, func)


def test_zero_size():
    @T.prim_func
    def func(A: T.Buffer((0, 4)), B: T.Buffer((4,))):
        for i, j in T.grid(0, 4):
            B[j] = A[i, j]

    same_results(func, flatten_buffers(func))


def test_blocks_must_be_gone():
    @T.prim_func
    def func(A: T.Buffer((4, 4))):
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                A[vi, vi] = T.float32(0)

    with pytest.raises(BlockNotLowered, match="flatten_buffers: block root is still there"):
        flatten_buffers(func)


def test_the_parts_of_a_fused_variable_meet_again():
    @T.prim_func
    def before(A: T.Buffer((40, 3)), B: T.Buffer((3, 40))):
        for f, l in T.grid(8, 15):
            B[(f * 15 + l) % 3, f * 5 + l // 3] = A[f * 5 + l // 3, l % 3]

    made = flatten_buffers(before)
    same_results(before, made)
    made = made.script()
    assert "A_1[f * 15 + l]" in made and "% 3 * 40" in made


def test_what_a_loop_that_runs_says_of_sizes_is_forgotten_after_it():
    @T.prim_func
    def func(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i, j in T.grid(n // T.int64(16), 16):  # runs only where n >= 16
            B[i * T.int64(16) + T.Cast("int64", j)] = A[i * T.int64(16) + T.Cast("int64", j)]
        for i in range(n % T.int64(16)):
            B[n // T.int64(16) * T.int64(16) + i] = A[
                T.if_then_else(
                    n // T.int64(16) * T.int64(16) + i < T.int64(1),
                    n - T.int64(1),
                    n // T.int64(16) * T.int64(16) + i - T.int64(1),
                )
            ]

    made = flatten_buffers(func)
    for n in (0, 1, 2, 15, 16, 17, 33):
        rows = np.arange(n, dtype="float32")
        found, wanted = np.zeros(n, "float32"), np.zeros(n, "float32")
        evaluate(func, rows, wanted)
        evaluate(made, rows, found)
        assert (found == wanted).all()
