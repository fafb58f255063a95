"""check_initialised: reads of allocated memory that nothing has written."""

from __future__ import annotations

import pytest

from loopwright import te
from loopwright.analysis import UninitialisedRead, check_initialised, uninitialised
from loopwright.ir import (
    Allocate,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    PrimFunc,
    Ramp,
    Var,
    const,
    decl_buffer,
    seq,
)
from loopwright.ir.intrinsics import call_extern
from loopwright.script import tir as T


def refused(function) -> UninitialisedRead:
    with pytest.raises(UninitialisedRead) as caught:
        check_initialised(function)
    assert caught.value.code == "LW0822"
    return caught.value


def test_read_before_write():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        X = T.alloc_buffer((4,), "float32")
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = X[vi]
        for j in range(4):
            with T.block("X"):
                vj = T.axis.spatial(4, j)
                X[vj] = A[vj]

    error = refused(f)
    assert error.problem == 'block "B" reads X[0] before anything has written it at i = 0'
    assert error.why == 'X is allocated without values, and block "X" writes X[0] only later, at j = 0'
    assert "B[vi] = X[vi]" in str(error)
    assert error.hint == "write every element of X that is read, before the statement that reads it"


def test_only_even_cells_are_written():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        X = T.alloc_buffer((8,), "float32")
        for i in range(4):
            X[2 * i] = A[i]
        for i in range(8):
            B[i] = X[i]

    error = refused(f)
    assert error.problem == "the statement reads X[1] before anything has written it at i = 1"
    assert error.why == "X is allocated without values, and nothing ever writes X[1]"


def test_only_even_cells_are_read():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        X = T.alloc_buffer((8,), "float32")
        for i in range(4):
            X[2 * i] = A[i]
        for i in range(8):
            if i % 2 == 0:
                B[i] = X[i]
            else:
                B[i] = T.if_then_else(i % 2 == 0, X[i], X[i - 1])

    check_initialised(f)


def test_missing_init_of_a_reduction():
    @T.prim_func
    def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        C = T.alloc_buffer((4,), "float32")
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + A[vi, vk]
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = C[vi]

    error = refused(f)
    assert error.problem == 'block "C" reads C[0] before anything has written it at i = 0, k = 0'
    assert "with T.init(): C[…] = 0" in error.hint


def test_reductions_with_init():
    a = te.placeholder((8, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="C")
    check_initialised(te.create_prim_func([a, c]))
    argmax = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    r = te.reduce_axis((0, 5), name="r")
    place, value = te.compute((8,), lambda i: argmax((r.var, a[i, r]), axis=r), name="M")
    out = te.compute((8,), lambda i: value[i] + place[i].astype("float32"), name="out")
    check_initialised(te.create_prim_func([a, out]))


def test_arguments_come_with_values():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = B[i] + A[i]

    check_initialised(f)


def test_a_running_value():
    @T.prim_func
    def scan(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        X = T.alloc_buffer((8,), "float32")
        X[0] = A[0]
        for i in range(7):
            X[i + 1] = X[i] + A[i + 1]
        for i in range(8):
            B[i] = X[i]

    @T.prim_func
    def gap(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        X = T.alloc_buffer((8,), "float32")
        X[0] = A[0]
        for i in range(6):
            X[i + 2] = X[i] + A[i + 1]
        for i in range(8):
            B[i] = X[i]

    check_initialised(scan)
    error = refused(gap)
    assert error.problem == "the statement reads X[1] before anything has written it at i = 1"


def test_memory_of_one_iteration_does_not_survive_it():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                X = T.alloc_buffer((4,), "float32")
                if vi == 0:
                    X[0] = A[0]
                B[vi] = X[0]

    error = refused(f)
    assert error.problem == 'block "outer" reads X[0] before anything has written it at i = 1'
    assert error.why == "X is allocated without values, and nothing ever writes X[0]"


def test_symbolic_sizes():
    @T.prim_func
    def short(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        X = T.alloc_buffer((n,), "float32")
        for i in range(n - 1):
            X[i] = A[i]
        for i in range(n):
            B[i] = X[i]

    @T.prim_func
    def whole(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        X = T.alloc_buffer((n,), "float32")
        for i in range(n):
            X[n - 1 - i] = A[i]
        for i in range(n):
            B[i] = X[i]

    error = refused(short)
    assert error.problem == "the statement reads X[0] before anything has written it at n = 1, i = 0"
    check_initialised(whole)


def test_writes_that_depend_on_data_may_be_the_ones():
    @T.prim_func
    def f(I: T.Buffer((4,), "int32"), A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        X = T.alloc_buffer((4,), "float32")
        Y = T.alloc_buffer((4,), "float32")
        for i in range(4):
            X[I[i]] = A[i]
            if A[i] > T.float32(0):
                Y[i] = A[i]
        for i in range(4):
            B[i] = X[i] + Y[i]

    check_initialised(f)


def test_a_write_that_depends_on_data_but_comes_later_is_none():
    @T.prim_func
    def f(I: T.Buffer((4,), "int32"), A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        X = T.alloc_buffer((4,), "float32")
        for i in range(4):
            B[i] = X[i]
        for i in range(4):
            X[I[i]] = A[i]

    assert refused(f).problem == "the statement reads X[0] before anything has written it at i = 0"


def test_reads_that_depend_on_data_are_not_judged():
    @T.prim_func
    def f(I: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
        X = T.alloc_buffer((4,), "float32")
        for i in range(4):
            B[i] = X[I[i]]
            if I[i] == 3:
                B[i] = X[i]

    check_initialised(f)


def test_a_loop_that_never_runs_writes_nothing():
    @T.prim_func
    def f(B: T.Buffer((4,), "float32")):
        X = T.alloc_buffer((4,), "float32")
        for j in range(0):
            for i in range(4):
                X[i] = T.Cast("float32", j)
        for i in range(4):
            B[i] = X[i]

    assert refused(f).problem == "the statement reads X[0] before anything has written it at i = 0"


def test_a_guard_that_never_holds_writes_nothing():
    """The literal was once dropped from the conjunction, as if it always held."""

    @T.prim_func
    def f(B: T.Buffer((8,), "float32")):
        X = T.alloc_buffer((8,), "float32")
        for i in range(8):
            if T.And(T.bool(False), i < 8):
                X[i] = T.float32(1)
        for i in range(8):
            B[i] = X[i]

    assert refused(f).why == "X is allocated without values, and nothing ever writes X[0]"


def test_sub_buffers_write_their_source():
    @T.prim_func
    def f(B: T.Buffer((4, 4), "float32")):
        X = T.alloc_buffer((4, 4), "float32")
        for i in range(4):
            with T.block("rows"):
                vi = T.axis.spatial(4, i)
                row = T.match_buffer(X[vi, 0:4], (4,))
                for j in range(4):
                    row[j] = T.float32(0)
        for i, j in T.grid(4, 4):
            B[i, j] = X[j, i]

    check_initialised(f)


def test_flat_memory_with_vector_stores():
    out = decl_buffer((8,), name="B")
    local = decl_buffer((8,), name="X")
    i, j = Var("i", "int32"), Var("j", "int32")

    def program(vectors: int) -> PrimFunc:
        store = BufferStore(local, const(0.0, "float32x4"), (Ramp(i * 4, const(1), 4),))
        fill = For(i, const(0), const(vectors), ForKind.SERIAL, store)
        copy = For(j, const(0), const(8), ForKind.SERIAL, BufferStore(out, local[j], (j,)))
        return PrimFunc([out], Allocate(local.data, "float32", (8,), const(True), seq([fill, copy])))

    check_initialised(program(2))
    assert refused(program(1)).problem == "the statement reads X[4] before anything has written it at j = 4"


def test_memory_that_a_call_may_write_is_not_judged():
    out = decl_buffer((8,), name="B")
    local = decl_buffer((8,), name="X")
    j = Var("j", "int32")
    call = Evaluate(call_extern("int32", "fill", local.data))
    copy = For(j, const(0), const(8), ForKind.SERIAL, BufferStore(out, local[j], (j,)))
    check_initialised(PrimFunc([out], Allocate(local.data, "float32", (8,), const(True), seq([call, copy]))))


def test_memory_under_two_names_is_not_judged():
    out = decl_buffer((8,), name="B")
    local = decl_buffer((8,), name="X")
    alias = decl_buffer((2, 4), name="Y", data=local.data)
    j, k = Var("j", "int32"), Var("k", "int32")
    fill = For(k, const(0), const(8), ForKind.SERIAL, BufferStore(alias, const(0.0), (k // 4, k % 4)))
    copy = For(j, const(0), const(8), ForKind.SERIAL, BufferStore(out, local[j], (j,)))
    check_initialised(PrimFunc([out], Allocate(local.data, "float32", (8,), const(True), seq([fill, copy]))))


def test_more_pairs_than_the_budget_allows_are_not_judged(monkeypatch):
    @T.prim_func
    def f(B: T.Buffer((2,), "float32")):
        X = T.alloc_buffer((3,), "float32")
        X[0] = T.float32(1)
        B[0] = X[1]
        B[1] = X[2]

    assert refused(f).problem == "the statement reads X[1] before anything has written it"
    monkeypatch.setattr(uninitialised, "PAIRS", 2)
    refused(f)
    monkeypatch.setattr(uninitialised, "PAIRS", 1)
    check_initialised(f)
