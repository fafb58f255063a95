"""check_bounds: the first access outside its buffer, and every guard that makes one legal."""

from __future__ import annotations

import pytest

from loopwright import te
from loopwright.analysis import OutOfBounds, check_bounds
from loopwright.ir import (
    BufferStore,
    For,
    ForKind,
    IntImm,
    LetStmt,
    PrimFunc,
    Ramp,
    Var,
    const,
    decl_buffer,
    logical_or,
)
from loopwright.ir.annotations import ASSUMED_SIZES
from loopwright.script import tir as T


def refused(function) -> OutOfBounds:
    with pytest.raises(OutOfBounds) as caught:
        check_bounds(function)
    assert caught.value.code == "LW0821"
    return caught.value


def test_off_by_one():
    @T.prim_func
    def f(A: T.Buffer((10,), "float32"), B: T.Buffer((11,), "float32")):
        for i in range(11):
            with T.block("B"):
                vi = T.axis.spatial(11, i)
                B[vi] = A[vi]

    error = refused(f)
    assert error.problem == 'A[10] is outside its shape (10,): block "B" reads it at i = 10'
    assert error.why == "index vi on axis 0 is 10, but the last one is 9"
    assert "B[vi] = A[vi]" in str(error)
    assert "if_then_else(condition, load, other)" in error.hint
    assert error.fields["iteration"] == {"i": 10}


def test_negative_index_of_a_store():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(4):
            A[i * 2 - 3] = T.float32(0)

    error = refused(f)
    assert error.problem == "A[-3] is outside its shape (8,): the statement writes it at i = 0"
    assert error.why == "index i * 2 - 3 on axis 0 is -3, below 0"
    assert "put the store under a condition" in error.hint


def test_stencil_without_padding_from_te():
    a = te.placeholder((16, 16), name="A")
    b = te.compute((16, 16), lambda i, j: a[i - 1, j] + a[i + 1, j], name="B")
    error = refused(te.create_prim_func([a, b]))
    assert error.problem == 'A[-1, 0] is outside its shape (16, 16): block "B" reads it at i = 0, j = 0'
    assert error.why == "index v_i - 1 on axis 0 is -1, below 0"


def test_stencil_with_padding_from_te():
    a = te.placeholder((16, 16), name="A")
    p = te.compute(
        (18, 18),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < 17, j >= 1, j < 17), a[i - 1, j - 1], te.const(0.0, "float32")),
        name="P",
    )
    b = te.compute((16, 16), lambda i, j: p[i, j] + p[i + 2, j] + p[i, j + 2], name="B")
    check_bounds(te.create_prim_func([a, b]))


def test_where_guards_a_block():
    @T.prim_func
    def guarded(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i * 4 + j)
                T.where(i * 4 + j < 10)
                B[vi] = A[vi]

    @T.prim_func
    def bare(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i * 4 + j)
                B[vi] = A[vi]

    check_bounds(guarded)
    assert refused(bare).problem == 'A[10] is outside its shape (10,): block "B" reads it at i = 2, j = 2'


def test_if_and_else_guard():
    @T.prim_func
    def f(A: T.Buffer((10,), "float32"), B: T.Buffer((11,), "float32")):
        for i in range(11):
            if i == 10:
                B[i] = T.float32(0)
            else:
                B[i] = A[i]

    @T.prim_func
    def wrong_branch(A: T.Buffer((10,), "float32"), B: T.Buffer((11,), "float32")):
        for i in range(11):
            if i < 10:
                B[i] = T.float32(0)
            else:
                B[i] = A[i]

    check_bounds(f)
    assert refused(wrong_branch).problem == "A[10] is outside its shape (10,): the statement reads it at i = 10"


def test_select_guards_nothing():
    @T.prim_func
    def f(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(10):
            B[i] = T.Select(i > 0, A[i - 1], T.float32(0))

    error = refused(f)
    assert error.problem == "A[-1] is outside its shape (10,): the statement reads it at i = 0"
    assert "Select reads always" in error.hint


def test_lazy_and_guards_its_second_operand():
    @T.prim_func
    def lazy(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(10):
            if i < 9 and A[i + 1] > T.float32(0):
                B[i] = T.float32(1)

    @T.prim_func
    def eager(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(10):
            if A[i + 1] > T.float32(0) and i < 9:
                B[i] = T.float32(1)

    check_bounds(lazy)
    assert refused(eager).problem == "A[10] is outside its shape (10,): the statement reads it at i = 9"


def test_strided_and_divided_indices():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((4, 4), "float32")):
        for i in range(16):
            B[i // 4, i % 4] = A[i // 2]

    @T.prim_func
    def too_far(A: T.Buffer((8,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(0, 5):
            B[i] = A[2 * i]

    check_bounds(f)
    assert refused(too_far).problem == "A[8] is outside its shape (8,): the statement reads it at i = 4"


def test_the_first_index_outside_is_far_outside():
    @T.prim_func
    def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i, 3 * i]

    error = refused(f)
    assert error.problem == "A[2, 6] is outside its shape (8, 4): the statement reads it at i = 2"
    assert error.why == "index 3 * i on axis 1 is 6, but the last one is 3"


def test_symbolic_shapes():
    @T.prim_func
    def same(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            B[i] = A[i]

    @T.prim_func
    def unrelated(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        for i in range(m):
            B[i] = A[i]

    @T.prim_func
    def shifted(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n - 2,), "float32")
        for i in range(n - 2):
            B[i] = A[i] + A[i + 3]

    check_bounds(same)
    error = refused(unrelated)
    assert error.problem == "A[0] is outside its shape (0,): the statement reads it at m = 1, n = 0, i = 0"
    assert error.why == "index i on axis 0 is 0, but that axis is empty"
    # n - 2 is a size, so n is at least 2; the smallest n that goes wrong is 3.
    assert refused(shifted).problem == "A[3] is outside its shape (3,): the statement reads it at n = 3, i = 0"


def test_sizes_that_have_no_least_value():
    @T.prim_func
    def f(a: T.handle, n: T.int32, m: T.int32):
        A = T.match_buffer(a, (n - m,), "float32")
        for i in range(n - m + 1):
            A[i] = T.float32(0)

    assert refused(f).problem == "A[0] is outside its shape (0,): the statement writes it at m = 0, n = 0, i = 0"


def test_an_assumption_relates_sizes():
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        T.evaluate(T.assume(m <= n))
        for i in range(m):
            B[i] = A[i]

    check_bounds(f)


def test_scalar_arguments_are_data():
    @T.prim_func
    def some_values_fit(A: T.Buffer((10,), "float32"), k: T.int32):
        for i in range(k):
            A[i] = T.float32(0)
        A[k + 100] = T.float32(0)

    @T.prim_func
    def none_fits(A: T.Buffer((10,), "float32"), k: T.int32):
        A[k * 20 + 10] = T.float32(0)

    check_bounds(some_values_fit)
    assert refused(none_fits).problem == "A[10] is outside its shape (10,): the statement writes it at k = 0"


def test_data_dependent_accesses_are_left_to_run_time():
    @T.prim_func
    def f(I: T.Buffer((10,), "int32"), A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(10):
            B[i] = A[I[i]]
            if I[i] > 3:
                B[i + 1] = T.float32(0)
            for j in range(I[i]):
                B[j + 5] = T.float32(0)

    check_bounds(f)


def test_an_affine_index_beside_one_that_depends_on_data():
    @T.prim_func
    def f(I: T.Buffer((4,), "int32"), A: T.Buffer((10, 4), "float32"), B: T.Buffer((5,), "float32")):
        for i in range(5):
            B[i] = A[I[0], i]

    assert refused(f).problem == "A[…, 4] is outside its shape (10, 4): the statement reads it at i = 4"


def test_a_size_whose_index_depends_on_data_has_no_value():
    @T.prim_func
    def func(a: T.handle, N: T.Buffer((4,), "int32"), B: T.Buffer((4,))):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n, m))
        for i in range(4):
            B[i] = A[N[i], 0]

    with pytest.raises(OutOfBounds, match=r"index 0 on axis 1 is 0, but that axis is empty"):
        check_bounds(func)


def test_the_index_of_an_index_is_checked():
    @T.prim_func
    def f(I: T.Buffer((9,), "int32"), A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(10):
            B[i] = A[I[i]]

    assert refused(f).problem == "I[9] is outside its shape (9,): the statement reads it at i = 9"


def test_loops_without_iterations():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((0,), "float32")):
        for i in range(0):
            A[i + 100] = B[i]
        for i in range(4):
            for j in range(i, 4):
                A[j - i] = T.float32(0)

    check_bounds(f)


def test_triangular_loop():
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32")):
        for i in range(4):
            for j in range(i + 1):
                A[i, j + 1] = T.float32(0)

    assert refused(f).problem == "A[3, 4] is outside its shape (4, 4): the statement writes it at i = 3, j = 3"


def test_reduction_with_init_and_tuple_reduction():
    a = te.placeholder((8, 5), name="A")
    k = te.reduce_axis((0, 6), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    assert refused(te.create_prim_func([a, b])).problem == (
        'A[0, 5] is outside its shape (8, 5): block "B" reads it at i = 0, k = 5'
    )
    argmax = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    r = te.reduce_axis((0, 5), name="r")
    place, value = te.compute((8,), lambda i: argmax((r.var, a[i, r]), axis=r), name="M")
    check_bounds(te.create_prim_func([a, place, value]))


def test_lets_are_looked_through():
    buffer = decl_buffer((10,), name="A")
    i, j = Var("i", "int32"), Var("j", "int32")
    store = LetStmt(j, i + 1, BufferStore(buffer, const(0.0), (j,)))
    function = PrimFunc([buffer], For(i, const(0), const(10), ForKind.SERIAL, store))
    assert refused(function).problem == "A[10] is outside its shape (10,): the statement writes it at i = 9"
    from_data = LetStmt(j, buffer[i].astype("int32"), BufferStore(buffer, const(0.0), (j,)))
    check_bounds(PrimFunc([buffer], For(i, const(0), const(10), ForKind.SERIAL, from_data)))


def test_vector_accesses():
    buffer = decl_buffer((10,), name="A")
    i = Var("i", "int32")
    store = BufferStore(buffer, const(0.0, "float32x4"), (Ramp(i * 4, const(1), 4),))
    function = PrimFunc([buffer], For(i, const(0), const(3), ForKind.SERIAL, store))
    assert refused(function).problem == ("A[10] is outside its shape (10,): the statement writes it at i = 2, lane = 2")
    check_bounds(PrimFunc([buffer], For(i, const(0), const(2), ForKind.SERIAL, store)))


def test_sub_buffers():
    @T.prim_func
    def f(A: T.Buffer((8, 8), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                row = T.match_buffer(A[vi : vi + 1, 2:9], (1, 7))
                row[0, 6] = T.float32(0)

    assert refused(f).problem == 'A[0, 8] is outside its shape (8, 8): block "A" writes it at i = 0'


def test_deep_and_large_programs():
    buffer = decl_buffer((4,), name="A")
    i = Var("i", "int32")
    index = i
    for _ in range(10_000):
        index = index + i
    value = const(0.0)
    for _ in range(10_000):
        value = value + buffer[i]
    store = BufferStore(buffer, value, (index - i * 10_000 + IntImm("int32", 1),))
    function = PrimFunc([buffer], For(i, const(0), const(4), ForKind.SERIAL, store))
    assert refused(function).problem == "A[4] is outside its shape (4,): the statement writes it at i = 3"


def test_rank_zero():
    @T.prim_func
    def f(A: T.Buffer((), "float32")):
        A[()] = T.float32(0)

    check_bounds(f)


def test_one_of_two_cases_that_callers_have_checked():
    n, k = te.size_var("n"), te.size_var("k")
    a = te.placeholder((n,), name="A")
    function = te.create_prim_func([a, te.compute((k,), lambda i: a[0], name="B")])
    assert refused(function).problem == 'A[0] is outside its shape (0,): block "B" reads it at k = 1, n = 0, i = 0'
    check_bounds(function.with_attr(ASSUMED_SIZES, (logical_or(k.equal(0), n >= 1),)))
    other = function.with_attr(ASSUMED_SIZES, (logical_or(k >= 3, n >= 1),))
    assert refused(other).problem == 'A[0] is outside its shape (0,): block "B" reads it at k = 3, n = 0, i = 0'
