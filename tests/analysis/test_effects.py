"""What statements read and write: by name, through windows and pointers, as declared, and what calls may do."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import tir
from loopwright.analysis.effects import Effects, effects, names_on
from loopwright.evaluator import evaluate
from loopwright.ir import Block, BlockRealize, LetStmt, PrimFunc, Stmt
from loopwright.schedule.errors import NotProved, NotSupported, WouldChangeValues
from loopwright.script import tir as T


def body_of(function: PrimFunc) -> Stmt:
    assert isinstance(function.body, BlockRealize)
    return function.body.block.body


def names(found: object) -> list[str]:
    return sorted(var.name for var in found)  # type: ignore[attr-defined]


def done_by(function: PrimFunc) -> Effects:
    return effects(function.body)


def test_loads_and_stores():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                T.where(C[i] > 0)
                B[vi] = A[vi]

    done = done_by(func)
    assert names(done.reads) == ["A", "C"]
    assert names(done.writes) == names(done.changed) == ["B"]
    assert not done.calls
    assert not done.pointers


def test_a_window_is_the_memory_it_is_a_window_of():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), offset: T.Buffer((1,), "int32")):
        with T.block("b"):
            T.reads()
            T.writes(A[0:8])
            W = T.match_buffer(A[offset[0] : offset[0] + 4], (4,), "int32")
            W[0] = 1

    done = done_by(func)
    assert names(done.changed) == ["A"]
    assert names(done.loaded) == ["offset"]  # where the window is has to be read


def test_what_goes_by_a_pointer_is_what_the_block_declares():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        with T.block("b"):
            T.reads(A[0:8])
            T.writes(B[0:8])
            T.evaluate(T.call_extern("int32", "f", A.data, T.address_of(B[0]), C.data))

    done = done_by(func)
    assert names(done.reads) == ["A", "B", "C"]
    assert names(done.writes) == ["B", "C"]  # nothing is said of C
    assert len(done.calls) == 1
    assert done.reaches_outside


def test_a_value_is_not_an_address_but_an_operator_of_the_machine_may_write_its_operand():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        T.evaluate(T.call_extern("int32", "f", A[0]))
        T.evaluate(T.tvm_thread_allreduce(T.uint32(1), A[0], True, B[0], 0, dtype="handle"))

    done = effects(func.body)
    assert "B" in names(done.writes)
    value = effects(next(iter(done.calls)))
    assert names(value.reads) == ["A"]
    assert names(value.writes) == []


def test_a_prefetch_touches_nothing():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            T.evaluate(T.call_intrin("int32", "tir.prefetch", T.address_of(A[B[i]]), 0, 3, 1))

    done = effects(func.body)
    assert names(done.reads) == ["B"]  # the index is computed
    assert names(done.writes) == []
    assert names(done.hinted) == ["A"]
    assert len(done.hints) == 1


def test_names_that_are_bound_around_a_statement_are_known_by_its_path():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        with T.block("root"):
            p: T.handle = A.data
            B = T.Buffer((8,), "int32", data=p)
            with T.block("o"):
                T.reads()
                T.writes(B[0:8])
                W = T.match_buffer(B[0:4], (4,), "int32")
                W[0] = 1

    let = body_of(func)
    assert isinstance(let, LetStmt)
    outer = let.body
    assert isinstance(outer, BlockRealize)
    assert isinstance(outer.block, Block)
    inner = outer.block.body
    assert names(effects(inner).changed) == ["W"]
    assert names(effects(inner, [let, outer, outer.block]).changed) == ["A"]
    assert len(names_on([let, outer, outer.block])) == 2


# --- programs in which memory goes by two names: each step here was once accepted, and changed values ----------------


@T.prim_func
def through_window(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32")):
    with T.block("root"):
        with T.block("o"):
            T.reads(A[0:4, 0:4])
            T.writes(A[0:4, 0:4], C[0:4, 0:4])
            B = T.match_buffer(A[0:4, 0:4], (4, 4), "int32")
            for i, j in T.grid(4, 4):
                with T.block("x"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = 100
                with T.block("y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vj, vi]


@T.prim_func
def same_cell(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32")):
    with T.block("root"):
        with T.block("o"):
            T.reads(A[0:4, 0:4])
            T.writes(A[0:4, 0:4], C[0:4, 0:4])
            B = T.match_buffer(A[0:4, 0:4], (4, 4), "int32")
            for i, j in T.grid(4, 4):
                with T.block("x"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = 100 + vj
                with T.block("y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj]


@T.prim_func
def through_pointer(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    with T.block("root"):
        p: T.handle = A.data
        B = T.Buffer((16,), "int32", data=p)
        for i, j in T.grid(4, 4):
            with T.block("x"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi * 4 + vj] = 100
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi * 4 + vj] = A[vj * 4 + vi]


@T.prim_func
def bound_through_window(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    with T.block("root"):
        with T.block("o"):
            T.reads(A[0:8])
            T.writes(A[0:8], C[0:8])
            B = T.match_buffer(A[0:8], (8,), "int32")
            for i in range(A[0]):
                with T.block("x"):
                    vi = T.axis.opaque(7, i)
                    T.reads()
                    T.writes(B[0])
                    B[0] = 5
                with T.block("y"):
                    vi = T.axis.opaque(7, i)
                    T.reads(A[vi + 1])
                    T.writes(C[vi])
                    C[vi] = A[vi + 1]


@T.prim_func
def bound_of_both(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(A[0]):
        with T.block("x"):
            vi = T.axis.opaque(7, i)
            T.reads()
            T.writes(A[0])
            A[0] = 5
        with T.block("y"):
            vi = T.axis.opaque(7, i)
            T.reads()
            T.writes(C[vi])
            C[vi] = 1


def reorder(sch: tir.Schedule) -> None:
    sch.reorder(*reversed(sch.get_loops("x")))


def fission(sch: tir.Schedule) -> None:
    sch.fission(sch.get_loops("x")[0], 1)


def split(sch: tir.Schedule) -> None:
    sch.split(sch.get_loops("x")[0], [None, 4])


def cache_write(sch: tir.Schedule) -> None:
    sch.cache_write("x", 0, "local")


def stage(sch: tir.Schedule) -> None:
    sch.stage("x", sch.get_loops("x")[0], "B")


@pytest.mark.parametrize(
    ("function", "step", "error", "message"),
    [
        (through_window, reorder, WouldChangeValues, "reorder would change a value"),
        (through_window, fission, WouldChangeValues, "fission would change a value"),
        (same_cell, cache_write, WouldChangeValues, "cache_write would change a value"),
        (same_cell, stage, WouldChangeValues, "stage would change a value"),
        (through_pointer, fission, NotProved, "fission could not be proved to keep every value"),
        (bound_through_window, split, NotSupported, r"the extent A\[0\] of loop i is read once"),
        (bound_through_window, fission, NotSupported, r"the extent A\[0\] of loop i is read once"),
        (bound_of_both, fission, NotSupported, r"the extent A\[0\] of loop i is read once"),
    ],
)
def test_memory_with_two_names_is_one_memory(function, step, error, message):
    with pytest.raises(error, match=message):
        step(tir.Schedule(function))


@T.prim_func
def window_alone(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32")):
    with T.block("root"):
        with T.block("o"):
            T.reads(A[0:4, 0:4])
            T.writes(A[0:4, 0:4], C[0:4, 0:4])
            B = T.match_buffer(A[0:4, 0:4], (4, 4), "int32")
            for i, j in T.grid(4, 4):
                with T.block("x"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = 100 + vi
            for i, j in T.grid(4, 4):
                with T.block("y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj]


def test_steps_on_windows_that_keep_values_are_accepted():
    sch = tir.Schedule(window_alone)
    sch.compute_at("x", sch.get_loops("y")[0])
    other = tir.Schedule(window_alone)
    other.reorder(*reversed(other.get_loops("x")))
    other.split(other.get_loops("x")[0], [2, 2])
    other.fuse(*other.get_loops("y"))
    other.cache_write("x", 0, "local")
    results = []
    for function in (window_alone, sch.mod["main"], other.mod["main"]):
        a, c = np.arange(16, dtype="int32").reshape(4, 4), np.zeros((4, 4), "int32")
        evaluate(function, a, c)
        results.append((a, c))
    for a, c in results[1:]:
        np.testing.assert_array_equal(a, results[0][0])
        np.testing.assert_array_equal(c, results[0][1])
