"""split: one loop becomes a nest; tails guarded or peeled."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues, WouldRace
from loopwright.schedule.primitives.loops.split import FactorsNotProved, FactorsTooSmall
from loopwright.schedule.proof.speculative_runs import FailsInExtraRuns
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, check_replay, matmul, refused, same_program


@T.prim_func
def copy_10(A: T.Buffer(10), B: T.Buffer(10)):
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi]


def copy_of(extent):
    A = te.placeholder((extent,), name="A")
    return te.create_prim_func([A, te.compute((extent,), lambda i: A[i], name="B")])


def test_split_guards_the_tail():
    sch = tir.Schedule(copy_10)
    outer, inner = sch.split(sch.get_loops("B")[0], [3, 4])

    @T.prim_func
    def expected(A: T.Buffer(10), B: T.Buffer(10)):
        for i_0, i_1 in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i_0 * 4 + i_1)
                T.where(i_0 * 4 + i_1 < 10)
                B[vi] = A[vi]

    check(sch, copy_10, expected)
    assert [outer.name, inner.name] == ["i_0", "i_1"]


def test_split_peels_the_tail():
    sch = tir.Schedule(copy_10)
    sch.split(sch.get_loops("B")[0], [None, 4], tail="peel")

    @T.prim_func
    def expected(A: T.Buffer(10), B: T.Buffer(10)):
        for i_0, i_1 in T.grid(2, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i_0 * 4 + i_1)
                B[vi] = A[vi]
        for i_tail in range(2):
            with T.block("B_tail"):
                vi = T.axis.spatial(10, i_tail + 8)
                B[vi] = A[vi]

    check(sch, copy_10, expected)
    (loop,) = sch.get_loops("B_tail")
    assert loop.name == "i_tail"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("tail", ["guard", "peel"])
@pytest.mark.parametrize("extent", [1, 3, 4, 5, 7, 8, 13])
@pytest.mark.parametrize("factors", [[None, 4], [2, None, 2], [4, None], [None], [13, 1]])
def test_split_keeps_every_value_at_boundary_shapes(extent, factors, tail):
    func = copy_of(extent)
    sch = tir.Schedule(func)
    made = sch.split(sch.get_loops("B")[0], factors, tail=tail)
    assert len(made) == len(factors)
    check(sch, func)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("loop", [0, 1, 2])
@pytest.mark.parametrize("tail", ["guard", "peel"])
def test_split_of_a_reduction(loop, tail):
    func = matmul(5, 7, 5)
    sch = tir.Schedule(func)
    sch.split(sch.get_loops("C")[loop], [None, 3], tail=tail)
    check(sch, func)


def test_peeled_reduction_starts_once():
    func = matmul(2, 2, 5)
    sch = tir.Schedule(func)
    sch.split(sch.get_loops("C")[2], [None, 2], tail="peel")
    assert sch.get(sch.get_block("C")).init is not None
    assert sch.get(sch.get_block("C_tail")).init is None
    check(sch, func)


def test_peel_goes_through_nests_and_keeps_block_names_apart():
    func = chain(5, 4, 3, 2)
    sch = tir.Schedule(func)
    m = sch.merge(*[sch.get_loops(name)[0] for name in "DEF"])
    sch.split(m, [None, 2], tail="peel")
    names = sch.view().block_names()
    assert names == ["root", "D", "E", "F", "D_tail", "E_tail", "F_tail"]
    check(sch, func)
    sch.split(sch.get_loops("D_tail")[1], [None, 3], tail="peel")
    assert "D_tail_tail" in sch.view().block_names()
    check(sch, func)


def test_peel_refuses_a_loop_over_data_and_reduction(with_suggestions):
    sch = tir.Schedule(matmul(4, 5, 3))
    _, j, k = sch.get_loops("C")
    fused = sch.fuse(j, k)
    error = refused(
        sch, NotSupported, "runs over both data and the reduction of block C", "split", fused, [None, 4], tail="peel"
    )
    assert any(str(text).startswith("sch.split(") and "tail" not in str(text) for text in error.suggestions)
    sch.split(fused, [None, 4])


def test_peel_refuses_a_reduction_without_a_whole_tile():
    sch = tir.Schedule(matmul(2, 2, 3))
    k = sch.get_loops("C")[2]
    refused(sch, NotSupported, "has 3 iterations, fewer than one tile", "split", k, [None, 4], tail="peel")


def test_split_symbolic_extent():
    @T.prim_func
    def func(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + 1.0

    @T.prim_func
    def guarded(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i_0, i_1 in T.grid((n + 3) // 4, 4):
            with T.block("B"):
                vi = T.axis.spatial(n, i_0 * 4 + i_1)
                T.where(i_0 * 4 + i_1 < n)
                B[vi] = A[vi] + 1.0

    @T.prim_func
    def peeled(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i_0, i_1 in T.grid(n // 4, 4):
            with T.block("B"):
                vi = T.axis.spatial(n, i_0 * 4 + i_1)
                B[vi] = A[vi] + 1.0
        for i_tail in range(n % 4):
            with T.block("B_tail"):
                vi = T.axis.spatial(n, i_tail + n // 4 * 4)
                B[vi] = A[vi] + 1.0

    for tail, expected in (("guard", guarded), ("peel", peeled)):
        sch = tir.Schedule(func)
        sch.split(sch.get_loops("B")[0], [None, 4], tail=tail)
        same_program(sch.mod["main"], expected)


def test_split_is_refused_where_the_init_would_move_past_another_block():
    @T.prim_func
    def func(A: T.Buffer(12), C: T.Buffer(5), D: T.Buffer(12)):
        for f in range(12):
            with T.block("C"):
                vi = T.axis.spatial(4, f // 3)
                vk = T.axis.reduce(3, f % 3)
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi * 3 + vk]
            with T.block("D"):
                vf = T.axis.spatial(12, f)
                D[vf] = C[vf // 3 + 1]

    sch = tir.Schedule(func)
    refused(sch, WouldChangeValues, "split would change a value", "split", sch.get_loops("C")[0], [4, 3])


def test_split_names_the_factors_that_are_too_small():
    sch = tir.Schedule(copy_10)
    loop = sch.get_loops("B")[0]
    refused(sch, FactorsTooSmall, r"\[2, 4\] make 8 iterations, but loop i has 10", "split", loop, [2, 4])


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([None, None], "leave more than one to be inferred"),
        ([0, None], "not all integers of at least 1"),
        ([-1, 5], "not all integers of at least 1"),
        ([], "not all integers of at least 1"),
        ([2.5, None], "not all integers of at least 1"),
    ],
)
def test_split_refuses_factors(factors, message):
    sch = tir.Schedule(copy_10)
    refused(sch, BadStepArgument, message, "split", sch.get_loops("B")[0], factors)


def test_split_refuses_claimed_loops():
    sch = tir.Schedule(copy_10)
    (loop,) = sch.get_loops("B")
    refused(sch, BadStepArgument, "tail is 'drop'", "split", loop, [None, 2], tail="drop")
    sch.annotate(loop, "note", 1)
    refused(sch, NotSupported, "loop i carries annotations", "split", loop, [None, 2])
    sch.unannotate(loop, "note")
    sch.parallel(loop)
    refused(sch, NotSupported, "loop i is parallel", "split", loop, [None, 2])


def from_minus_two():
    A = te.placeholder((9,), name="A")
    dx = te.reduce_axis((-2, 3), name="dx")
    return te.create_prim_func([A, te.compute((5,), lambda i: te.sum(A[i + dx + 2], axis=dx), name="B")])


@pytest.mark.parametrize("factor, tail", [(5, "guard"), (2, "guard"), (3, "peel")])
def test_a_loop_that_does_not_start_at_zero_becomes_loops_that_do(factor, tail):
    before = from_minus_two()
    sch = tir.Schedule(before)
    outer, inner = sch.split(sch.get_loops("B")[1], [None, factor], tail=tail)
    assert [str(sch.get(loop).min) for loop in (outer, inner)] == ["0", "0"]
    check(sch, before)
    if factor == 5:  # and the rest of what one does with a reduction follows
        sch.rfactor(inner, 0)
        assert_same_numbers(sch.mod["main"], before)


def test_the_shifted_tile_of_a_loop_that_does_not_start_at_zero():
    @T.prim_func
    def func(A: T.Buffer(10), B: T.Buffer(10)):
        for i in range(3, 10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = A[vi]

    sch = tir.Schedule(func)
    sch.split(sch.get_loops("B")[0], [None, 4], tail="shift")

    @T.prim_func
    def expected(A: T.Buffer(10), B: T.Buffer(10)):
        for i_0, i_1 in T.grid(2, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, T.min(i_0 * 4, 3) + i_1 + 3)
                B[vi] = A[vi]

    check(sch, func, expected)


@pytest.mark.parametrize("extent", [1, 3, 4, 7])
def test_a_peeled_tail_has_its_own_scoped_buffers(extent):
    before = matmul(extent, 3, 2)
    sch = tir.Schedule(before)
    i = sch.get_loops("C")[0]
    sch.stage("C", i, "A")
    sch.split(i, [None, 3], tail="peel")
    check(sch, before)


def test_a_peeled_reduction_into_scoped_memory():
    before = chain(7)
    sch = tir.Schedule(before)
    m, l = sch.get_loops("E")
    sch.compute_at("D", m)
    sch.sink_alloc("D", "D")
    sch.split(m, [None, 3], tail="peel")
    text = sch.mod["main"].script()
    assert text.count("T.decl_buffer((7, 5))") == 2, text  # the tail's D is its own
    check(sch, before)


# --- loops of one iteration, symbolic factors -----------------------------------------------------------------------


@T.prim_func
def column(A: T.Buffer((8, 1)), B: T.Buffer((8, 1))):
    for i, j in T.grid(8, 1):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0


@pytest.mark.parametrize("preserve", [True, False])
def test_loops_of_one_iteration_in_bindings(preserve):
    sch = tir.Schedule(column)
    sch.split(sch.get_loops("B")[0], [1, 8, 1], preserve_unit_iters=preserve)

    @T.prim_func
    def kept(A: T.Buffer((8, 1)), B: T.Buffer((8, 1))):
        for i_0, i_1, i_2, j in T.grid(1, 8, 1, 1):
            with T.block("B"):
                vi = T.axis.spatial(8, i_0 * 8 + i_1 + i_2)
                vj = T.axis.spatial(1, j)
                B[vi, vj] = A[vi, vj] + 1.0

    @T.prim_func
    def dropped(A: T.Buffer((8, 1)), B: T.Buffer((8, 1))):
        for _i_0, i_1, _i_2, _j in T.grid(1, 8, 1, 1):
            with T.block("B"):
                vi = T.axis.spatial(8, i_1)
                vj = T.axis.spatial(1, 0)
                B[vi, vj] = A[vi, vj] + 1.0

    check(sch, column, kept if preserve else dropped)


@pytest.mark.parametrize("preserve", [True, False])
def test_a_tail_of_one_iteration(preserve):
    func = matmul(9, 4, 3)
    sch = tir.Schedule(func)
    sch.split(sch.get_loops("C")[0], [None, 4], preserve_unit_iters=preserve, tail="peel")
    value = sch.view().realize(sch.get_block("C_tail").key).iter_values[0]
    assert repr(value) == ("i_tail + 8" if preserve else "8")
    check(sch, func)


@pytest.mark.parametrize("preserve", [True, False])
def test_steps_after_loops_of_one_iteration(preserve):
    func = matmul(8, 6, 4)
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    i0, i1, i2 = sch.split(i, [1, 8, 1], preserve_unit_iters=preserve)
    j0, j1 = sch.split(j, [3, 2], preserve_unit_iters=preserve)
    sch.reorder(i0, j0, k, i1, i2, j1)
    sch.parallel(j0)
    sch.vectorize(j1)
    sch.stage("C", i0, "A", layout=lambda i, k: (k, i))
    check(sch, func)


def symbolic(rank=1):
    sizes = [te.var(name) for name in "nm"[:rank]]
    A = te.placeholder(sizes, name="A", dtype="int32")
    B = te.compute(sizes, lambda *i: A(*i) + 1, name="B")
    return te.create_prim_func([A, B]), sizes


@pytest.mark.one_in(4)
@pytest.mark.parametrize("tail", ["guard", "peel"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7, 16])
def test_a_factor_that_is_a_size_of_the_function(size, tail):
    func, (n,) = symbolic()
    sch = tir.Schedule(func)
    outer, inner = sch.split(sch.get_loops("B")[0], [None, n // 3 + 1], tail=tail)
    assert repr(sch.get(inner).extent) == "n // 3 + 1"
    check_replay(sch, func)
    a, b = np.arange(size, dtype="int32"), np.zeros(size, "int32")
    lw.build(sch.mod)(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_all_factors_given():
    func, (n, m) = symbolic(2)
    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    sch.split(i, [2, n // 2 + 1])
    sch.split(j, ["max(m, 4)", 1])
    check_replay(sch, func)
    for shape in [(0, 3), (1, 1), (5, 2), (4, 7)]:
        a, b = np.arange(np.prod(shape), dtype="int32").reshape(shape), np.zeros(shape, "int32")
        lw.build(sch.mod)(a, b)
        np.testing.assert_array_equal(b, a + 1)


def test_a_size_among_parameters():
    @T.prim_func
    def func(A: T.Buffer(12, "int32"), B: T.Buffer(12, "int32"), tile: T.int32):
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                B[vi] = A[vi] * 2

    sch = tir.Schedule(func)
    (i,) = sch.get_loops("B")
    refused(sch, FactorsNotProved, "factor tile may be less than 1", "split", i, [None, func.params[2]])
    sch.split(i, [None, "max(tile, 1)"])
    check_replay(sch, func)
    for tile in (-1, 0, 1, 5, 12, 13):
        a, b = np.arange(12, dtype="int32"), np.zeros(12, "int32")
        lw.build(sch.mod)(a, b, tile)
        np.testing.assert_array_equal(b, a * 2)


def test_symbolic_factors_that_are_refused(with_suggestions):
    func, (n,) = symbolic()
    sch = tir.Schedule(func)
    (i,) = sch.get_loops("B")
    error = refused(sch, FactorsNotProved, "factor n may be less than 1", "split", i, [None, n])
    assert '[None, "max(n, 1)"])' in error.fields["suggestions"][0]
    message = r"factors \[2, n // 4 \+ 1\] make n // 4 \* 2 \+ 2 iterations, and loop i0 has n: that may not be enough"
    error = refused(sch, FactorsNotProved, message, "split", i, [2, n // 4 + 1])
    assert '[None, "n // 4 + 1"])' in error.fields["suggestions"][0]
    refused(sch, BadStepArgument, "'x' is not made of n, numbers", "split", i, [None, te.var("x")])
    refused(sch, BadStepArgument, "'n // ' is no size", "split", i, [None, "n // "])
    refused(sch, BadStepArgument, r"'n\(3\)' is not made of n, numbers", "split", i, [None, "n(3)"])


# --- tails: pad and shift -----------------------------------------------------------------------------------------


def elementwise(n: int = 10):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    return te.create_prim_func([A, C])


def test_the_last_tile_is_shifted_inward():
    before = elementwise()
    sch = tir.Schedule(before)
    i_0, i_1 = sch.split(sch.get_loops("B")[0], [None, 4], tail="shift")

    @T.prim_func
    def expected(A: T.Buffer(10), C: T.Buffer(10)):
        T.func_attr({"tir.noalias": True})
        B = T.alloc_buffer((10,))
        for i_0, i_1 in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, T.min(i_0 * 4, 6) + i_1)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] + T.float32(1)
        for i in range(10):
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi] * T.float32(2)

    check(sch, before, expected)
    sch.vectorize(i_1)
    check(sch, before)
    refused(sch, WouldRace, "same cell", "parallel", i_0)


@pytest.mark.parametrize("n", [4, 5, 7, 8])
@pytest.mark.parametrize("factors", [[None, 4], [None, 2, 2], [None, 3]])
def test_shifted_tails(n, factors):
    before = elementwise(n)
    sch = tir.Schedule(before)
    sch.split(sch.get_loops("C")[0], factors, tail="shift")
    check(sch, before)


def test_shifting_repeats_iterations_and_that_must_not_matter():
    sch = tir.Schedule(matmul(6, 5, 4))
    error = refused(
        sch, WouldChangeValues, "split would change", "split", sch.get_loops("C")[0], [None, 4], tail="shift"
    )
    assert "updates C[2, 0] more than once" in error.why
    short = tir.Schedule(elementwise(3))
    refused(short, NotSupported, "fewer than one tile of 4", "split", short.get_loops("B")[0], [None, 4], tail="shift")
    refused(short, NotSupported, "more than the last tile", "split", short.get_loops("B")[0], [4, 2], tail="shift")
    long = tir.Schedule(elementwise(10))  # the sixth and seventh tile would only repeat the fifth
    refused(long, NotSupported, "more than the last tile", "split", long.get_loops("B")[0], [7, 2], tail="shift")


def test_padding_grows_what_is_ours():
    before = elementwise()
    sch = tir.Schedule(before)
    loop = sch.get_loops("B")[0]
    refused(sch, FailsInExtraRuns, r"A\[10\] is outside its shape \(10,\)", "split", loop, [None, 4], tail="pad")
    sch.cache_read("B", 0, "global")
    sch.cache_write("C", 0, "global")
    sch.split(loop, [None, 4], tail="pad")
    sch.split(sch.get_loops("C")[0], [None, 4], tail="pad")
    sizes = {buffer.name: int(buffer.shape[0]) for buffer in sch.view().root.block.alloc_buffers}
    assert sizes == {"A_global": 12, "B": 12, "C_global": 12}
    assert "buffer_A_global_padding" in sch.view().block_names()  # what is read past the end holds zeros
    assert all(sch.view().realize(sch.get_block(name).key).predicate == True for name in "BC")  # noqa: E712
    check(sch, before)


@pytest.mark.parametrize("n", [1, 3, 5, 8])
def test_padded_tails(n):
    before = elementwise(n)
    sch = tir.Schedule(before)
    sch.cache_read("B", 0, "global")
    sch.split(sch.get_loops("B")[0], [None, 4], tail="pad")
    check(sch, before)


def test_a_padded_sum_would_have_other_members():
    before = matmul(2, 2, 3)
    sch = tir.Schedule(before)
    sch.cache_read("C", 0, "global")
    sch.cache_read("C", 1, "global")
    loop = sch.get_loops("C")[2]
    refused(sch, WouldChangeValues, "split would change a value", "split", loop, [None, 2], tail="pad")


def test_split_reads_a_bound_again_only_where_the_body_leaves_it_alone():
    @T.prim_func
    def changes(t: T.Buffer(1, "int32"), B: T.Buffer(20, "int32")):
        for i in range(t[0]):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                T.reads()
                T.writes(t[0], B[vi])
                t[0] = 3
                B[vi] = vi

    sch = tir.Schedule(changes)
    with pytest.raises(NotSupported, match=r"the extent t\[0\] of loop i is read once, and the loop's body writes t"):
        sch.split(sch.get_loops("B")[0], [None, 4])

    @T.prim_func
    def keeps(t: T.Buffer(1, "int32"), B: T.Buffer(20, "int32")):
        for i in range(t[0]):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                T.reads()
                T.writes(B[vi])
                B[vi] = vi

    sch = tir.Schedule(keeps)
    sch.split(sch.get_loops("B")[0], [None, 4])
    given, wanted = [np.array([10], "int32"), np.zeros(20, "int32")], np.arange(20, dtype="int32")
    wanted[10:] = 0
    lw.build(sch.mod)(*given)
    np.testing.assert_array_equal(given[1], wanted)


def test_split_sees_through_a_view_of_what_a_bound_reads():
    @T.prim_func
    def changes(t: T.Buffer(4, "int32"), B: T.Buffer(20, "int32")):
        for i in range(t[0]):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                T.reads()
                T.writes(t[0:2], B[vi])
                s = T.match_buffer(t[0:2], (2,), "int32")
                s[0] = 3
                B[vi] = vi

    sch = tir.Schedule(changes)
    with pytest.raises(NotSupported, match="the loop's body writes t"):
        sch.split(sch.get_loops("B")[0], [None, 4])


def test_a_loop_without_iterations_is_not_divided_by_its_inferred_factor():
    @T.prim_func
    def copy(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    sch = tir.Schedule(copy)
    sch.split(sch.get_loops("B")[0], [2, None, 2], tail="peel")
    module = lw.build(sch.mod)
    for size in (0, 1, 4, 5):
        a, b, c = np.arange(size, dtype="float32"), np.zeros(size, "float32"), np.zeros(size, "float32")
        evaluate(sch.mod["main"], a, b)
        module(a, c)
        assert np.array_equal(a, b) and np.array_equal(a, c)


BY_DATA = {
    "predicate": """
            v = T.axis.spatial(5, i)
            T.where(A[i] > 1)
            Y[v] = 7""",
    "binding": """
            v = T.axis.opaque(5, A[i] % 5)
            Y[v] = 7""",
    "division": """
            v = T.axis.spatial(5, i)
            T.where(12 // (4 - i) > 3)
            Y[v] = 7""",
}


@pytest.mark.parametrize("body", BY_DATA.values(), ids=BY_DATA)
def test_what_only_iterations_of_the_loop_may_load_is_behind_the_guard(body):
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((5,), "int32"), Y: T.Buffer((5,), "int32")):
    for i in range({4 if "//" in body else 5}):
        with T.block("b"):{body}
""")
    _check_by_data(program)


def test_a_bound_that_only_iterations_of_the_loop_may_load_is_behind_the_guard():
    @T.prim_func
    def steps(A: T.Buffer((5,), "int32"), Y: T.Buffer((5,), "int32")):
        for i in range(5):
            for _ in range(A[i]):
                with T.block("b"):
                    v = T.axis.opaque(5, i)
                    Y[v] = Y[v] + 1

    _check_by_data(steps)


def _check_by_data(program):
    sch = tir.Schedule(program)
    sch.split(sch.get_loops("b")[0], [None, 3])
    expected, found, native = (np.zeros(5, "int32") for _ in range(3))
    A = np.array([3, 1, 2, 1, 2], "int32")
    evaluate(program, A, expected)
    evaluate(sch.mod["main"], A, found)
    lw.build(sch.mod)(A, native)
    assert np.array_equal(found, expected) and np.array_equal(native, expected)


@pytest.mark.parametrize("tail", ["guard", "peel", "shift", "pad"])
def test_numbers_as_factors_are_enough_for_every_size(tail):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    sch = tir.Schedule(te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1.0, name="B")]))
    message = r"factors \[3, 2\] make 6 iterations, and loop i has n: that may not be enough"
    with pytest.raises(FactorsNotProved, match=message):
        sch.split(sch.get_loops("B")[0], [3, 2], tail=tail)


@pytest.mark.parametrize("size", [5, "n"])
def test_rows_of_a_triangle_without_iterations_start_too(size):
    given = "X: T.Buffer((5,)), Q: T.Buffer((5,))" if size == 5 else "x: T.handle, q: T.handle"
    sizes = "    n = T.int32()\n    X = T.match_buffer(x, (n,))\n    Q = T.match_buffer(q, (n,))" if size == "n" else ""
    program = from_source(f"""
@T.prim_func
def main({given}):
{sizes}
    for i in T.serial({size}):
        for j in T.serial(i):
            with T.block("Q"):
                vi = T.axis.spatial({size}, i)
                vj = T.axis.reduce({size}, j)
                with T.init():
                    Q[vi] = 0.0
                Q[vi] = Q[vi] + X[vj]
""")
    sch = tir.Schedule(program)
    with pytest.raises(WouldChangeValues):
        sch.split(sch.get_loops("Q")[1], [None, 2])


def test_pad_widens_the_axes_of_blocks_inside():
    @T.prim_func
    def unread(Y: T.Buffer((2,), "int32")):
        Q = T.alloc_buffer((3, 2), "int32")
        for i, j in T.grid(3, 2):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                Q[0, vj] = vj
        for j in range(2):
            with T.block("c"):
                v = T.axis.spatial(2, j)
                Y[v] = v

    sch = tir.Schedule(unread)
    i, j = sch.get_loops("b")
    sch.blockize(j)
    sch.split(i, [None, 2], tail="pad")
    Y = np.zeros(2, "int32")
    evaluate(sch.mod["main"], Y)
    assert Y.tolist() == [0, 1]


@T.prim_func
def rows_from_one(C: T.Buffer((7, 5), "int32")):
    B = T.alloc_buffer((7, 5), "int32")
    for i in T.serial(1, 8):
        with T.block("row"):
            vi = T.axis.spatial((1, 8), i)
            T.reads()
            T.writes(B[vi - 1, 0:5])
            for j in range(5):
                with T.block("cell"):
                    vj = T.axis.spatial(5, j)
                    B[vi - 1, vj] = vi * vj
    for i, j in T.grid(7, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


def test_padding_inside_a_block_grows_only_the_padded_axis():
    sch = tir.Schedule(rows_from_one)
    sch.split(sch.get_loops("cell")[0], [None, 6], tail="pad")
    (buffer,) = sch.get(sch.get_block("root")).alloc_buffers
    assert [int(extent) for extent in buffer.shape] == [7, 6]
    assert_same_numbers(rows_from_one, sch.mod["main"])


@T.prim_func
def rows_in_a_block(C: T.Buffer((3, 5), "int32")):
    B = T.alloc_buffer((5, 5), "int32")  # there is room for what runs past the end
    for o in range(1):
        with T.block("outer"):
            vo = T.axis.spatial(1, o)
            T.reads()
            T.writes(B[vo * 3 : vo * 3 + 3, 0:5])
            for f in range(15):
                with T.block("B"):
                    vi = T.axis.spatial(3, vo * 3 + f // 5)
                    vj = T.axis.spatial(5, f % 5)
                    B[vi, vj] = vi * vj
    for i, j in T.grid(3, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


def test_padding_inside_a_block_widens_axes_by_those_around():
    sch = tir.Schedule(rows_in_a_block)
    sch.split(sch.get_loops("B")[0], [None, 7], tail="pad")
    rows, columns = sch.get(sch.get_block("B")).iter_vars
    assert (int(rows.dom.extent), int(columns.dom.extent)) == (5, 5)
    assert_same_numbers(rows_in_a_block, sch.mod["main"])


@T.prim_func
def rows_from_n(C: T.Buffer((3, 5), "int32"), n: T.int32):
    B = T.alloc_buffer((5, 5), "int32")
    for f in range(15):
        with T.block("B"):
            vi = T.axis.spatial(3, n + f // 5)
            vj = T.axis.spatial(5, f % 5)
            T.where(n == 0)
            B[vi, vj] = vi * vj
    for i, j in T.grid(3, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


def test_padding_an_axis_of_unknown_length_is_refused():
    sch = tir.Schedule(rows_from_n)
    loop = sch.get_loops("B")[0]
    problem = "how far axis vi of block 'B' runs is not known"
    refused(sch, NotSupported, problem, "split", loop, [None, 7], tail="pad")


def test_padding_around_a_block_grows_memory_by_the_axes_inside():
    """What the inner block touches goes by its own axis, of one value: B gets two rows, and no more columns."""

    @T.prim_func
    def before(A: T.Buffer((3, 2), "int32"), C: T.Buffer((1,), "int32")):
        B = T.alloc_buffer((1, 1), "int32")
        for i in range(1):
            with T.block("outer"):
                vi = T.axis.spatial((1, 2), i + 1)
                for j, k in T.grid(1, 2):
                    with T.block("B"):
                        vj = T.axis.spatial((1, 2), j + 1)
                        vk = T.axis.reduce(2, k)
                        with T.init():
                            B[vi - 1, vj - 1] = 0
                        B[vi - 1, vj - 1] = B[vi - 1, vj - 1] + A[vi - 1, vk]
        for i in range(1):
            with T.block("C"):
                vi = T.axis.spatial(1, i)
                C[vi] = B[vi, 0]

    sch = tir.Schedule(before)
    sch.split(sch.get_loops("outer")[0], [None, 2], tail="pad")
    assert "B = T.alloc_buffer((2, 1)" in str(sch.mod["main"])
    check(sch, before)


def test_pad_widens_a_block_inside_the_init():
    A = te.placeholder((3, 2), "int32", name="A")
    k = te.reduce_axis((0, 2), "k")
    C = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="C")
    D = te.compute((3,), lambda i: C[i] * 2, name="D")
    before = te.create_prim_func([A, D])
    sch = tir.Schedule(before)
    outer = sch.blockize(sch.get_loops("C")[1])
    sch.cache_read(outer, 0, "global")
    sch.split(sch.get_loops(outer)[0], [None, 2], tail="pad")
    init, body = [sch.get(sch.get_block(name)).iter_vars[0].dom for name in ("C_init", "C")]
    assert (init.extent.value, body.extent.value) == (4, 4)
    check(sch, before)


@pytest.mark.parametrize("tail", ["guard", "peel"])
@pytest.mark.parametrize("factors", [[None, 2], [2, None], [None, 3, 2]])
def test_a_loop_that_may_have_a_negative_extent(tail, factors):
    program = from_source("""
@T.prim_func
def main(C: T.Buffer((6, 6), "int32")):
    for i in range(6):
        for j in range(i * -1 + 3):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = vj + 4
""")
    sch = tir.Schedule(program)
    sch.split(sch.get_loops("C")[1], factors, tail=tail)
    check(sch, program)
