"""specialize: nests are written twice, for sizes that fulfil a condition and for the others."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.ir.verifier import verify
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.script import tir as T
from tests.schedule.steps import check_replay, matmul, refused, same_program


@T.prim_func
def doubled(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    C = T.match_buffer(c, (n,))
    B = T.alloc_buffer((n,))
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] + 1.0
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = B[vi] * 2.0


def outermost(sch: tir.Schedule, *blocks: str) -> list:
    return [sch.get_loops(block)[0] for block in blocks]


def test_specialize():
    sch = tir.Schedule(doubled)
    made = sch.specialize(*outermost(sch, "B", "C"), condition=lambda n: n <= 8)

    @T.prim_func
    def expected(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        B = T.alloc_buffer((n,))
        B_1 = T.alloc_buffer((n,))
        if n <= 8:
            for i in range(n):
                with T.block("B_1"):
                    vi = T.axis.spatial(n, i)
                    B_1[vi] = A[vi] + 1.0
            for i in range(n):
                with T.block("C_1"):
                    vi = T.axis.spatial(n, i)
                    C[vi] = B_1[vi] * 2.0
        else:
            for i in range(n):
                with T.block("B"):
                    vi = T.axis.spatial(n, i)
                    B[vi] = A[vi] + 1.0
            for i in range(n):
                with T.block("C"):
                    vi = T.axis.spatial(n, i)
                    C[vi] = B[vi] * 2.0

    verify(sch.mod["main"])
    same_program(sch.mod["main"], expected)
    assert [sch.get(block).name_hint for block in made] == ["B_1", "C_1"]
    assert sch.is_proved
    check_replay(sch, doubled)


def test_memory_that_others_use_is_shared():
    sch = tir.Schedule(doubled)
    (made,) = sch.specialize(*outermost(sch, "B"), condition="lambda n: n > 3 and n < 7")
    assert sch.get(made).writes[0].buffer is sch.get(sch.get_block("B")).writes[0].buffer
    assert len(sch.view().root.block.alloc_buffers) == 1
    same_numbers(sch, doubled, (0, 1, 3, 4, 6, 7, 9))


def same_numbers(sch: tir.Schedule, before: PrimFunc, sizes: tuple[int, ...]) -> None:
    built = lw.build(sch.mod)
    for size in sizes:
        a = np.random.default_rng(size).random((size,), "float32")
        results = [np.full(size, 7, "float32") for _ in range(3)]
        evaluate(before, a, results[0])
        evaluate(sch.mod["main"], a, results[1])
        built(a, results[2])
        assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


def test_each_version_has_a_schedule_of_its_own():
    sch = tir.Schedule(doubled)
    first, second = sch.specialize(*outermost(sch, "B", "C"), condition=lambda n: n <= 8)
    sch.compute_inline(first)
    sch.unroll(sch.split(sch.get_loops(second)[0], [None, 8])[1])
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    sch.vectorize(sch.split(sch.get_loops("B")[0], [None, 4])[1])
    assert sch.is_proved
    check_replay(sch, doubled)
    same_numbers(sch, doubled, (0, 1, 7, 8, 9, 12, 30))


def test_a_version_of_a_version():
    sch = tir.Schedule(doubled)
    sch.specialize(*outermost(sch, "B", "C"), condition=lambda n: n <= 8)
    again = sch.specialize(*outermost(sch, "B", "C"), condition=lambda n: n <= 16)
    assert [sch.get(block).name_hint for block in again] == ["B_2", "C_2"]
    same_numbers(sch, doubled, (8, 9, 16, 17))


def test_a_result_is_cached_in_each_version():
    """Only one of the two blocks that write C runs, so each can have a copy of its own."""
    n = te.var("n")
    a = te.placeholder((n, 4), name="A")
    r = te.reduce_axis((0, 4), "k")
    func = te.create_prim_func([a, te.compute((n,), lambda i: te.sum(a[i, r], axis=r), name="C")])
    sch = tir.Schedule(func)
    (few,) = sch.specialize(*outermost(sch, "C"), condition=lambda n: n <= 3)
    for block in (few, sch.get_block("C")):
        out = sch.cache_write(block, 0, "local")
        sch.reverse_compute_at(out, sch.get_loops(block)[0])
    assert sch.is_proved
    check_replay(sch, func)
    for size in (0, 2, 3, 4, 9):
        x, got = np.arange(size * 4, dtype="float32").reshape(size, 4), np.full(size, 7, "float32")
        evaluate(sch.mod["main"], x, got)
        assert np.array_equal(got, x.sum(1))


def test_what_is_refused():
    sch = tir.Schedule(doubled)
    b, c = outermost(sch, "B", "C")
    refused(sch, BadStepArgument, "no loop is given", "specialize", condition="lambda n: n < 8")
    refused(
        sch, BadStepArgument, "about m, which is no size of the function", "specialize", b, condition="lambda m: m < 8"
    )
    refused(sch, BadStepArgument, "is no condition", "specialize", b, condition="lambda n: n")
    refused(sch, NotSupported, "i, i do not stand next to each other in this order", "specialize", c, b,
            condition="lambda n: n < 8")  # fmt: skip
    inner = tir.Schedule(matmul())
    refused(inner, NotSupported, "loop j is inside loop i", "specialize", inner.get_loops("C")[1],
            condition="lambda n: n < 8")  # fmt: skip


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_parameter_is_a_size_too(size: int):
    n, limit = te.var("n"), te.var("limit")
    a = te.placeholder((n,), name="A")
    func = te.create_prim_func([limit, a, te.compute((n,), lambda i: a[i] + limit, name="B")])
    sch = tir.Schedule(func)
    sch.specialize(*outermost(sch, "B"), condition=lambda n, limit: n < limit)
    x, got = np.arange(size, dtype="float32"), np.zeros(size, "float32")
    evaluate(sch.mod["main"], 3, x, got)
    assert np.array_equal(got, x + 3)
