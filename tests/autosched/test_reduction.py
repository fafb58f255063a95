"""Reductions: over any axes, of any combiner and type, right within a float64 bound, the same for any cores."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, tir
from loopwright.autosched import Machine, Plan
from loopwright.autosched.column_reduction import chunk_of, strip_of
from loopwright.autosched.lanes import lane_widths, vector_width
from loopwright.autosched.program import Program
from loopwright.autosched.rules.reduction import Reduction
from loopwright.ir import PrimFunc, assert_structural_equal
from loopwright.runtime import thread_pool
from loopwright.schedule import Schedule, Trace
from loopwright.script import tir as T
from tests.autosched.same_results import parallel_extents

ONE, TWO, MANY = "llvm -num-cores=1", "llvm -num-cores=2", "llvm -num-cores=16"
WIDE_MANY = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=16"

product = te.comm_reducer(lambda x, y: x * y, lambda dtype: tir.const(1, dtype), name="product")
either = te.comm_reducer(lambda x, y: tir.any(x, y), lambda dtype: tir.const(False, dtype), name="either")


def reduce(
    shape: tuple[Any, ...],
    axes: tuple[int, ...],
    combine: Callable[..., Any] = te.sum,
    dtype: str = "float32",
    value: Callable[[Any], Any] = lambda x: x,
) -> PrimFunc:
    a = te.placeholder(shape, dtype, name="A")
    reduced = {axis: te.reduce_axis((0, shape[axis]), f"k{axis}") for axis in axes}

    def cell(*kept: Any) -> Any:
        rest = iter(kept)
        index = tuple([reduced[axis] if axis in reduced else next(rest) for axis in range(len(shape))])
        return combine(value(a[index]), axis=list(reduced.values()))

    result = te.compute([size for axis, size in enumerate(shape) if axis not in axes], cell, name="C")
    return te.create_prim_func([a, result])


def values(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) > 0.9
    if dtype.startswith(("int", "uint")):
        return random.integers(0, 5, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def result_of(func: PrimFunc | Plan, *inputs: np.ndarray, shape: tuple[int, ...], dtype: str, target: str = TWO) -> Any:
    out = np.full(shape, 1, dtype)
    plan = func if isinstance(func, Plan) else autosched.apply(func, target)
    lw.build(plan.mod, target=target)(*inputs, out)
    return out


def kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([size for axis, size in enumerate(shape) if axis not in axes])


def check_sum(shape: tuple[int, ...], axes: tuple[int, ...], target: str = TWO) -> None:
    a = values(*shape)
    got = result_of(reduce(shape, axes), a, shape=kept(shape, axes), dtype="float32", target=target)
    wide = a.astype(np.float64)
    count = int(np.prod([shape[axis] for axis in axes]))
    assert (np.abs(got - wide.sum(axes)) <= count * 2.0**-24 * np.abs(wide).sum(axes)).all()


EVERY = [
    (axes, rank) for rank in (1, 2, 3) for n in range(1, rank + 1) for axes in itertools.combinations(range(rank), n)
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("axes", "rank"), EVERY)
@pytest.mark.parametrize("sizes", [(9, 33, 17), (1, 4, 65)])
def test_every_set_of_axes(axes: tuple[int, ...], rank: int, sizes: tuple[int, ...]) -> None:
    check_sum(sizes[-rank:], axes)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 1), (1,)),
        ((1, 3), (0,)),
        ((7, 15), (1,)),
        ((2, 16), (1,)),
        ((2, 1031), (1,)),
        ((130, 3), (0,)),
        ((5, 3), (1,)),
    ],
)
def test_edges(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_sum(shape, axes)


@pytest.mark.parametrize("shape", [(23, 20, 2, 11, 31), (7, 67, 3, 5, 40)])
def test_runs_that_lie_apart_are_divided_as_a_whole(shape: tuple[int, ...]) -> None:
    axes = (0, 1, 3, 4)
    assert f"× {shape[3] * shape[4]}: " in autosched.apply(reduce(shape, axes), ONE).explain()
    for target in (ONE, TWO):
        check_sum(shape, axes, target)
    a = values(*shape, dtype="int32")
    got = result_of(reduce(shape, axes, te.max, "int32"), a, shape=(shape[2],), dtype="int32")
    np.testing.assert_array_equal(got, a.max(axes))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((100003,), (0,)), ((3, 70001), (1,)), ((301, 300), (0, 1)), ((9001, 24), (0,)), ((40, 5, 601), (0, 2))],
)
def test_divided_among_cores(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_sum(shape, axes, MANY)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("shape", "axes"), [((100003,), (0,)), ((3, 70001), (1,)), ((9001, 24), (0,))])
def test_the_same_bits_for_any_number_of_cores_and_threads(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    a = values(*shape)
    results = set()
    for target, threads in [(ONE, 1), (MANY, 1), (MANY, 3)]:
        with thread_pool.threads(threads):
            results.add(
                result_of(reduce(shape, axes), a, shape=kept(shape, axes), dtype="float32", target=target).tobytes()
            )
    assert len(results) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", [(1000, 1000), (513, 700), (1025, 401), (200, 2000), (64, 20001)])
def test_columns_are_the_same_bits_for_any_number_of_cores_and_threads(shape: tuple[int, int]) -> None:
    a = values(*shape)
    plans = {target: autosched.apply(reduce(shape, (0,)), target) for target in (ONE, TWO, MANY)}
    results = set()
    for target, threads in [(ONE, 1), (TWO, 2), (MANY, 1), (MANY, 2), (MANY, 3), (MANY, 16)]:
        with thread_pool.threads(threads):
            results.add(result_of(plans[target], a, shape=shape[1:], dtype="float32", target=target).tobytes())
    assert len(results) == 1


def test_columns_keep_all_cores_busy() -> None:
    def pieces(*shape: int, combine: Callable[..., Any] = te.sum, axes: tuple[int, ...] = (0,)) -> list[int]:
        return parallel_extents(autosched.apply(reduce(shape, axes, combine), WIDE_MANY))

    assert pieces(1000, 1000) == [16]  # chunks of rows; few enough for one core to combine
    assert pieces(4096, 4096) == [32, 4]  # more chunks, which several cores combine
    assert pieces(64, 100000) == [32]  # strips of columns: two for each core
    assert pieces(8, 6000, 300, axes=(1,)) == [64]  # eight chunks of each of eight
    assert pieces(30, 30) == []
    odd = te.comm_reducer(lambda x, y: x * 0.5 + y, lambda dtype: tir.const(0, dtype), name="odd")
    assert pieces(1000, 1000, combine=odd) == [8]  # may not be divided: narrow strips are better than idle cores


def test_a_vector_times_a_matrix_keeps_all_cores_busy() -> None:
    x, b = te.placeholder((1, 1024), name="x"), te.placeholder((1024, 1024), name="B")
    k = te.reduce_axis((0, 1024), "k")
    c = te.compute((1, 1024), lambda i, j: te.sum(x[i, k] * b[k, j], axis=k), name="C")
    assert parallel_extents(autosched.apply(te.create_prim_func([x, b, c]), WIDE_MANY)) == [16]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint8", "int8"])
@pytest.mark.parametrize("axes", [(0,), (1,)])
def test_types(dtype: str, axes: tuple[int, ...]) -> None:
    a = values(30, 77, dtype=dtype)
    got = result_of(reduce(a.shape, axes, te.sum, dtype), a, shape=kept(a.shape, axes), dtype=dtype)
    exact = a.sum(axes, dtype=dtype)
    if dtype == "float64":
        assert (np.abs(got - exact) <= 200 * 2.0**-53 * np.abs(a).sum(axes)).all()
    else:
        assert (got == exact).all()


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_half_precision_rounds_each_addition(axes: tuple[int, ...]) -> None:
    a = np.abs(values(12, 50, dtype="float16"))
    got = result_of(reduce(a.shape, axes, te.sum, "float16"), a, shape=kept(a.shape, axes), dtype="float16")
    exact = a.astype(np.float64).sum(axes)
    count = int(np.prod([a.shape[axis] for axis in axes]))
    assert (np.abs(got - exact) <= 2 * count * 2.0**-11 * exact).all()


def test_sums_of_a_wider_type() -> None:
    a = values(40, 500, dtype="int8")
    func = reduce(a.shape, (1,), te.sum, "int8", lambda x: x.astype("int32"))
    assert (result_of(func, a, shape=(40,), dtype="int32") == a.sum(1, dtype="int32")).all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_combiners(axes: tuple[int, ...]) -> None:
    a = values(21, 70)
    a[3, 5] = np.nan
    shape = kept(a.shape, axes)
    assert np.array_equal(result_of(reduce(a.shape, axes, te.max), a, shape=shape, dtype="float32"), a.max(axes), True)
    assert np.array_equal(result_of(reduce(a.shape, axes, te.min), a, shape=shape, dtype="float32"), a.min(axes), True)
    near = (1 + 0.01 * values(21, 70, seed=1)).astype("float32")
    got = result_of(reduce(a.shape, axes, product), near, shape=shape, dtype="float32")
    exact = near.astype(np.float64).prod(axes)
    assert (np.abs(got - exact) <= 1600 * 2.0**-24 * np.abs(exact)).all()
    truth = values(21, 70, dtype="bool")
    got = result_of(reduce(a.shape, axes, either, "bool"), truth, shape=shape, dtype="bool")
    assert np.array_equal(got, truth.any(axes))


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (40, 333), (333, 40)])
def test_matrix_times_vector_and_vector_times_matrix(shape: tuple[int, int]) -> None:
    m, n = shape
    a = te.placeholder(shape, name="A")
    x, y = te.placeholder((n,), name="x"), te.placeholder((m,), name="y")
    k, r = te.reduce_axis((0, n), "k"), te.reduce_axis((0, m), "r")
    right = te.compute((m,), lambda i: te.sum(a[i, k] * x[k], axis=k), name="C")
    left = te.compute((n,), lambda j: te.sum(y[r] * a[r, j], axis=r), name="D")
    p, q, s = values(*shape), values(n, seed=1), values(m, seed=2)
    got = result_of(te.create_prim_func([a, x, right]), p, q, shape=(m,), dtype="float32")
    wide = p.astype(np.float64)
    assert (np.abs(got - wide @ q) <= (n + 1) * 2.0**-24 * (np.abs(wide) @ np.abs(q))).all()
    got = result_of(te.create_prim_func([a, y, left]), p, s, shape=(n,), dtype="float32")
    assert (np.abs(got - s @ wide) <= (m + 1) * 2.0**-24 * (np.abs(s) @ np.abs(wide))).all()


def argmax(m: int, n: int, axis: int, is_strict: bool, choose: Callable[..., Any] = tir.Select) -> PrimFunc:
    """Of equal values both name the first: a strict one whatever the order is, the other one as long as it is kept."""

    def combine(x: Any, y: Any) -> Any:
        if not is_strict:
            return choose(x[1] >= y[1], x[0], y[0]), choose(x[1] >= y[1], x[1], y[1])
        wins = tir.any(x[1] > y[1], tir.all(tir.isnan(x[1]), tir.Not(tir.isnan(y[1]))))
        ties = tir.any(x[1] == y[1], tir.all(tir.isnan(x[1]), tir.isnan(y[1])))
        return choose(tir.any(wins, tir.all(ties, x[0] < y[0])), x[0], y[0]), te.max(x[1], y[1])

    def unit(index: str, value: str) -> Any:
        return tir.const(2**31 - 1 if is_strict else -1, index), te.min_value(value)

    reducer = te.comm_reducer(combine, unit, name="argmax")
    a = te.placeholder((m, n), name="A")
    k = te.reduce_axis((0, (m, n)[axis]), "k")
    index, value = te.compute(
        ((m, n)[1 - axis],), lambda i: reducer((k, a[i, k] if axis else a[k, i]), axis=k), name="C"
    )
    return te.create_prim_func([a, index, value])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("shape", [(3, 5), (40, 300)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize("choose", [tir.Select, te.if_then_else])
def test_argmax(shape: tuple[int, int], axis: int, is_strict: bool, choose: Callable[..., Any]) -> None:
    a = np.random.default_rng(0).integers(0, 4, shape).astype("float32")
    if is_strict:
        a[2, 1], a[1, 3] = np.nan, np.nan
    index, value = np.zeros(shape[1 - axis], "int32"), np.zeros(shape[1 - axis], "float32")
    lw.build(argmax(*shape, axis, is_strict, choose), target=TWO, autosched=True)(a, index, value)
    assert np.array_equal(value, a.max(axis), equal_nan=True)
    assert np.array_equal(index, a.argmax(axis))


def test_an_argmax_that_keeps_the_first_goes_one_by_one() -> None:
    assert "in order: " in autosched.apply(argmax(40, 300, 1, False), TWO).explain()
    assert "in order: " not in autosched.apply(argmax(40, 300, 1, True), TWO).explain()


def test_sizes_known_at_run_time() -> None:
    m, n = te.var("m"), te.var("n")
    for axes in [(0,), (1,), (0, 1)]:
        made = lw.build(reduce((m, n), axes), target=TWO, autosched=True)
        for shape in [(1, 1), (37, 203)]:
            a = values(*shape)
            out = np.zeros(kept(shape, axes), "float32")
            made(a, out)
            wide = a.astype(np.float64)
            assert (np.abs(out - wide.sum(axes)) <= a.size * 2.0**-24 * np.abs(wide).sum(axes)).all()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_nothing_to_add(shape: tuple[int, int]) -> None:
    for axes in [(0,), (1,), (0, 1)]:
        func = reduce(shape, axes)
        got = result_of(func, np.zeros(shape, "float32"), shape=kept(shape, axes), dtype="float32")
        assert not got.any()


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((64, 1000), (1,)), ((1000, 64), (0,)), ((100000,), (0,)), ((90000, 16), (0,)), ((8, 9, 300), (0, 2))],
)
def test_the_trace_is_proved_and_replays(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    func = reduce(shape, axes)
    plan = autosched.apply(func, MANY)
    assert plan.schedule.is_proved
    again = Schedule(func)
    Trace.apply_json_to_schedule(plan.trace.as_json(), again)
    assert_structural_equal(again.mod, plan.mod)


def test_the_reasons() -> None:
    wide = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=2"
    said = autosched.apply(reduce((4096, 4096), (1,)), wide).explain()
    assert "128 partial results, 8 vectors of up to 16: independent operations hide" in said
    assert "rows in parallel: the work keeps 2 cores busy" in said
    assert "limit: memory" in said
    said = autosched.apply(reduce((4096, 4096), (0,)), wide).explain()
    assert "1 step of k0 × 64 of i0 at a time: rows stream from memory" in said
    cached = autosched.apply(reduce((256, 512), (0,)), wide).explain()
    assert "4 steps of k0 × 64 of i0 at a time: an accumulator is loaded and stored once for 4 additions\n" in cached
    said = autosched.apply(reduce((4096, 4096), (0, 1)), wide).explain()
    assert "1 result cannot keep 2 cores busy" in said
    small = autosched.apply(reduce((8, 8), (1,)), wide).explain()
    assert "in parallel" not in small
    assert "one thread: " in small
    assert "1 result could not be parallelised" in autosched.apply(reduce((4096, 4096), (0, 1)), ONE).explain()


def test_the_reasons_for_sizes_that_are_open() -> None:
    def columns(rows: int) -> str:
        n, k = te.size_var("n"), te.reduce_axis((0, rows), name="k")
        source = te.placeholder((rows, n), name="A")
        total = te.compute((n,), lambda i: te.sum(source[k, i], axis=k), name="C")
        return autosched.apply([source, total], MANY).explain()

    assert "in parallel: a strip keeps a core busy, and there may be several" in columns(64)
    assert "one thread: " in columns(2)
    assert "for the planned size" in columns(2)


def test_a_reduction_in_an_order_of_its_own() -> None:
    @T.prim_func
    def func(A: T.Buffer((40, 50)), C: T.Buffer(40)):
        for k, i in T.grid(50, 40):
            with T.block("C"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    a = values(40, 50)
    got = result_of(func, a, shape=(40,), dtype="float32")
    assert (np.abs(got - a.astype(np.float64).sum(1)) <= 50 * 2.0**-24 * np.abs(a).sum(1)).all()


def test_a_combiner_that_is_not_known_is_left_in_order() -> None:
    odd = te.comm_reducer(lambda x, y: x * 0.5 + y, lambda dtype: tir.const(0, dtype), name="odd")
    a = values(30, 40)
    plan = autosched.apply(reduce(a.shape, (1,), odd), TWO)
    assert plan.schedule.is_proved
    assert "in order: its operation is not known to be associative and commutative" in plan.explain()
    got = result_of(plan, a, shape=(30,), dtype="float32")
    exact = (a.astype(np.float64) * 0.5 ** np.arange(39, -1, -1)).sum(1)
    assert (np.abs(got - exact) <= 50 * 2.0**-24 * np.abs(a).sum(1)).all()


def test_no_axis_along_memory() -> None:
    a = te.placeholder((30, 100), name="A")
    k = te.reduce_axis((0, 50), "k")
    func = te.create_prim_func([a, te.compute((15,), lambda i: te.sum(a[2 * i, 2 * k], axis=k), name="C")])
    x = values(30, 100)
    got = result_of(func, x, shape=(15,), dtype="float32")
    assert (np.abs(got - x[::2, ::2].astype(np.float64).sum(1)) <= 50 * 2.0**-24 * np.abs(x).sum(1)[::2]).all()


def test_what_is_not_a_reduction_is_not_taken() -> None:
    a = te.placeholder((8,), name="A")
    func = te.create_prim_func([a, te.compute((8,), lambda i: a[i] + 1.0, name="B")])
    program = Program(Schedule(func), "main")
    assert Reduction().take(program.entries, program) == 0


def test_argmax_of_rows_has_no_branches_in_its_loops() -> None:
    """A choice between partial results that lie in registers is made in vectors, however it is written."""
    text = lw.build(argmax(50, 1000, 1, True, te.if_then_else), target=WIDE_MANY, autosched=True).get_source("ll")
    assert "<16 x i1>" in text
    assert text.count("extractelement") < 32


def test_chunks_and_strips() -> None:
    assert [chunk_of(rows, 16) for rows in (63, 64, 200, 1000, 2047, 4096)] == [None, 32, 52, 64, 128, 128]
    assert chunk_of(1000, 3) == 252
    assert strip_of(1000, 16, 16, 512, 6144) is None
    assert strip_of(100000, 1, 16, 512, 6144) == 3125
    assert strip_of(100000, 1, 1, 512, 6144) == 5883
    assert strip_of(None, 1, 16, 512, 6144) == 6144


def test_widths() -> None:
    assert lane_widths(1000, 16, 8) == [128, 16, 4]
    assert lane_widths(None, 4, 8) == [16, 4]
    assert lane_widths(40, 16, 8) == [32, 16, 8, 4, 2]
    assert lane_widths(10, 16, 8) == [8, 4, 2]
    assert lane_widths(4, 16, 8) == []
    assert [vector_width(count, 16, 4) for count in (1000, 40, 16, 3, 1, None)] == [64, 32, 16, 3, 1, 64]
    assert Machine.of(ONE).cores == 1


WIDE = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


@pytest.mark.parametrize("target", [ONE, MANY])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((10, 572, 2), (1,)),
        ((333, 3), (0,)),
        ((3, 129, 5), (1,)),
        ((4, 5, 130, 7), (1, 2)),
        ((6, 2, 3, 200), (3, 0)),
        ((1, 257, 2, 3), (1,)),
        ((3, 1000, 11), (1,)),
    ],
)
def test_narrow_columns(shape: tuple[int, ...], axes: tuple[int, ...], target: str) -> None:
    check_sum(shape, axes, target)


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        ((10, 572, 2), 16),  # two vectors of 16
        ((10, 64, 2), 16),
        ((10, 63, 2), 8),
        ((10, 31, 2), None),  # too few rows
        ((10, 300, 3), 16),
        ((10, 300, 12), 4),
        ((10, 300, 1), None),
        ((10, 300, 16), None),  # a row is a vector
    ],
)
def test_rows_that_a_vector_of_narrow_columns_holds(shape: tuple[int, int, int], rows: int | None) -> None:
    said = autosched.apply(reduce(shape, (1,)), WIDE).explain()
    assert (f"{rows} steps of k1 × {shape[2]} at a time: a row is too short" in said) == (rows is not None)
    assert ("rows that follow each other" in said) == (rows is not None)


def test_narrow_columns_that_lie_apart_are_no_run() -> None:
    a, k = te.placeholder((4, 300, 8), name="A"), te.reduce_axis((0, 300), name="k")
    part = te.compute((4, 2), lambda i, j: te.sum(a[i, k, j], axis=k), name="C")
    assert "follow each other" not in autosched.apply([a, part], WIDE).explain()


def test_narrow_columns_keep_their_partial_results_in_the_loop_of_their_result() -> None:
    text = str(autosched.apply(reduce((10, 572, 2), (1,)), WIDE).mod)
    assert text.index("for i0") < text.index("C_rf = T.decl_buffer") < text.index('T.block("C_rf")')
    assert text.index('T.block("C_rf")') < text.index('T.block("C")')


@pytest.mark.one_in(2)
@pytest.mark.parametrize("op", ["argmin", "argmax"])
@pytest.mark.parametrize("shape", [(10, 572, 2), (3, 129, 5), (1, 1000, 11), (7, 70, 3)])
@pytest.mark.parametrize("kind", ["float32", "float64", "int32"])
def test_the_first_of_equal_extremes_in_narrow_columns(op: str, shape: tuple[int, int, int], kind: str) -> None:
    a = np.random.default_rng(1).integers(0, 30, shape).astype(kind)
    if kind != "int32":
        a[0, 40:42, 0] = np.nan
    data = te.placeholder(shape, kind, name="A")
    best = getattr(lw.topi, op)(data, 1)
    plan = autosched.apply([data, best], ONE)
    out = np.full((shape[0], shape[2]), -1, "int32")
    lw.build(plan.mod)(a, out)
    np.testing.assert_array_equal(out, getattr(np, op)(a, axis=1))


@pytest.mark.parametrize("shape", [(100, 333, 3), (400, 1000, 2)])
def test_narrow_columns_are_the_same_bits_for_any_number_of_cores(shape: tuple[int, int, int]) -> None:
    a = values(*shape)
    func = reduce(shape, (1,))
    results = [result_of(func, a, shape=kept(shape, (1,)), dtype="float32", target=each) for each in (ONE, TWO, MANY)]
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    assert parallel_extents(autosched.apply(reduce((400, 1000, 2), (1,)), WIDE_MANY))
