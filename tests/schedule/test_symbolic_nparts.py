"""A loop over a size known only at run time, split into a given number of parts: steps on the parts are proved."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir import ForKind, PrimFunc
from loopwright.schedule.errors import NotProved, WouldRace
from loopwright.script import tir as T
from tests.schedule.steps import check_replay, same_program

n, m = te.var("n"), te.var("m")
SIZES = (0, 1, 3, 4, 5, 17)


@T.prim_func
def copy(a: T.handle, b: T.handle):
    n = T.int32()
    A, B = T.match_buffer(a, (n,)), T.match_buffer(b, (n,))
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]


def chain(*shape: object) -> PrimFunc:
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) + 1.0, name="B")
    C = te.compute(shape, lambda *i: B(*i) * 2.0, name="C")
    return te.create_prim_func([A, C])


def row_sums() -> PrimFunc:
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    return te.create_prim_func([A, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="C")])


def check_numbers(sch: tir.Schedule, before: PrimFunc) -> None:
    """The steps replay, and the program gives what it gave, in the evaluator and as native code, at every size."""
    check_replay(sch, before)
    built = lw.build(sch.mod)
    buffers = before.argument_buffers()
    for size in SIZES:
        shapes = [[size if isinstance(extent, tir.Var) else int(extent) for extent in b.shape] for b in buffers]
        x = np.random.default_rng(size).integers(0, 9, shapes[0]).astype("float32")
        results = [np.full(shapes[1], -1, "float32") for _ in range(3)]
        evaluate(before, x, results[0])
        evaluate(sch.mod["main"], x, results[1])
        built(x, results[2])
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])


def test_text():
    sch = tir.Schedule(copy)
    outer, _ = sch.split(sch.get_loops("B")[0], [4, None])
    sch.parallel(outer)

    @T.prim_func
    def expected(a: T.handle, b: T.handle):
        n = T.int32()
        A, B = T.match_buffer(a, (n,)), T.match_buffer(b, (n,))
        for i_0 in T.parallel(4):
            for i_1 in range((n + 3) // 4):
                with T.block("B"):
                    vi = T.axis.spatial(n, i_0 * ((n + 3) // 4) + i_1)
                    T.where(i_0 * ((n + 3) // 4) + i_1 < n)
                    B[vi] = A[vi]

    same_program(sch.mod["main"], expected)
    check_numbers(sch, copy)


@pytest.mark.parametrize("parts", [2, 16, 64, 1000])
@pytest.mark.parametrize("chosen", [0, 1])
def test_either_loop_runs_on_threads(parts, chosen):
    sch = tir.Schedule(copy)
    sch.parallel(sch.split(sch.get_loops("B")[0], [parts, None])[chosen])
    check_numbers(sch, copy)


def test_lanes_inside_parts():
    sch = tir.Schedule(copy)
    outer, inner = sch.split(sch.get_loops("B")[0], [4, None])
    _, lanes = sch.split(inner, [None, 8])
    sch.vectorize(lanes)
    sch.parallel(outer)
    check_numbers(sch, copy)


def test_parts_of_parts():
    sch = tir.Schedule(copy)
    outer, inner = sch.split(sch.get_loops("B")[0], [4, None])
    middle, inner = sch.split(inner, [3, None])
    sch.parallel(outer)
    sch.parallel(middle)
    sch.reorder(outer, inner, middle)
    check_numbers(sch, copy)


def test_threads_of_a_kernel():
    sch = tir.Schedule(copy)
    block, thread = sch.split(sch.get_loops("B")[0], [None, 256])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    assert sch.is_proved
    sch = tir.Schedule(copy)
    thread, _ = sch.split(sch.get_loops("B")[0], [256, None])
    sch.bind(thread, "threadIdx.x")
    assert sch.is_proved


def test_a_producer_in_each_part():
    before = chain(n)
    sch = tir.Schedule(before)
    outer, _ = sch.split(sch.get_loops("C")[0], [4, None])
    sch.compute_at("B", outer)
    sch.parallel(outer)
    assert str(sch.get(sch.get_loops("B")[1]).extent) == "(n + 3) // 4"
    check_numbers(sch, before)


def test_a_consumer_in_each_part():
    before = chain(n)
    sch = tir.Schedule(before)
    outer, _ = sch.split(sch.get_loops("B")[0], [4, None])
    sch.reverse_compute_at("C", outer)
    sch.parallel(outer)
    check_numbers(sch, before)


def test_sums_start_in_the_part_they_belong_to():
    before = row_sums()
    sch = tir.Schedule(before)
    i, k = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [4, None])
    k_0, k_1 = sch.split(k, [4, None])
    sch.parallel(i_0)
    sch.reorder(i_0, k_0, i_1, k_1)
    check_numbers(sch, before)
    assert str(lw.lower(sch.mod)["main"]).count("parallel") == 1  # start values and sums in one loop


def test_a_sum_over_parts_is_shared_by_rfactor():
    before = row_sums()
    sch = tir.Schedule(before)
    outer, _ = sch.split(sch.get_loops("C")[1], [4, None])
    parts = sch.rfactor(outer, 0)
    sch.parallel(sch.get_loops(parts)[0])
    check_numbers(sch, before)


@pytest.mark.parametrize("factors", [[4, None], [None, 64]])
@pytest.mark.parametrize("step", ["parallel", "vectorize"])
def test_a_fused_loop_is_split_again(factors, step):
    before = chain(n, m)
    sch = tir.Schedule(before)
    sch.compute_inline("B")
    outer, inner = sch.split(sch.fuse(*sch.get_loops("C")), factors)
    if step == "parallel":
        sch.parallel(outer)
    elif factors[1] is not None:
        sch.vectorize(inner)
    check_numbers(sch, before)


def test_nparts_in_te():
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], nparts=8)
    s[B].parallel(outer)
    s[B].vectorize(s[B].split(inner, factor=4)[1])
    built = lw.build(s, [A, B])
    for size in SIZES:
        x, y = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        built(x, y)
        np.testing.assert_array_equal(y, x + 1)


def test_parts_that_reach_into_each_other_race():
    @T.prim_func
    def overlapping(b: T.handle):
        n = T.int32()
        B = T.match_buffer(b, (n * 4 + 1,))
        for i, j in T.grid(4, n + 1):
            with T.block("B"):
                vi = T.axis.spatial(n * 4 + 1, i * n + j)
                B[vi] = T.float32(1)

    sch = tir.Schedule(overlapping)
    i, j = sch.get_loops("B")
    with pytest.raises(WouldRace, match="i = 0") as caught:
        sch.parallel(i)
    assert caught.value.fields["buffer"] == "B"
    sch.parallel(j)
    assert sch.get(j).kind is ForKind.PARALLEL


def test_neighbours_of_parts_race():
    @T.prim_func
    def shift(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n + 1,))
        for i in range(n):
            with T.block("A"):
                vi = T.axis.spatial(n, i)
                A[vi] = A[vi + 1]

    sch = tir.Schedule(shift)
    outer, inner = sch.split(sch.get_loops("A")[0], [4, None])
    with pytest.raises(WouldRace):
        sch.parallel(outer)
    with pytest.raises(WouldRace):
        sch.parallel(inner)
    many = tir.Schedule(shift)
    outer, _ = many.split(many.get_loops("A")[0], [64, None])
    with pytest.raises((NotProved, WouldRace)):
        many.parallel(outer)
