"""rules/injective.py: element-wise nests of every kind keep their bits, and get the loops that the model promises."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir, topi
from loopwright.ir import For, ForKind, post_order_visit
from loopwright.runtime.thread_pool import threads
from loopwright.transform import lower
from tests.autosched.same_results import check_same_bits, function, numbers, planned

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=4"
NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=4"


def added(*shape, dtype="float32"):
    A, B = te.placeholder(shape, dtype, name="A"), te.placeholder(shape, dtype, name="B")
    return function(A, B, te.compute(shape, lambda *i: A(*i) + B(*i), name="C"))


def kinds(mod):
    found = []
    post_order_visit(mod["main"].body, lambda node: found.append(node.kind) if isinstance(node, For) else None)
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("length", [0, 1, 3, 15, 16, 17, 63, 64, 65, 127, 1000, 1023, 100_003])
def test_lengths(length):
    arrays = [numbers(length, seed=seed) for seed in range(3)]
    check_same_bits(added(length), arrays)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("shape", [(33, 65), (5, 7, 1, 11)])
def test_types_and_ranks(dtype, shape):
    check_same_bits(added(*shape, dtype=dtype), [numbers(*shape, dtype=dtype, seed=seed) for seed in range(3)])


def test_bfloat16():
    A = te.placeholder((33, 65), name="A")
    S = te.compute((33, 65), lambda i, j: A[i, j].astype("bfloat16"), name="S")
    doubled = te.compute((33, 65), lambda i, j: (S[i, j] + S[i, j]).astype("float32"), name="C")
    check_same_bits(function(A, doubled), [numbers(33, 65), numbers(33, 65)])


def test_rows_of_three_are_one_run():
    plan = check_same_bits(added(1000, 3), [numbers(1000, 3, seed=seed) for seed in range(3)])
    assert "v_i0, v_i1 fused into one loop: every load and store is contiguous across them" in plan.explain()
    lowered = lower(planned(added(1000, 3), AVX512).mod, AVX512)["main"].script()
    # 46 rounds of 64, 3 whole vectors, and a part of one: nothing runs element by element.
    assert "range(T.int64(46))" in lowered and "T.unroll(T.int64(3))" in lowered and "//" not in lowered
    assert "C_1[T.int64(2992):T.int64(3000)]" in lowered


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", [AVX512, NEON])
@pytest.mark.parametrize("shape", [(3, 5, 7, 7), (4, 6, 3), (2, 3, 4, 5, 6), (5, 14, 30), (6, 70, 12, 1), (7, 31)])
def test_axes_of_any_length_are_one_walk(shape, target):
    check_same_bits(added(*shape), [numbers(*shape, seed=seed) for seed in range(3)])
    lowered = lower(planned(added(*shape), target).mod, target)["main"].script()
    assert "//" not in lowered and "%" not in lowered


@pytest.mark.parametrize("shape", [(4, 6, 7), (9, 1, 12, 3)])
def test_a_reshape_is_part_of_the_walk(shape):
    count = int(np.prod(shape))
    A, B = te.placeholder(shape, name="A"), te.placeholder((count,), name="B")
    other = te.placeholder((count // shape[-1] // 2, 2 * shape[-1]), name="D")
    reshaped, again = topi.reshape(B, shape), topi.reshape(other, shape)
    func = function(A, B, other, te.compute(shape, lambda *i: A(*i) + reshaped(*i) * again(*i), name="C"))
    arrays = [numbers(*shape), numbers(count, seed=1), numbers(*map(int, other.shape), seed=2), numbers(*shape, seed=3)]
    plan = check_same_bits(func, arrays)
    assert "fused into one loop: every load and store is contiguous" in plan.explain()
    lowered = lower(planned(func, NEON).mod, NEON)["main"].script()
    assert "//" not in lowered and "%" not in lowered


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("length", [1, 15, 16, 17, 100])
def test_a_narrower_result_fills_its_registers(dtype, length):
    A, B = te.placeholder((3, length), dtype, name="A"), te.placeholder((3, length), dtype, name="B")
    func = function(A, B, te.compute((3, length), lambda i, j: A[i, j] > B[i, j], name="C"))
    given = [numbers(3, length, dtype=dtype, seed=seed) for seed in range(2)]
    check_same_bits(func, [*given, np.zeros((3, length), "bool")])
    lowered = lower(planned(func, NEON).mod, NEON)["main"].script()
    assert length < 16 or ":16]" in lowered or "* T.int64(16)" in lowered or "T.int64(16)]" in lowered


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize(("count", "lanes"), [(10_000, 16), (2_000_003, 8)])
def test_a_wide_result_that_streams_to_memory_gets_one_line_at_once(dtype, count, lanes):
    A = te.placeholder((count,), "uint8", name="A")
    plan = planned(function(A, te.compute((count,), lambda i: A[i].astype(dtype), name="C")), NEON)
    assert f"T.vectorized({lanes})" in plan.mod["main"].script()


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_choice_by_data_is_a_vector(dtype):
    shape = (5, 7, 6)
    M, A, B = (te.placeholder(shape, kind, name=name) for name, kind in zip("MAB", ("bool", dtype, dtype), strict=True))
    func = function(M, A, B, te.compute(shape, lambda *i: te.if_then_else(M(*i), A(*i), B(*i)), name="C"))
    mask = numbers(*shape) > 0.5
    check_same_bits(func, [mask, *[numbers(*shape, dtype=dtype, seed=seed) for seed in range(3)]])
    assert "T.Select" in lower(planned(func, NEON).mod, NEON)["main"].script()


def test_small_rows_that_start_anew_are_vectors_also_of_bytes():
    A, B = te.placeholder((4, 20, 6), "uint8", name="A"), te.placeholder((4, 1, 6), "uint8", name="B")
    func = function(A, B, te.compute((4, 20, 6), lambda i, j, k: A[i, j, k] * B[i, 0, k], name="C"))
    arrays = [numbers(4, 20, 6, dtype="uint8"), numbers(4, 1, 6, dtype="uint8"), numbers(4, 20, 6, dtype="uint8")]
    plan = check_same_bits(func, arrays)
    assert "rows of 6 elements fused into one loop" in plan.explain() and "LLVM" not in plan.explain()


def test_a_short_row_starts_anew_along_several_axes():
    A, B = te.placeholder((3, 5, 7, 6), name="A"), te.placeholder((6,), name="B")
    func = function(A, B, te.compute((3, 5, 7, 6), lambda i, j, k, l: A[i, j, k, l] / B[l], name="C"))
    plan = check_same_bits(func, [numbers(3, 5, 7, 6), numbers(6) + 1, numbers(3, 5, 7, 6)])
    assert "rows of 6 elements fused into one loop" in plan.explain()


def test_a_short_row_that_starts_anew_stands_in_the_same_lanes():
    A, b = te.placeholder((1000, 3), name="A"), te.placeholder((3,), name="b")
    func = function(A, b, te.compute((1000, 3), lambda i, j: A[i, j] * b[j], name="C"))
    plan = check_same_bits(func, [numbers(1000, 3), numbers(3), numbers(1000, 3)])
    assert "rows of 3 elements fused into one loop" in plan.explain()
    assert (
        "3 vectors at once: then the lanes of each broadcast operand repeat"
        in planned(func, AVX512).explain()
    )


@pytest.mark.parametrize("shape", [(1000, 3), (100, 20), (64, 1000), (17, 1023)])
def test_broadcasts(shape):
    A, b, c = te.placeholder(shape, name="A"), te.placeholder(shape[1:], name="b"), te.placeholder(shape[:1], name="c")
    func = function(A, b, c, te.compute(shape, lambda i, j: A[i, j] * b[j] + c[i], name="C"))
    check_same_bits(func, [numbers(*shape), numbers(shape[1]), numbers(shape[0]), numbers(*shape)])


@pytest.mark.parametrize("shape", [(10, 12), (62, 224), (3, 1500)])
def test_pads_are_cut_where_the_condition_changes(shape):
    high, wide = shape
    A = te.placeholder(shape, name="A")

    def padded(i, j):
        inside = tir.all(i >= 1, i < high + 1, j >= 1, j < wide + 1)
        return tir.if_then_else(inside, A[i - 1, j - 1], 0.0)

    func = function(A, te.compute((high + 2, wide + 2), padded, name="P"))
    plan = check_same_bits(func, [numbers(*shape), numbers(high + 2, wide + 2)])
    assert "if_then_else" not in lower(plan.mod)["main"].script()


@pytest.mark.parametrize("rows, columns", [(5, 3), (30, 500)])
def test_concatenation(rows, columns):
    A, B, D = (te.placeholder(shape, name=name) for shape, name in (
        ((rows, columns), "A"), ((7, columns), "B"), ((rows, 9), "D")))  # fmt: skip
    down = te.compute((rows + 7, columns), lambda i, j: tir.if_then_else(i < rows, A[i, j], B[i - rows, j]), name="K")
    plan = check_same_bits(
        function(A, B, down), [numbers(rows, columns), numbers(7, columns), numbers(rows + 7, columns)]
    )
    assert "if_then_else" not in lower(plan.mod)["main"].script()
    side = te.compute(
        (rows, columns + 9), lambda i, j: tir.if_then_else(j < columns, A[i, j], D[i, j - columns]), name="K"
    )
    plan = check_same_bits(function(A, D, side), [numbers(rows, columns), numbers(rows, 9), numbers(rows, columns + 9)])
    assert "if_then_else" not in lower(plan.mod)["main"].script()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_many_parts_are_copied_one_after_the_other(axis, dtype):
    sizes = [1 + 5 * k % 7 for k in range(30)]
    shapes = [tuple(size if k == axis else extent for k, extent in enumerate((3, 4, 17))) for size in sizes]
    parts = [te.placeholder(shape, dtype, name=f"x{k}") for k, shape in enumerate(shapes)]
    joined = topi.concatenate(parts, axis)
    arrays = [numbers(*shape, dtype=dtype, seed=k) for k, shape in enumerate(shapes)]
    plan = check_same_bits(function(*parts, joined), [*arrays, numbers(*[int(n) for n in joined.shape], dtype=dtype)])
    assert "if_then_else" not in lower(plan.mod)["main"].script()
    assert "prefetched" not in plan.explain()


def test_long_rows_of_many_parts_have_no_guards_inside():
    parts = [te.placeholder((3, 103), "uint8", name=f"x{k}") for k in range(12)]
    arrays = [*[numbers(3, 103, dtype="uint8", seed=k) for k in range(12)], numbers(3, 12, 103, dtype="uint8")]
    plan = check_same_bits(function(*parts, topi.stack(parts, 1)), arrays, "llvm -num-cores=1")
    assert "T.min" not in lower(plan.mod)["main"].script()


def test_computed_parts_are_computed_where_they_go():
    parts = [te.placeholder((5, 9), name=f"x{k}") for k in range(7)]
    joined = topi.concatenate([topi.exp(x) for x in parts], 0)
    arrays = [*[numbers(5, 9, seed=k) for k in range(7)], numbers(35, 9)]
    plan = check_same_bits(function(*parts, joined), arrays)
    assert "if_then_else" not in lower(plan.mod)["main"].script()


def test_gathers_reshapes_and_others():
    A, I = te.placeholder((60, 50), name="A"), te.placeholder((40,), "int32", name="I")
    rows = np.random.default_rng(1).integers(0, 60, 40).astype("int32")
    gathered = te.compute((40, 50), lambda i, j: A[I[i], j], name="C")
    check_same_bits(function(A, I, gathered), [numbers(60, 50), rows, numbers(40, 50)])
    reshaped = te.compute((20, 150), lambda i, j: A[(i * 150 + j) // 50, (i * 150 + j) % 50], name="C")
    plan = check_same_bits(function(A, reshaped), [numbers(60, 50), numbers(20, 150)])
    assert "vectors of" in plan.explain() and "//" not in lower(plan.mod)["main"].script()
    V = te.placeholder((1001,), name="V")
    for name, size, value in (
        ("reversed", 1001, lambda i: V[1000 - i]),
        ("stencil", 999, lambda i: V[i] + V[i + 1] * 2.0 + V[i + 2]),
        ("chosen", 1001, lambda i: tir.Select(V[i] > 0.0, V[i], 0.1 * V[i])),
        ("cast", 1001, lambda i: V[i].astype("float64")),
        ("narrowed", 1001, lambda i: V[i].astype("int8")),
        *[(f"every {step}", 1000 // step, partial(lambda step, i: V[i * step], step)) for step in (2, 3, 4, 5)],
        *[(f.__name__, 1001, partial(lambda f, i: f(V[i]), f)) for f in (te.exp, te.tanh, te.erf, te.sigmoid, te.log)],
    ):
        out = te.compute((size,), value, name="C")
        dtype = str(out.dtype)
        assert check_same_bits(function(V, out), [numbers(1001), numbers(size, dtype=dtype)]), name
    counted = te.compute((33, 20), lambda i, j: (i * 20 + j).astype("float32"), name="C")
    check_same_bits(function(counted), [numbers(33, 20)])


def test_a_store_that_crosses_its_loops_is_reordered():
    from loopwright.script import from_source

    func = from_source("""
@T.prim_func
def main(A: T.Buffer((40, 30)), C: T.Buffer((40, 30))):
    for j, i in T.grid(30, 40):
        with T.block("C"):
            vj, vi = T.axis.remap("SS", [j, i])
            C[vi, vj] = A[vi, vj] + 1.0
""")
    plan = check_same_bits(func, [numbers(40, 30), numbers(40, 30)])
    assert "loops reordered: vj is contiguous in the result" in plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows, columns", [(0, 5), (1, 1), (3, 1000), (1000, 3), (70, 65)])
def test_symbolic_sizes(rows, columns):
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((n, m), name="A"), te.placeholder((n, m), name="B")
    func = function(A, B, te.compute((n, m), lambda i, j: A[i, j] + B[i, j], name="C"))
    plan = check_same_bits(func, [numbers(rows, columns, seed=seed) for seed in range(3)])
    assert "iterations: the shape is dynamic" in plan.explain()
    b = te.placeholder((m,), name="b")
    func = function(A, b, te.compute((n, m), lambda i, j: A[i, j] + b[j], name="C"))
    check_same_bits(func, [numbers(rows, columns), numbers(columns), numbers(rows, columns)])


@pytest.mark.parametrize("size", [1, 40])
def test_symbolic_pads(size):
    n = te.var("n")
    A = te.placeholder((n,), name="A")

    def padded(i):
        return tir.if_then_else(tir.all(i >= 2, i < n + 2), A[i - 2], 1.0)

    func = function(A, te.compute((n + 4,), padded, name="P"))
    plan = check_same_bits(func, [numbers(size), numbers(size + 4)])
    assert "a row stays one loop: a condition holds for part of the row" in plan.explain()


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_symbolic_rows_of_three_are_one_run(rows):
    n = te.var("n")
    A = te.placeholder((n, 3), name="A")
    func = function(A, te.compute((n, 3), lambda i, j: A[i, j] * 2.0, name="C"))
    assert "v_i, v_j fused into one loop" in check_same_bits(func, [numbers(rows, 3), numbers(rows, 3)]).explain()


def test_threads_where_there_is_work_for_them():
    assert "one thread: " in planned(added(100), AVX512).explain()
    plan = planned(added(1 << 22), AVX512)
    assert "64 parallel tasks" in plan.explain() and ForKind.PARALLEL in kinds(plan.mod)
    rows = te.placeholder((4096, 1000), name="A")
    bias = te.placeholder((1000,), name="b")
    plan = planned(function(rows, bias, te.compute((4096, 1000), lambda i, j: rows[i, j] + bias[j], name="C")), AVX512)
    assert "64 parallel tasks" in plan.explain()


def test_rows_that_start_anywhere_in_a_cache_line():
    A, b = te.placeholder((64, 1001), name="A"), te.placeholder((1001,), name="b")
    func = function(A, b, te.compute((64, 1001), lambda i, j: A[i, j] + b[j], name="C"))
    told = planned(func, AVX512).explain()
    assert "half a cache line at a time: rows are not aligned: whole lines would straddle two" in told
    assert "vectors of 8" in told


def test_a_machine_with_short_vectors():
    assert (
        "vectors of 4: v_i0 is contiguous; a register holds 4 of float32"
        in planned(added(1000), NEON).explain()
    )


def test_any_number_of_threads_gives_the_same_bits():
    A = te.placeholder((300_007,), name="A")
    module = lw.build(function(A, te.compute((300_007,), lambda i: te.exp(A[i]), name="C")), autosched=True)
    given, results = numbers(300_007), []
    for count in (1, 2):
        out = np.zeros(300_007, "float32")
        with threads(count):
            module(given, out)
        results.append(out.tobytes())
    assert results[0] == results[1]


def test_a_cut_is_promised_only_where_it_is_made():
    def guarded(reach, size=64):
        source = te.placeholder((size,), name="A")
        inside = lambda i: te.if_then_else(te.all(i >= 0, i < size), source[i], 0.0)
        taps = range(-reach, reach + 1)
        total = te.compute((size,), lambda i: sum((inside(i + a) for a in taps), 0.0), name="B")
        return te.create_prim_func([source, total])

    assert "the loop is partitioned there, and no iteration evaluates it" in planned(guarded(2), AVX512).explain()
    huge = planned(guarded(400), AVX512).explain()
    assert "too many to partition the loop" in huge
    assert "roofline" not in huge
