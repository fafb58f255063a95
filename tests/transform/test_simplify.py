"""simplify: indices and conditions in their simplest form, and no statement without effect."""

from __future__ import annotations

import pytest

from loopwright.ir import Allocate, BufferStore, PrimFunc, const, decl_buffer, no_op, seq
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import simplify
from tests.transform.before_after import check, same_at_every_stage, same_program, unchanged


def test_indices():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i, j in T.grid(8, 8):
            B[(i * 16 + j * 2) // 2] = A[(i * 8 + j) // 8 * 8 + (i * 8 + j) % 8]

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i, j in T.grid(8, 8):
            B[i * 8 + j] = A[i * 8 + j]

    check(simplify, before, after)


def test_branches_that_loop_bounds_decide():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(4):
            if i < 8:
                B[i] = A[i]
            if i > 9:
                B[0] = A[i]
            B[i + 4] = T.if_then_else(i + 4 < 8, A[i], T.float32(0))

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(4):
            B[i] = A[i]
            B[i + 4] = A[i]

    check(simplify, before, after)


def test_a_condition_is_a_fact_inside():
    @T.prim_func
    def before(A: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            if i < n:
                if i < n + 1:
                    A[i] = T.float32(1)
            else:
                if i < n:
                    A[i] = T.float32(2)

    @T.prim_func
    def after(A: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            if i < n:
                A[i] = T.float32(1)

    check(simplify, before, after)


def test_loops_without_iterations_or_effect_go():
    @T.prim_func
    def before(A: T.Buffer((8,))):
        for i in range(0):
            A[i] = T.float32(1)
        for i in range(4):
            for j in range(4):
                if j + i > 6:
                    A[j] = T.float32(1)
        for i in range(1):
            A[i * 4 + 3] = T.float32(2)

    @T.prim_func
    def after(A: T.Buffer((8,))):
        A[3] = T.float32(2)

    check(simplify, before, after)


def test_a_cell_stored_into_itself_is_no_store():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            A[i] = A[(i * 2) // 2]
            B[i] = A[i]

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = A[i]

    check(simplify, before, after)


def test_data_is_left_alone():
    """Stored integers wrap around: x * 2 // 2 is not x."""

    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
        for i in range(8):
            A[i] = A[i] * 65536 * 65536 // 65536
            B[i] = B[i] * T.float32(0) + (B[i] - B[i])

    unchanged(simplify, func)


def test_lets_give_bounds_and_trivial_ones_go():
    @T.prim_func
    def before(A: T.Buffer((16,))):
        for i in range(4):
            with T.LetStmt(i * 2) as x:
                with T.LetStmt(3) as y:
                    if x < 7:
                        A[x + y] = T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((16,))):
        for i in range(4):
            with T.LetStmt(i * 2) as x:
                A[x + 3] = T.float32(1)

    check(simplify, before, after)


def test_unused_memory_goes():
    A, B = decl_buffer((4,), name="A"), decl_buffer((4,), name="B")
    store = BufferStore(A, 1.0, [0])
    func = PrimFunc([A], seq([Allocate(B.data, "float32", [4], const(True), no_op()), store]))
    same_program(simplify(func), PrimFunc([A], store))


def test_asserts_that_hold_go():
    @T.prim_func
    def before(A: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            assert i < 8, "always"
            assert i < n, "maybe"
            A[i] = T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            assert i < n, "maybe"
            A[i] = T.float32(1)

    check(simplify, before, after, values=False)


def test_vectors():
    @T.prim_func
    def before(A: T.Buffer((32,)), B: T.Buffer((32,))):
        for i in range(4):
            B[T.Ramp(i * 8 + 4 - 4, 1, 8)] = A[T.Ramp((i * 16) // 2, 2 - 1, 8)]

    @T.prim_func
    def after(A: T.Buffer((32,)), B: T.Buffer((32,))):
        for i in range(4):
            B[i * 8 : i * 8 + 8] = A[i * 8 : i * 8 + 8]

    check(simplify, before, after)


def test_what_is_simple_stays_the_same_object():
    @T.prim_func
    def func(A: T.Buffer((32,)), B: T.Buffer((32,)), n: T.int32):
        for i, j in T.grid(4, 8):
            if i * 8 + j < n:
                B[i * 8 + j] = A[i * 8 + j] + T.float32(1)

    unchanged(simplify, func)


@pytest.mark.parametrize("choice", ["T.Select(T.bool(True), {x}, N[0])", "T.if_then_else(T.bool(False), N[0], {x})"])
def test_a_choice_with_data_on_the_other_side_wraps_around_as_it_did(choice):
    chosen = choice.format(x="T.Mul(1073741823, 1073741823) + 0")
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer(1, "uint32"), N: T.Buffer(1, "int32"), C: T.Buffer(1, "int32")):
    C[0] = T.min(T.Select(A[0] != T.uint32(0), 1073741823, 1073741822) // 7 * 357913942, {chosen})
""")
    same_at_every_stage(program)
    small = from_source(f"""
@T.prim_func
def main(N: T.Buffer(1, "int32"), C: T.Buffer(1, "int32")):
    C[0] = {choice.format(x="3 + 4")}
""")
    assert "N[0]" not in str(simplify(small).body)


@pytest.mark.parametrize("operation", ["T.max", "T.min", "T.Add"])
def test_a_choice_that_drops_data_leaves_the_numbers_beside_it_as_they_count(operation):
    """Beside data, a product that leaves int32 counts by its low bits: 1. It still does where the data goes."""
    program = from_source(f"""
@T.prim_func
def main(N: T.Buffer(4, "int32"), C: T.Buffer(3, "int32")):
    for i in range(3):
        C[i] = {operation}(T.if_then_else(i > 0, N[i - 1], 8), T.Mul(2147483647, 2147483647)) // 3
""")
    same_at_every_stage(program)


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_let_whose_value_drops_data_stays_data(name):
    program = from_source(f"""
@T.prim_func
def main(N: T.Buffer(4, "int32"), C: T.Buffer(1, "int32")):
    x: T.int32 = T.if_then_else(T.bool(False), N[0], 8)
    y: T.int32 = x + 1
    C[0] = T.max({name}, T.Mul(2147483647, 2147483647))
""")
    same_at_every_stage(program)
