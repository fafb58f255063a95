"""rfactor: a loop of a reduction becomes data, with partial results that a second reduction combines."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.evaluator import evaluate, evaluate_terms
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.schedule.combiners import MalformedReduction, NoReduction, UnknownCombiner
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.primitives.rfactor import NotFactorable
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
                vi, vk = T.axis.remap("SR", [i, k_1])
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


@pytest.mark.parametrize("kind", ["loose", "mirrored", "strict", "least"])
def test_argmax(kind):
    before = _argmax(kind)
    sch = Schedule(before)
    k_0, k_1 = sch.split(sch.get_loops("best")[1], [None, 5])
    sch.rfactor(k_1, 1)
    random = np.random.default_rng(0)
    for _ in range(4):
        x = np.stack([random.permutation(12) for _ in range(3)]).astype("int32")  # no two are equal
        index, value = np.zeros(3, "int32"), np.zeros(3, "int32")
        loopwright.build(sch.mod)(x, index, value)
        best = x.argmin(1) if kind == "least" else x.argmax(1)
        np.testing.assert_array_equal(index, best)
        np.testing.assert_array_equal(value, x[range(3), best])
    check_replay(sch, before)


def test_a_strict_argmax_keeps_the_first_of_equal_values():
    sch = Schedule(_argmax("strict"))
    _, k_1 = sch.split(sch.get_loops("best")[1], [None, 4])
    sch.rfactor(k_1, 0)
    x = np.random.default_rng(0).integers(0, 3, (3, 12)).astype("int32")
    index, value = np.zeros(3, "int32"), np.zeros(3, "int32")
    evaluate(sch.mod["main"], x, index, value)
    np.testing.assert_array_equal(index, x.argmax(1))


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
    sch.rfactor(k_0, 0)  # every repetition starts anew
    check_numbers(sch, repeated)


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
