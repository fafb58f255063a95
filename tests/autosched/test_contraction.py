"""Products: right within a float64 bound at every edge, proved, replayed, and with a reason for every choice."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched import Machine
from loopwright.autosched.program import Program
from loopwright.autosched.rules.contraction import Contraction
from loopwright.autosched.rules.contraction.product import product_of
from loopwright.autosched.rules.contraction.streamed import streamed_tiles
from loopwright.autosched.rules.contraction.tiles import Size, choose_tiles
from loopwright.ir import PrimFunc, assert_structural_equal
from loopwright.schedule import Schedule, Trace

ONE, TWO = "llvm -num-cores=1", "llvm -num-cores=2"


def matmul(
    m: int, k: int, n: int, dtype: str = "float32", out: str | None = None, flips: str = "", batch: int = 0
) -> PrimFunc:
    """C = A · B; `flips` names operands that are stored transposed."""
    lead = (batch,) if batch else ()
    a = te.placeholder((*lead, k, m) if "A" in flips else (*lead, m, k), dtype, name="A")
    b = te.placeholder((*lead, n, k) if "B" in flips else (*lead, k, n), dtype, name="B")
    r = te.reduce_axis((0, k), "k")

    def cell(*axes: te.Var) -> te.Tensor:
        *h, i, j = axes
        left = a[(*h, r, i)] if "A" in flips else a[(*h, i, r)]
        right = b[(*h, j, r)] if "B" in flips else b[(*h, r, j)]
        if out is not None:
            left, right = left.astype(out), right.astype(out)
        return te.sum(left * right, axis=r)

    return te.create_prim_func([a, b, te.compute((*lead, m, n), cell, name="C")])


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype.startswith(("int", "uint")):
        return random.integers(0 if dtype[0] == "u" else -100, 100, shape).astype(dtype)
    return (random.random(shape) - 0.5).astype(dtype)


def product(func: PrimFunc, target: str, flips: str = "") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What was computed, the exact result, and the largest error that rounding explains."""
    shapes = [[int(size) for size in buffer.shape] for buffer in func.buffer_map.values()]
    dtypes = [str(buffer.dtype) for buffer in func.buffer_map.values()]
    a, b = numbers(tuple(shapes[0]), dtypes[0], 1), numbers(tuple(shapes[1]), dtypes[1], 2)
    c = np.full(shapes[2], 7, dtypes[2])
    lw.build(func, target=target, autosched=True)(a, b, c)
    left = np.swapaxes(a, -1, -2) if "A" in flips else a
    right = np.swapaxes(b, -1, -2) if "B" in flips else b
    if dtypes[2].startswith(("int", "uint")):
        return c, left.astype(dtypes[2]) @ right.astype(dtypes[2]), np.zeros(c.shape)
    exact = left.astype("float64") @ right.astype("float64")
    step = float(np.finfo(dtypes[2]).eps)
    depth = left.shape[-1] + 1
    return c, exact, depth * step * (np.abs(left).astype("float64") @ np.abs(right).astype("float64")) + 1e-300


def check(func: PrimFunc, target: str = ONE, flips: str = "") -> None:
    got, exact, bound = product(func, target, flips)
    assert np.all(np.abs(got.astype("float64") - exact) <= bound)


EDGES = [(2, 2, 2), (7, 31, 15), (33, 2, 16), (2, 31, 17), (7, 9, 64), (33, 31, 65), (13, 5, 97), (12, 16, 128)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("m", "k", "n"), EDGES)
def test_every_edge(m: int, k: int, n: int) -> None:
    check(matmul(m, k, n))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("flips", ["A", "B", "AB"])
@pytest.mark.parametrize("size", [(48, 64, 64), (31, 37, 41)])
def test_transposed_operands(size: tuple[int, int, int], flips: str) -> None:
    check(matmul(*size, flips=flips), flips=flips)


@pytest.mark.parametrize("batch", [1, 3])
def test_batches(batch: int) -> None:
    check(matmul(19, 24, 35, batch=batch))
    check(matmul(19, 24, 35, batch=batch), TWO)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "float16"])
def test_other_types(dtype: str) -> None:
    check(matmul(13, 21, 35, dtype))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("dtype", "out"), [("int8", "int32"), ("uint8", "int32"), ("float32", "float64")])
def test_sums_of_a_wider_type(dtype: str, out: str) -> None:
    check(matmul(13, 21, 35, dtype, out))


def test_slabs_when_panels_do_not_fit_the_cache() -> None:
    func = matmul(13, 9000, 70)
    plan = autosched.apply(func, ONE)
    check(func)
    assert plan.schedule.is_proved
    # A transposed operand is packed, so more columns at a time and several slabs cost less.
    func = matmul(150, 1200, 600, flips="A")
    assert "slabs of" in autosched.apply(func, ONE).explain()
    check(func, flips="A")


def test_slabs_of_a_transposed_operand_whose_length_is_odd() -> None:
    """No whole number of turns: the last slab is shorter, and each still knows which part of A it packs."""
    func = matmul(150, 1963, 330, flips="A")
    plan = autosched.apply(func, ONE)
    assert [decision.rule for decision in plan.decisions] == ["packed GEMM"] and "slabs of" in plan.explain()
    check(func, flips="A")


def with_itself(n: int, k: int, flipped: bool, batch: int = 0, dtype: str = "float32") -> PrimFunc:
    """C = A · Aᵀ; Aᵀ · A if flipped."""
    lead = (batch,) if batch else ()
    a = te.placeholder((*lead, k, n) if flipped else (*lead, n, k), dtype, name="A")
    r = te.reduce_axis((0, k), "k")

    def cell(*axes: te.Var) -> te.Tensor:
        *h, i, j = axes
        left, right = (a[(*h, r, x)] if flipped else a[(*h, x, r)] for x in (i, j))
        return te.sum(left * right, axis=r)

    return te.create_prim_func([a, te.compute((*lead, n, n), cell, name="C")])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("size", [(37, 21, 0, "float32"), (16, 9, 3, "float64"), (2, 3, 0, "int32")])
def test_a_matrix_times_itself(size: tuple[int, int, int, str], flipped: bool) -> None:
    n, k, batch, dtype = size
    func = with_itself(n, k, flipped, batch, dtype)
    plan = autosched.apply(func, ONE)
    assert [decision.rule for decision in plan.decisions] == ["packed GEMM"] and plan.schedule.is_proved
    a = numbers(tuple(int(size) for size in func.buffer_map[func.params[0]].shape), dtype, 1)
    c = np.full((*a.shape[:-2], n, n), 7, dtype)
    lw.build(plan.mod, target=ONE)(a, c)
    left = (np.swapaxes(a, -1, -2) if flipped else a).astype("float64")
    exact, size = left @ np.swapaxes(left, -1, -2), np.abs(left) @ np.abs(np.swapaxes(left, -1, -2))
    bound = 0 if dtype == "int32" else (k + 1) * float(np.finfo(dtype).eps) * size
    assert np.all(np.abs(c - exact) <= bound)


def test_tiles_in_registers_have_no_guards_that_depend_on_the_task() -> None:
    """Columns that are no whole panels, and tasks of several products: the last tile of each is shorter."""
    func = matmul(576, 96, 196, batch=4)
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=2"
    text = lw.lower(autosched.apply(func, target).mod, target=target).script()
    places = re.findall(r"_local\[([^]]*)]", text)
    assert places and not any("fused" in place for place in places)
    got, exact, allowed = product(func, TWO)
    assert np.all(np.abs(got - exact) <= allowed)


def test_the_same_bits_for_any_number_of_threads() -> None:
    func = matmul(150, 130, 190)
    rows = []
    for target in (ONE, TWO, "llvm -num-cores=16"):
        got, *_ = product(func, target)
        rows.append(got)
    assert all(np.array_equal(rows[0], other) for other in rows[1:])


def chain(m: int, k: int, n: int, q: int, output_too: bool = False) -> PrimFunc:
    """F = exp(A · B + bias) · E."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    bias, e = te.placeholder((n,), name="bias"), te.placeholder((n, q), name="E")
    r, s = te.reduce_axis((0, k), "k"), te.reduce_axis((0, n), "l")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((m, n), lambda i, j: te.exp(c[i, j] + bias[j]), name="D")
    f = te.compute((m, q), lambda i, j: te.sum(d[i, s] * e[s, j], axis=s), name="F")
    return te.create_prim_func([a, b, bias, e, *([c] if output_too else []), f])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [(20, 30, 40, 50), (6, 8, 64, 128)])
@pytest.mark.parametrize("target", [ONE, TWO])
@pytest.mark.parametrize("output_too", [False, True])
def test_a_chain_with_element_wise_work_between(size: tuple[int, ...], target: str, output_too: bool) -> None:
    m, k, n, q = size
    func = chain(*size, output_too=output_too)
    plan = autosched.apply(func, target)
    assert [decision.blocks for decision in plan.decisions if decision.rule == "packed GEMM"] == [("C", "D"), ("F",)]
    a, b, bias, e = (numbers(shape, "float32", seed) for seed, shape in enumerate([(m, k), (k, n), (n,), (n, q)]))
    c, f = np.empty((m, n), "float32"), np.empty((m, q), "float32")
    lw.build(plan.mod, target=target)(a, b, bias, e, *([c] if output_too else []), f)
    inner = a.astype("float64") @ b + bias
    exact = np.exp(inner) @ e
    step = 2.0**-23
    relative = step * ((k + 2) * (np.abs(a).astype("float64") @ np.abs(b) + np.abs(bias)) + n + 4)
    assert np.all(np.abs(f - exact) <= (np.exp(inner) * (relative + n * step)) @ np.abs(e))
    if output_too:
        assert np.all(np.abs(c - a.astype("float64") @ b) <= (k + 1) * step * (np.abs(a).astype("float64") @ np.abs(b)))


@pytest.mark.parametrize("build", [lambda: matmul(33, 40, 70), lambda: chain(20, 30, 40, 50)])
def test_the_trace_is_proved_and_replays(build: object) -> None:
    func = build()  # type: ignore[operator]
    plan = autosched.apply(func, TWO)
    assert plan.schedule.is_proved
    again = Schedule(func)
    Trace.apply_json_to_schedule(plan.trace.as_json(), again)
    assert_structural_equal(again.mod, plan.mod)


def test_a_convolution_is_a_product_too() -> None:
    data, weight = te.placeholder((2, 9, 9, 8), name="data"), te.placeholder((3, 3, 8, 20), name="weight")
    y, x, c = te.reduce_axis((0, 3), "y"), te.reduce_axis((0, 3), "x"), te.reduce_axis((0, 8), "c")
    out = te.compute(
        (2, 7, 7, 20),
        lambda n, h, w, o: te.sum(data[n, h + y, w + x, c] * weight[y, x, c, o], axis=[y, x, c]),
        name="out",
    )
    func = te.create_prim_func([data, weight, out])
    d, w = numbers((2, 9, 9, 8), "float32", 1), numbers((3, 3, 8, 20), "float32", 2)
    got = np.empty((2, 7, 7, 20), "float32")
    lw.build(func, target=ONE, autosched=True)(d, w, got)
    windows = np.lib.stride_tricks.sliding_window_view(d.astype("float64"), (3, 3), axis=(1, 2))
    exact = np.einsum("nhwcyx,yxco->nhwo", windows, w)
    bound = 73 * 2.0**-23 * np.einsum("nhwcyx,yxco->nhwo", np.abs(windows), np.abs(w))
    assert np.all(np.abs(got - exact) <= bound)


def test_what_is_no_product_is_left_to_others() -> None:
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    r = te.reduce_axis((0, 8), "k")
    for value in (
        lambda i, j: te.max(a[i, r] * b[r, j], axis=r),  # not a sum
        lambda i, j: te.sum(a[i, r] + b[r, j], axis=r),  # not of products
        lambda i, j: te.sum(a[i, j] * b[r, j], axis=r),  # both run along the columns
    ):
        func = te.create_prim_func([a, b, te.compute((8, 8), value, name="C")])
        entries = Program(Schedule(func), "main").entries
        assert Contraction().take(entries, Program(Schedule(func), "main")) == 0


def test_the_parts_of_a_product() -> None:
    func = matmul(3, 4, 5, batch=2)
    facts = Program(Schedule(func), "main").entries[0].facts
    assert facts is not None
    found = product_of(facts)
    assert found is not None
    assert (found.m, found.n, found.k) == (3, 5, 4)
    assert [axis.extent for axis in found.outer] == [2]
    assert found.row_operand.buffer.name == "A" and found.column_operand.buffer.name == "B"


# A machine that does not change with the one the tests run on.
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=16"
NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=2"


def test_sizes_follow_from_the_machine() -> None:
    wide = choose_tiles(Size(1024, 1024, 1024, 1, "float32", 1024), Machine.of(AVX512))
    narrow = choose_tiles(Size(1024, 1024, 1024, 1, "float32", 1024), Machine.of(NEON))
    assert (wide.lanes, narrow.lanes) == (16, 4)
    for tiles in (wide, narrow):
        assert 20 <= tiles.mr * tiles.vectors <= 28  # the registers are full, and none is spilled
    assert wide.threads == 16 and narrow.threads == 2
    assert choose_tiles(Size(16, 16, 16, 1, "float32", 16), Machine.of(AVX512)).threads == 1


def test_few_rows_do_not_pay_for_packing() -> None:
    machine = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=1")
    assert not choose_tiles(Size(8, 1024, 1024, 1, "float32", 1024), machine).packs
    assert choose_tiles(Size(1024, 1024, 1024, 1, "float32", 1024), machine).packs


def test_rows_streamed_in_slabs_of_eight_where_more_were_not_measured() -> None:
    """A slab of many rows is for cores on which its stores and loads were measured to cost more than late lines."""
    size = Size(m=13, n=103, k=300, batch=1, dtype="float64", row_stride=103)
    measured = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1")
    assert {tiles.slab for tiles in streamed_tiles(size, measured)} == {32}
    for machine in (Machine.of(NEON), Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=1")):
        assert all(tiles.slab <= 8 for tiles in streamed_tiles(size, machine))


def test_fewer_tiles_than_threads() -> None:
    """A few rows and columns of a long reduction are one tile, whose threads have nothing to do."""
    func = matmul(3, 20000, 24, flips="B")
    plan = autosched.apply(func, "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=4")
    assert plan.schedule.is_proved
    check(func, "llvm -num-cores=4", flips="B")


def test_the_reasons_are_told() -> None:
    text = autosched.apply(matmul(1024, 1024, 1024), AVX512).explain()
    assert "C: packed GEMM" in text
    assert "registers are accumulators; a step loads" in text
    assert "B packed in panels of" in text and "stay in L2" in text
    assert "parallelised over 16 threads" in text
    assert "limit: arithmetic; about" in text


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [(20, 30, 48), (33, 17, 70)])
@pytest.mark.parametrize("target", [ONE, TWO])
def test_an_operand_is_computed_on_the_way_into_its_panels(size: tuple[int, int, int], target: str) -> None:
    m, k, n = size
    a, w = te.placeholder((m, k), name="A"), te.placeholder((k, n), "int8", name="W")
    scale = te.placeholder((n,), name="scale")
    r = te.reduce_axis((0, k), "k")
    real = te.compute((k, n), lambda p, j: w[p, j].astype("float32") * scale[j], name="real")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * real[r, j], axis=r), name="C")
    plan = autosched.apply(te.create_prim_func([a, w, scale, c]), target)
    assert [decision.blocks for decision in plan.decisions] == [("real", "C")]
    assert plan.schedule.is_proved
    x, y, z = numbers((m, k), "float32", 1), numbers((k, n), "int8", 2), numbers((n,), "float32", 3)
    got = np.empty((m, n), "float32")
    lw.build(plan.mod, target=target)(x, y, z, got)
    weights = y.astype("float64") * z
    bound = (k + 3) * 2.0**-23 * (np.abs(x).astype("float64") @ np.abs(weights))
    assert np.all(np.abs(got - x.astype("float64") @ weights) <= bound)


@pytest.mark.parametrize("shape", [(30, 10, 700), (13, 300, 103), (6, 90, 738)])
def test_rows_of_b_are_read_in_place_in_few_slabs(shape: tuple[int, int, int]) -> None:
    """A short reduction is one slab; a longer one has 16 steps a slab or more for each load and store of its sums."""
    m, k, n = shape
    func = matmul(m, k, n, "float64")
    plan = autosched.apply(func, "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1")
    text = plan.explain()
    assert plan.schedule.is_proved and "read in place" in text
    slabs = re.search(r"\d+ slabs of (\d+)", text)
    assert slabs is None if k <= 16 else slabs is not None and int(slabs[1]) >= 16
    check(func)
