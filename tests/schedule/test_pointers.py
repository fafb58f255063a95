"""Calls that get pointers: what they touch is what their block declares, and steps around them are proved by that."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import tir
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.schedule.errors import NotProved, NotSupported, ScheduleError, WouldChangeValues, WouldRace
from loopwright.schedule.view import View
from loopwright.script import tir as T
from tests.schedule.harness.cases import Unresolved, moves_of
from tests.schedule.harness.legality import same_numbers
from tests.schedule.harness.programs import POINTERS
from tests.schedule.steps import check_replay, refused


@T.prim_func
def rows(A: T.Buffer((4, 8)), C: T.Buffer((4, 8)), D: T.Buffer((4, 8))):
    B = T.alloc_buffer((4, 8))
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
    for i in range(4):
        with T.block("call"):
            vi = T.axis.spatial(4, i)
            T.reads(B[vi, 0:8])
            T.writes(C[vi, 0:8])
            T.evaluate(
                T.call_extern(
                    "handle",
                    "memcpy",
                    C.access_ptr("w", offset=vi * 8, extent=8),
                    T.address_of(B[vi, 0]),
                    T.int64(32),
                )
            )
    for i, j in T.grid(4, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, 7 - vj] * 2.0


def check_values(program: PrimFunc, sch: tir.Schedule) -> None:
    check_replay(sch, program)
    found = []
    for function in (program, sch.mod["main"]):
        rng = np.random.default_rng(0)
        arrays = [rng.random([int(n) for n in buffer.shape], "float32") for buffer in function.argument_buffers()]
        evaluate(function, *arrays)
        found.append(arrays)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


STEPS = {
    "parallel beside": lambda sch: sch.parallel(sch.get_loops("B")[0]),
    "vectorize beside": lambda sch: sch.vectorize(sch.get_loops("D")[1]),
    "compute_at the call": lambda sch: sch.compute_at("B", sch.get_loops("call")[0]),
    "reverse_compute_at the call": lambda sch: sch.reverse_compute_at("D", sch.get_loops("call")[0]),
    "merge": lambda sch: sch.merge(sch.get_loops("B")[0], sch.get_loops("call")[0], sch.get_loops("D")[0]),
    "cache_read of what is written": lambda sch: sch.cache_read("D", 0, "local"),
    "cache_write of what is read": lambda sch: sch.cache_write("B", 0, "local"),
    "reindex": lambda sch: sch.reindex("D", ("read", 0)),
    "split": lambda sch: sch.split(sch.get_loops("call")[0], [None, 3]),
    "unroll_and_jam": lambda sch: sch.unroll_and_jam(sch.get_loops("call")[0], 2),
    "blockize": lambda sch: sch.blockize(sch.get_loops("call")[0]),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_beside_and_around_a_call(name: str) -> None:
    sch = tir.Schedule(rows)
    STEPS[name](sch)
    assert sch.is_proved
    check_values(rows, sch)


def test_what_the_call_reads_and_writes_counts() -> None:
    @T.prim_func
    def turned(A: T.Buffer((4, 8)), C: T.Buffer((4, 8)), D: T.Buffer((4, 8))):
        for i in range(4):
            with T.block("call"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi, 0:8])
                T.writes(C[vi, 0:8])
                T.evaluate(
                    T.call_extern("handle", "memcpy", T.address_of(C[vi, 0]), T.address_of(A[vi, 0]), T.int64(32))
                )
        for i, j in T.grid(4, 8):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[3 - vi, vj] * 2.0

    sch = tir.Schedule(turned)
    error = refused(sch, WouldChangeValues, "merge", "merge", sch.get_loops("call")[0], sch.get_loops("D")[0])
    assert error.why == "iteration (vi=0, vj=0) of D reads C[3, 0] before iteration (vi=3, element=0) of call writes it"


def test_a_call_with_effects_is_not_made_by_two_iterations_at_once() -> None:
    sch = tir.Schedule(rows)
    error = refused(sch, NotProved, "parallel: loop i", "parallel", sch.get_loops("call")[0])
    assert error.why == "its iterations call 'memcpy', which may have effects: their order would not be kept"


@pytest.mark.parametrize("reach", [8, 9])
def test_a_pure_call_is_free_where_its_regions_are_apart(reach: int) -> None:
    @T.prim_func
    def pure(A: T.Buffer((40,)), C: T.Buffer((40,))):
        for i in range(4):
            with T.block("call"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi * 8 : vi * 8 + reach])
                T.writes(C[vi * 8 : vi * 8 + reach])
                T.evaluate(T.call_pure_extern("int32", "f", A.data, C.data, vi))

    sch = tir.Schedule(pure)
    if reach == 8:
        sch.parallel(sch.get_loops("call")[0])
    else:
        error = refused(sch, WouldRace, "parallel: loop i", "parallel", sch.get_loops("call")[0])
        assert "both touch C[8]" in (error.why or "")


def test_a_pointer_that_declares_nothing_reaches_the_whole_buffer() -> None:
    @T.prim_func
    def silent(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        for i in range(4):
            with T.block("call"):
                vi = T.axis.spatial(4, i)
                T.reads()
                T.writes()
                T.evaluate(T.call_extern("int32", "f", A.data, C.access_ptr("r")))
            for j in range(8):
                with T.block("C"):
                    wi, wj = T.axis.remap("SS", [i, j])
                    C[wi, wj] = A[wi, wj]

    sch = tir.Schedule(silent)
    loop = sch.get_loops("call")[0]
    error = refused(sch, WouldChangeValues, "fission", "fission", loop, 1)
    assert error.why is not None and "call" in error.why


def test_a_call_with_effects_and_one_without_run_side_by_side() -> None:
    @T.prim_func
    def filled_and_looked_at(A: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("fill"):
                vi = T.axis.spatial(4, i)
                T.reads()
                T.writes(A[vi])
                T.evaluate(T.call_extern("int32", "g", T.address_of(A[vi])))
        for i in range(4):
            with T.block("look"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi])
                T.writes()
                T.evaluate(T.call_pure_extern("int32", "h", T.address_of(A[vi])))

    sch = tir.Schedule(filled_and_looked_at)
    sch.merge(sch.get_loops("fill")[0], sch.get_loops("look")[0])
    assert sch.is_proved


def test_the_layout_of_memory_behind_a_pointer_stays() -> None:
    for name, args in {
        "transform_layout": ("B", ("write", 0), lambda i, j: (j, i)),
        "storage_align": ("B", 0, 0, 16, 4),
        "set_axis_separator": ("B", ("write", 0), [1]),
        "cache_read": ("call", 0, "local"),
        "cache_write": ("call", 0, "local"),
    }.items():
        sch = tir.Schedule(rows)
        refused(sch, NotSupported, f"{name}: [BC] is passed by its address", name, *args)


def test_a_pointer_that_has_a_name_is_not_followed() -> None:
    @T.prim_func
    def named(A: T.Buffer((8,)), C: T.Buffer((8,))):
        with T.LetStmt(A.data) as p:
            T.evaluate(T.call_extern("int32", "f", p))
            for i in range(8):
                with T.block("C"):
                    vi = T.axis.spatial(8, i)
                    C[vi] = A[vi]

    sch = tir.Schedule(named)
    refused(sch, NotProved, "parallel: loop i could not be proved", "parallel", sch.get_loops("C")[0])


def test_a_reduction_that_starts_with_a_call_is_not_started_by_iterations_at_once() -> None:
    @T.prim_func
    def counted(A: T.Buffer((3, 3), "int32"), C: T.Buffer((3,), "int32")):
        for i, k in T.grid(3, 3):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.call_packed("harness.next", vi)
                C[vi] = C[vi] + A[vi, vk]

    sch = tir.Schedule(counted)
    i, k = sch.get_loops("C")
    sch.reorder(k, i)
    error = refused(sch, NotProved, "parallel: loop i", "parallel", i)
    assert error.why == (
        "the init of a reduction calls 'harness.next', which may have effects, once for each iteration"
    )


KINDS = (
    "Reorder Fuse Merge Fission ComputeAt ReverseComputeAt CacheRead CacheWrite UnrollAndJam AddGuard Blockize".split()
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("template", POINTERS, ids=lambda template: template.name)
def test_what_is_accepted_gives_the_same_numbers(template) -> None:
    accepted = 0
    for program in template.programs((2,)):
        for moves in moves_of(View(program.function), KINDS).values():
            for move in moves[:8]:
                sch = tir.Schedule(program.function)
                try:
                    move.apply(sch)
                except (ScheduleError, Unresolved):
                    continue
                accepted += 1
                assert same_numbers(program.function, sch.mod["main"], 2), str(move)
    assert accepted > 4
