"""rfactor: a loop of a reduction becomes data, with partial results that a second reduction combines."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.evaluator import evaluate, evaluate_terms
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.primitives.compute.rfactor import NotCommutative, NotFactorable
from loopwright.schedule.rewrite.combiners import MalformedReduction, NoReduction, UnknownCombiner
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, check_replay, matmul, refused, same_program


@T.prim_func
def row_sums(A: T.Buffer((4, 8)), C: T.Buffer(4)):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]


def check_numbers(sch: Schedule, before: PrimFunc, expected: PrimFunc | None = None) -> None:
    """The expected program; on small whole numbers the same sums in the evaluator and natively; the trace replays."""
    after = sch.mod["main"]
    if expected is not None:
        same_program(after, expected)
    assert_same_numbers(after, before)
    run_natively(sch, before)
    check_replay(sch, before)


def run_natively(sch: Schedule, before: PrimFunc) -> None:
    random = np.random.default_rng(1)
    shapes = [[int(n) for n in b.shape] for b in before.argument_buffers()]
    arrays = [random.integers(0, 9, s).astype(b.dtype) for s, b in zip(shapes, before.argument_buffers(), strict=True)]
    wanted, got = [a.copy() for a in arrays], [a.copy() for a in arrays]
    evaluate(before, *wanted)
    loopwright.build(sch.mod)(*got)
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_outer_part_of_a_split_reduction():
    sch = Schedule(row_sums)
    block = sch.get_block("C")
    i, k = sch.get_loops(block)
    k_0, k_1 = sch.split(k, [None, 2])
    rf = sch.rfactor(k_1, 0)

    @T.prim_func
    def expected(A: T.Buffer((4, 8)), C: T.Buffer(4)):
        C_rf = T.alloc_buffer((2, 4))
        for i, k_0, k_1 in T.grid(4, 4, 2):
            with T.block("C_rf"):
                vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
                T.reads(A[vi, vk_0 * 2 + vk_1])
                T.writes(C_rf[vk_1, vi])
                with T.init():
                    C_rf[vk_1, vi] = 0.0
                C_rf[vk_1, vi] = C_rf[vk_1, vi] + A[vi, vk_0 * 2 + vk_1]
        for i, k_1 in T.grid(4, 2):
            with T.block("C"):
                vk, vi = T.axis.remap("RS", [k_1, i])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + C_rf[vk, vi]

    check_numbers(sch, row_sums, expected)
    assert sch.get(rf).name_hint == "C_rf"
    assert sch.get(block).name_hint == "C"
    assert [loop.name for loop in sch.get_loops(rf)] == ["i", "k_0", "k_1"]
    assert [loop.name for loop in sch.get_loops(block)] == ["i", "k_1"]


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_the_new_dimension_goes_where_it_is_asked(axis):
    before = matmul(3, 4, 5)
    sch = Schedule(before)
    sch.rfactor(sch.get_loops("C")[2], axis)
    shape = [3, 4]
    shape.insert(axis if axis >= 0 else axis + 3, 5)
    assert [int(n) for n in sch.get(sch.get_block("C_rf")).writes[0].buffer.shape] == shape
    check_numbers(sch, before)


def test_partial_results_run_as_lanes_and_in_parallel():
    before = matmul(4, 4, 16)
    sch = Schedule(before)
    i, j, k = sch.get_loops("C")
    k_0, k_1 = sch.split(k, [None, 8])
    sch.rfactor(k_1, 2)
    sch.reorder(k_0, k_1)
    sch.vectorize(k_1)
    sch.parallel(i)
    check_numbers(sch, before)


def test_a_guard_on_the_loop_becomes_a_choice():
    @T.prim_func
    def sums(A: T.Buffer((3, 10), "int32"), C: T.Buffer(3, "int32")):
        for i, k in T.grid(3, 10):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 5
                C[vi] = C[vi] + A[vi, vk]

    for factors in ([None, 4], [4, None], [None, 7], [16, 1]):
        for part in (0, 1):
            sch = Schedule(sums)
            parts = sch.split(sch.get_loops("C")[1], factors)
            sch.rfactor(parts[part], 0)
            check_numbers(sch, sums)


def test_guards_on_data_stay_guards():
    @T.prim_func
    def sums(A: T.Buffer((5, 6), "int32"), C: T.Buffer(5, "int32")):
        for i, k in T.grid(5, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(sums)
    i, k = sch.get_loops("C")
    sch.split(i, [None, 2])
    k_0, k_1 = sch.split(k, [None, 4])
    sch.rfactor(k_0, 1)
    check_numbers(sch, sums)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("reducer", ["sum", "max", "min", "prod"])
def test_every_reducer_on_every_type(reducer, dtype):
    A = te.placeholder((2, 6), dtype, name="A")
    k = te.reduce_axis((0, 6), name="k")
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t))
    combine = product if reducer == "prod" else getattr(te, reducer)
    before = te.create_prim_func([A, te.compute((2,), lambda i: combine(A[i, k], axis=k), name="C")])
    sch = Schedule(before)
    sch.split(sch.get_loops("C")[1], [None, 4])
    sch.rfactor(sch.get_loops("C")[2], 0)
    assert_same_numbers(sch.mod["main"], before)
    check_replay(sch, before)


def test_int64_axes_stay_int64():
    n = tir.Var("n", "int64")
    A = te.placeholder((n, tir.const(8, "int64")), name="A")
    k = te.reduce_axis((tir.const(0, "int64"), tir.const(8, "int64")), name="k")
    before = te.create_prim_func([A, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="C")])
    sch = Schedule(before)
    rf = sch.rfactor(sch.get_loops("C")[1], 0)
    assert {str(axis.var.dtype) for axis in sch.get(rf).iter_vars} == {"int64"}
    assert {str(size.dtype) for size in sch.get(rf).writes[0].buffer.shape} == {"int64"}
    a, wanted, got = np.arange(24, dtype="float32").reshape(3, 8), np.zeros(3, "float32"), np.zeros(3, "float32")
    evaluate(before, a, wanted)
    evaluate(sch.mod["main"], a, got)
    np.testing.assert_array_equal(wanted, got)


def _argmax(kind: str) -> PrimFunc:
    def better(a, b):
        if kind == "loose":
            first = a[1] >= b[1]
        elif kind == "mirrored":
            first = b[1] <= a[1]
        elif kind == "least":
            first = te.any(a[1] < b[1], te.all(a[1].equal(b[1]), a[0] < b[0]))
        else:
            first = te.any(a[1] > b[1], te.all(a[1].equal(b[1]), a[0] < b[0]))
        return te.if_then_else(first, a[0], b[0]), te.if_then_else(first, a[1], b[1])

    def worst(index, value):
        return tir.const(-1, index), te.max_value(value) if kind == "least" else te.min_value(value)

    reducer = te.comm_reducer(better, worst, name="argmax")
    X = te.placeholder((3, 12), "int32", name="X")
    k = te.reduce_axis((0, 12), name="k")
    where, value = te.compute((3,), lambda i: reducer((k.var, X[i, k]), axis=k), name="best")
    return te.create_prim_func([X, where, value])


def _check_argmax(sch: Schedule, before: PrimFunc, dtype: str = "int32") -> None:
    """The place that the program as written finds, also of equal values."""
    random = np.random.default_rng(0)
    for high in (2, 3, 100):
        x = random.integers(-high, high, (3, 12)).astype(dtype)
        if dtype == "float32":
            x = np.where(random.random(x.shape) < 0.2, random.choice([np.nan, -0.0, 0.0, -np.inf], x.shape), x)
            x = x.astype(dtype)
        wanted = np.zeros(3, "int32"), np.zeros(3, dtype)
        evaluate(before, x, *wanted)
        for run in (loopwright.build(sch.mod), lambda *args: evaluate(sch.mod["main"], *args)):
            got = np.zeros(3, "int32"), np.zeros(3, dtype)
            run(x, *got)
            np.testing.assert_array_equal(got[0], wanted[0])
            np.testing.assert_array_equal(got[1], wanted[1])
            np.testing.assert_array_equal(np.signbit(got[1]), np.signbit(wanted[1]))
    check_replay(sch, before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["strict", "least"])
@pytest.mark.parametrize("inner", [True, False])
def test_argmax(kind, inner):
    before = _argmax(kind)
    sch = Schedule(before)
    k = sch.split(sch.get_loops("best")[1], [None, 5])
    sch.rfactor(k[inner], 1)
    _check_argmax(sch, before)


@pytest.mark.parametrize("kind", ["loose", "mirrored"])
def test_an_argmax_of_the_first_keeps_its_order(kind):
    before = _argmax(kind)
    sch = Schedule(before)
    k_0, k_1 = sch.split(sch.get_loops("best")[1], [None, 5])
    match = "the reduction 'best' is not commutative, and loop k_0 of it is around loop k_1"
    told = str(refused(sch, NotCommutative, match, "rfactor", k_1, 1))
    assert "why: its members would be combined in another order" in told
    assert "hint: rfactor loop k_0, which keeps the order; or break ties by the index" in told
    sch.rfactor(k_0, 1)
    _check_argmax(sch, before)


def _argmax_of_floats(how: str) -> PrimFunc:
    def better(a, b):
        wins, ties = a[1] > b[1], a[1].equal(b[1])
        if how != "blind":
            wins = te.any(wins, te.all(tir.isnan(a[1]), tir.Not(tir.isnan(b[1]))))
            ties = te.any(ties, te.all(tir.isnan(a[1]), tir.isnan(b[1])))
        first = te.any(wins, te.all(ties, a[0] < b[0]))
        return tir.Select(first, a[0], b[0]), te.max(a[1], b[1]) if how == "max" else tir.Select(first, a[1], b[1])

    reducer = te.comm_reducer(better, lambda i, v: (te.max_value(i), tir.const(float("-inf"), v)), name="argmax")
    X = te.placeholder((3, 12), "float32", name="X")
    k = te.reduce_axis((0, 12), name="k")
    where, value = te.compute((3,), lambda i: reducer((k.var, X[i, k]), axis=k), name="best")
    return te.create_prim_func([X, where, value])


def test_an_argmax_of_floats_says_what_a_nan_is():
    before = _argmax_of_floats("max")
    sch = Schedule(before)
    _, k_1 = sch.split(sch.get_loops("best")[1], [None, 5])
    sch.rfactor(k_1, 1)
    _check_argmax(sch, before, "float32")


def test_an_argmax_of_floats_that_a_nan_decides_is_refused():
    """No comparison holds for a NaN: whether it stays depends on which side it comes in."""
    sch = Schedule(_argmax_of_floats("blind"))
    _, k_1 = sch.split(sch.get_loops("best")[1], [None, 5])
    match = r"the reduction 'best' updates best_v0 to T.Select\(.*, which is no operation known to be associative"
    told = str(refused(sch, UnknownCombiner, match, "rfactor", k_1, 1))
    assert "hint: of floats take the value with max or min, and say with isnan which index counts" in told


def test_an_argmax_of_floats_tells_both_zeros_apart():
    """Of (7, -0.0) and (7, 0.0) the second one is taken, whichever it is."""
    sch = Schedule(_argmax_of_floats("chosen"))
    _, k_1 = sch.split(sch.get_loops("best")[1], [None, 5])
    refused(sch, NotCommutative, "the reduction 'best' is not commutative", "rfactor", k_1, 1)


def test_a_guard_that_loads_the_result_is_refused():
    """The members are those that come until the sum is large enough: which these are depends on the order."""

    @T.prim_func
    def until(A: T.Buffer((2, 6), "int32"), C: T.Buffer(2, "int32")):
        for i, k in T.grid(2, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(C[i] < 3)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(until)
    match = r"whether block 'C' runs, or where, depends on C: C\[i\] < 3"
    refused(sch, NotFactorable, match, "rfactor", sch.get_loops("C")[1], 0)


@pytest.mark.parametrize("start", ["T.float32(-0.0)", "S[vi]", "T.float32(0)"])
def test_a_sum_of_negative_zeros(start):
    before = from_source(f"""
@T.prim_func
def main(A: T.Buffer((2, 6)), S: T.Buffer(2), C: T.Buffer(2)):
    for i, k in T.grid(2, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = {start}
            C[vi] = C[vi] + A[vi, vk]
""")
    sch = Schedule(before)
    _, k_1 = sch.split(sch.get_loops("C")[1], [None, 4])
    sch.rfactor(k_1, 0)
    given = [np.full((2, 6), -0.0, "float32"), np.array([-0.0, 0.0], "float32")]
    wanted, got = np.ones(2, "float32"), np.ones(2, "float32")
    evaluate(before, *given, wanted)
    loopwright.build(sch.mod)(*given, got)
    assert np.array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("start", ["(3, 1)", "(-1, -5)"])
def test_an_argmax_that_starts_anywhere(start):
    index, value = eval(start)

    @T.prim_func
    def best(A: T.Buffer((2, 6), "int32"), I: T.Buffer(2, "int32"), V: T.Buffer(2, "int32")):
        for i, k in T.grid(2, 6):
            with T.block("best"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    I[vi] = index
                    V[vi] = value
                keeps: T.bool = V[vi] > A[vi, vk] or (V[vi] == A[vi, vk] and I[vi] < vk)
                x: T.int32 = T.Select(keeps, I[vi], vk)
                y: T.int32 = T.Select(keeps, V[vi], A[vi, vk])
                I[vi] = x
                V[vi] = y

    sch = Schedule(best)
    _, k_1 = sch.split(sch.get_loops("best")[1], [None, 4])
    sch.rfactor(k_1, 0)
    check_numbers(sch, best)


def test_an_argmax_whose_start_value_counts_again_is_refused():
    """Of equal values the last one wins, also over the start value: combined in once more it would be the last."""

    @T.prim_func
    def last(A: T.Buffer((2, 6), "int32"), I: T.Buffer(2, "int32"), V: T.Buffer(2, "int32")):
        for i, k in T.grid(2, 6):
            with T.block("best"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    I[vi] = -1
                    V[vi] = 0
                x: T.int32 = T.Select(V[vi] > A[vi, vk], I[vi], vk)
                y: T.int32 = T.max(V[vi], A[vi, vk])
                I[vi] = x
                V[vi] = y

    sch = Schedule(last)
    k_0, _ = sch.split(sch.get_loops("best")[1], [None, 3])
    match = "starts I with -1, which changes the result when it is combined in again"
    refused(sch, MalformedReduction, match, "rfactor", k_0, 0)


def test_fields_with_operations_of_their_own():
    @T.prim_func
    def both(A: T.Buffer((3, 8), "int32"), S: T.Buffer(3, "int32"), M: T.Buffer(3, "int32")):
        for i, k in T.grid(3, 8):
            with T.block("both"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    M[vi] = T.min_value("int32")
                    S[vi] = 0
                S[vi] = A[vi, vk] + S[vi]
                M[vi] = T.max(M[vi], A[vi, vk] * 2)

    sch = Schedule(both)
    sch.rfactor(sch.get_loops("both")[1], 0)
    assert [region.buffer.name for region in sch.get(sch.get_block("both_rf")).writes] == ["S_rf", "M_rf"]
    check_numbers(sch, both)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_small_and_empty_reductions(size):
    before = matmul(2, 3, size)
    sch = Schedule(before)
    sch.rfactor(sch.get_loops("C")[2], 0)
    assert_same_numbers(sch.mod["main"], before)


def test_a_reduction_to_one_cell():
    @T.prim_func
    def total(A: T.Buffer(9, "int32"), C: T.Buffer(1, "int32")):
        for k in range(9):
            with T.block("C"):
                vk = T.axis.reduce(9, k)
                with T.init():
                    C[0] = 0
                C[0] = C[0] + A[vk]

    sch = Schedule(total)
    block = sch.get_block("C")
    k_0, k_1 = sch.split(sch.get_loops(block)[0], [3, 3])
    sch.rfactor(k_0, 1)
    check_numbers(sch, total)
    assert sch.get(block).name_hint == "C"


# --- refusals -----------------------------------------------------------------------------------------------------


def test_only_loops_of_the_reduction():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    refused(sch, NotFactorable, r"loop i runs over data axes of block 'C'", "rfactor", i, 0)
    fused = sch.fuse(j, k)
    error = refused(sch, NotFactorable, "as well as its reduction", "rfactor", fused, 0)
    assert error.fields["loop"] == fused.name


@pytest.mark.parametrize("axis", [-4, 3, True, "0"])
def test_the_axis_must_be_one_of_the_new_buffer(axis):
    sch = Schedule(matmul())
    k = sch.get_loops("C")[2]
    refused(sch, BadStepArgument, r"the partial results have 3 dimensions", "rfactor", k, axis)


def test_unknown_operations():
    @T.prim_func
    def alternating(A: T.Buffer(8), C: T.Buffer(1)):
        for k in range(8):
            with T.block("C"):
                vk = T.axis.reduce(8, k)
                with T.init():
                    C[0] = 0.0
                C[0] = A[vk] - C[0]

    sch = Schedule(alternating)
    refused(sch, UnknownCombiner, r"updates C to A\[vk\] - C\[0\]", "rfactor", sch.get_loops("C")[0], 0)


def test_an_update_that_reads_other_cells_is_no_reduction():
    @T.prim_func
    def prefix(A: T.Buffer(8, "int32"), C: T.Buffer(9, "int32")):
        for i, k in T.grid(8, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi + 1] = 0
                C[vi + 1] = C[vi + 1] + C[vi] * A[vk]

    sch = Schedule(prefix)
    refused(sch, UnknownCombiner, r"which is no operation known", "rfactor", sch.get_loops("C")[1], 0)


def test_blocks_that_are_no_reductions():
    @T.prim_func
    def copies(A: T.Buffer(8), B: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.opaque(8, i)
                B[vi] = A[vi]

    sch = Schedule(copies)
    refused(sch, NotFactorable, "runs over data axes", "rfactor", sch.get_loops("B")[0], 0)
    sch = Schedule(row_sums)
    i, k = sch.get_loops("C")
    sch.decompose_reduction("C", i)
    refused(sch, NoReduction, "block 'C_update' has no init", "rfactor", k, 0)


def _tuple(init: str, update: str, shape: str = "3") -> PrimFunc:
    text = f"""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((3, 8), "int32"), S: T.Buffer(3, "int32"), M: T.Buffer({shape}, "int32")):
    for i, k in T.grid(3, 8):
        with T.block("both"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                {init}
            {update}
"""
    from loopwright.script import from_source

    return from_source(text)


_INIT = "S[vi] = 0; M[vi] = 0"
_UPDATE = "S[vi] = S[vi] + 1; M[vi] = M[vi] + 1"


@pytest.mark.parametrize(
    ("init", "update", "message"),
    [
        ("S[vi] = 0", _UPDATE, r"starts S, but updates S, M"),
        (_INIT, "S[vi] = S[vi] + 1", r"starts S, M, but updates S"),
        (_INIT, f"S[vi] = S[vi] + 1; {_UPDATE}", r"stores S before S, whose new value loads it"),
        ("S[vi] = 0; S[vi] = 1; M[vi] = 0", _UPDATE, r"stores S more than once in its init"),
        ("S[vi] = 0; M[0] = 0", _UPDATE, r"stores M\[0\] beside S\[vi\]"),
        (_INIT, "S[vi] = S[vi] + 1; M[vi] = M[vi] + S[vi]", r"stores S before M, whose new value loads it"),
        (_INIT, "S[vi] = S[vi] + 1; for t in range(2):;     M[vi] = M[vi] + 1", r"has a For in its body"),
    ],
)
def test_malformed_tuples(init, update, message):
    init, update = (
        init.replace("; ", "\n" + 16 * " "),
        update.replace("; ", "\n" + 12 * " ").replace(":;", ":\n" + 12 * " "),
    )
    sch = Schedule(_tuple(init, update))
    refused(sch, MalformedReduction, message, "rfactor", sch.get_loops("both")[1], 0)


def test_fields_of_different_shapes():
    update = "S[vi] = S[vi] + 1\n            M[vi] = M[vi] + 1"
    sch = Schedule(_tuple("S[vi] = 0\n                M[vi] = 0", update, shape="4"))
    refused(sch, MalformedReduction, "fields of different shapes: S and M", "rfactor", sch.get_loops("both")[1], 0)


def test_nests_with_more_than_the_block():
    sch = Schedule(two_sums)
    i, k = sch.get_loops("B")
    sch.merge(i, sch.get_loops("C")[0])
    outer = sch.get_loops("B")[0]
    message = f"loop {outer.name} holds more than the nest of block 'B'"
    refused(sch, NotFactorable, message, "rfactor", sch.get_loops("B")[1], 0)
    refused(sch, NotFactorable, "must hold one block; it holds B, C", "rfactor", outer, 0)


@T.prim_func
def two_sums(A: T.Buffer((4, 8)), B: T.Buffer(4), C: T.Buffer(4)):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk]


def test_a_guard_that_ties_data_to_the_reduction():
    @T.prim_func
    def triangle(A: T.Buffer((4, 4), "int32"), C: T.Buffer(4, "int32")):
        for i, k in T.grid(4, 4):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(k <= i)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(triangle)
    refused(sch, NotFactorable, r"the guard k <= i relates data to the reduction", "rfactor", sch.get_loops("C")[1], 0)


def test_cells_that_several_iterations_reach():
    @T.prim_func
    def overlapping(A: T.Buffer((7, 4), "int32"), C: T.Buffer(7, "int32")):
        for i_0, i_1, k in T.grid(3, 3, 4):
            with T.block("C"):
                vi = T.axis.spatial(7, i_0 * 2 + i_1)
                vk = T.axis.reduce(4, k)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(overlapping)
    refused(sch, NotFactorable, "several iterations of loop i_0 reach one cell", "rfactor", sch.get_loops("C")[2], 0)


def test_bounds_that_move():
    @T.prim_func
    def ragged(A: T.Buffer((4, 4), "int32"), C: T.Buffer(4, "int32")):
        for i in range(4):
            for k in range(i + 1):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = 0
                    C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(ragged)
    refused(sch, NotFactorable, "the bounds of loop k depend on loop i", "rfactor", sch.get_loops("C")[1], 0)


def test_a_guard_on_the_factored_loop_bounds_another_axis():
    """The axis is bound to the inner loop alone; what keeps it inside its domain is a guard on both."""

    @T.prim_func
    def before(A: T.Buffer((4, 3)), C: T.Buffer(4)):
        for i, k_0, k_1 in T.grid(4, 1, 5):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k_1])
                T.where(k_0 * 5 + k_1 < 3)
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(before)
    rf = sch.rfactor(sch.get_loops("C")[1], 0)
    assert [int(axis.dom.extent) for axis in sch.get(rf).iter_vars] == [1, 4, 5]
    evaluate_terms(sch.mod["main"])  # every axis stays inside its domain
    check_numbers(sch, before)


def test_after_an_unrolled_and_jammed_loop_of_one_iteration():
    @T.prim_func
    def before(A: T.Buffer((2, 1)), C: T.Buffer(2)):
        for i, k in T.grid(2, 1):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(before)
    sch.unroll_and_jam(sch.get_loops("C")[1], 2)
    sch.rfactor(sch.get_loops("C")[1], 0)
    evaluate_terms(sch.mod["main"])
    check_numbers(sch, before)


def test_a_loop_that_repeats_the_reduction():
    @T.prim_func
    def repeated(A: T.Buffer((4, 6)), C: T.Buffer(4)):
        for i, _again, k_0, k_1 in T.grid(4, 2, 3, 2):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(6, k_0 * 2 + k_1)
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(repeated)
    _, again, k_0, _ = sch.get_loops("C")
    refused(sch, NotFactorable, "loop _again repeats the reduction of block 'C'", "rfactor", again, 0)
    sch.rfactor(k_0, 0)  # the partial sums are repeated
    check_numbers(sch, repeated)


def test_a_loop_that_repeats_a_reduction_of_one_loop():
    """Partial results would be copies, which hold what the last repetition wrote, and no sums over all of them."""

    @T.prim_func
    def repeated(A: T.Buffer((4, 6)), C: T.Buffer(4)):
        for _again, i, k in T.grid(2, 4, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

    sch = Schedule(repeated)
    refused(sch, NotFactorable, "loop _again repeats the reduction of block 'C'", "rfactor", sch.get_loops("C")[2], 0)


def test_a_loop_that_repeats_a_part_of_the_reduction():
    @T.prim_func
    def repeated(A: T.Buffer((4, 6)), C: T.Buffer(4)):
        for i, k_0, _again, k_1 in T.grid(4, 3, 2, 2):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(6, k_0 * 2 + k_1)
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

    for depth in (1, 3):
        sch = Schedule(repeated)
        loop = sch.get_loops("C")[depth]
        refused(sch, NotFactorable, "loop _again repeats a part of the reduction", "rfactor", loop, 0)


def test_a_merged_nest_is_told_to_factor_first():
    source = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((8,), lambda i: te.sum(source[i, k], axis=k), name="C")
    other = te.compute((8,), lambda i: source[i, 0] * 2.0, name="D")
    sch = Schedule(te.create_prim_func([source, total, other]))
    sch.merge(sch.get_loops("C")[0], sch.get_loops("D")[0])
    error = refused(sch, NotFactorable, "holds more than the nest of block 'C'", "rfactor", sch.get_loops("C")[1], 0)
    assert "call rfactor before merge or compute_at; or part it with fission first" in str(error)


def test_cells_that_iterations_without_members_reach():
    """Both i start the one cell, though only the first has updates: partial results are combined for both."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer(8, "int32"), C: T.Buffer(4, "int32")):
    for i in range(2):
        for j in range(1 - i):
            for u in range(1):
                with T.block("C"):
                    vi = T.axis.spatial(4, i // 2)
                    vj = T.axis.reduce(8, j)
                    with T.init():
                        C[vi] = A[vi]
                    C[vi] = C[vi] + A[vi + 1]
""")
    sch = Schedule(program)
    refused(sch, NotFactorable, "several iterations of loop i reach one cell", "rfactor", sch.get_loops("C")[2], 1)


def test_members_that_are_compared_before_they_wrap():
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(C: T.Buffer(1, "int32"), n: T.int32, m: T.int32):
    for i in range(n):
        with T.block("C"):
            v = T.axis.reduce(12, i)
            with T.init():
                C[0] = 0
            C[0] = T.Select(v * 900000000 + m > 0, v * 900000000 + m, C[0])
""")
    sch = Schedule(program)
    refused(sch, NotFactorable, "is decided before it is stored", "rfactor", sch.get_loops("C")[0], 0)


def test_a_guard_that_ties_the_reduction_to_a_loop_of_one_iteration():
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(C: T.Buffer(1, "int32"), m: T.int32):
    for i in range(1):
        for j in range(T.min(m, 5)):
            with T.block("C"):
                v = T.axis.reduce(12, j)
                T.where(i >= j)
                with T.init():
                    C[0] = 5
                C[0] = C[0] + v
""")
    sch = Schedule(program)
    for loop in sch.get_loops("C"):
        refused(sch, NotFactorable, "is on loop i, which no axis of the block is bound to", "rfactor", loop, 0)


@pytest.mark.parametrize(
    "start", ["C[v // 2] = 7 + C[0]", "C[v // 2] = C[v // 2] + 7", "x: T.int32 = C[0]; C[v // 2] = x"]
)
def test_rows_that_start_a_cell_from_what_it_holds(start):
    program = from_source(f"""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((2, 4), "int32"), C: T.Buffer((2,), "int32")):
    for i, j in T.grid(2, 4):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, j])
            with T.init():
                {start.replace("; ", chr(10) + " " * 16)}
            C[v // 2] = C[v // 2] + A[v, r]
""")
    sch = Schedule(program)
    problem = "iterations of loop i share a cell of C, and start from what it held before"
    refused(sch, NotFactorable, problem, "rfactor", sch.get_loops("C")[1], 0)


@pytest.mark.parametrize("cell", ["0", "v // 2", "v % 2"])
@pytest.mark.parametrize("start", ["0", "7", "v", "A[v, 0]"])
def test_rows_that_share_a_cell_inside_of_the_reduction(cell, start):
    program = from_source(f"""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4,), "int32")):
    for k, i in T.grid(4, 4):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                C[{cell}] = {start}
            C[{cell}] = C[{cell}] + A[v, r]
""")
    sch = Schedule(program)
    problem = "iterations of loop i share a cell of C, and loop k of the reduction is around them"
    refused(sch, NotFactorable, problem, "rfactor", sch.get_loops("C")[0], 0)
    inner = Schedule(program)
    inner.split(inner.get_loops("C")[0], [2, 2])
    refused(inner, NotFactorable, "iterations of loop i share a cell of C", "rfactor", inner.get_loops("C")[1], 0)


def test_rows_with_cells_of_their_own_inside_of_the_reduction():
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((3, 4, 4), "int32"), C: T.Buffer((12,), "int32")):
    for k, i, j in T.grid(4, 3, 4):
        with T.block("C"):
            v, w, r = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[v * 4 + w] = 0
            C[v * 4 + w] = C[v * 4 + w] + A[v, w, r]
""")
    sch = Schedule(program)
    sch.rfactor(sch.get_loops("C")[0], 0)
    assert_same_numbers(program, sch.mod["main"])


def test_a_guard_that_keeps_another_axis_inside_its_domain_may_not_move():
    """The guard never holds, so v1 never is 1, which is outside of its domain; the partial results have no guard."""

    @T.prim_func
    def never(A: T.Buffer((6, 6), "int32"), B: T.Buffer((1,), "int32")):
        for i in range(1):
            for j in T.serial(1, 2):
                with T.block("sum"):
                    v0 = T.axis.reduce(6, i + 1)
                    v1 = T.axis.reduce(1, j)
                    T.where(i < 0 and j >= 1)
                    T.reads(A[v0, v1])
                    T.writes(B[0])
                    with T.init():
                        B[0] = 0
                    B[0] = B[0] + A[v0, v1]

    sch = tir.Schedule(never)
    with pytest.raises(NotFactorable, match="a guard on loop i keeps axis v1 inside its domain"):
        sch.rfactor(sch.get_loops("sum")[0], 0)
