"""Dot products: few rows times a matrix that lies along the reduction, right at every edge and for every layout."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched import Machine
from loopwright.autosched.program import Program
from loopwright.autosched.rules.contraction.dots import choose_dots
from loopwright.autosched.rules.contraction.product import product_of
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from tests.autosched.test_contraction import ONE, TWO, check, matmul, numbers, with_itself

NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=1"
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def explained(func: PrimFunc, target: str = NEON) -> str:
    plan = autosched.apply(func, target)
    assert plan.schedule.is_proved
    return plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [(2, 67, 33), (3, 16, 8), (4, 67, 4), (5, 131, 19), (7, 65, 17), (2, 64, 3)])
def test_few_rows_at_every_edge(size: tuple[int, int, int]) -> None:
    func = matmul(*size, flips="B")
    assert "dot products" in explained(func)
    check(func, flips="B")


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_other_types(dtype: str) -> None:
    check(matmul(3, 37, 21, dtype, flips="B"), flips="B")


@pytest.mark.parametrize("target", [ONE, TWO])
def test_batches_and_threads(target: str) -> None:
    check(matmul(2, 41, 13, flips="B", batch=3), target, flips="B")
    check(matmul(2, 600, 1100, flips="B"), target, flips="B")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [(1, 33, 9), (1, 64, 4), (9, 70, 1), (16, 16, 1), (1, 19, 2)])
@pytest.mark.parametrize("batch", [0, 2])
def test_a_matrix_by_a_vector(size: tuple[int, int, int], batch: int) -> None:
    func = matmul(*size, flips="B", batch=batch)
    assert "dot products" in explained(func)
    check(func, flips="B")


@pytest.mark.parametrize("size", [(65, 65, 0), (0, 65, 2), (0, 65, 0), (1, 65, 0)])
@pytest.mark.parametrize("flips", ["", "B", "AB"])
def test_an_empty_result(size: tuple[int, int, int], flips: str) -> None:
    check(matmul(*size, flips=flips), flips=flips)


def test_a_vector_without_a_second_axis() -> None:
    a, x = te.placeholder((37, 50), name="A"), te.placeholder((50,), name="x")
    k = te.reduce_axis((0, 50), "k")
    y = te.compute((37,), lambda i: te.sum(a[i, k] * x[k], axis=k), name="y")
    z = te.compute((37,), lambda i: te.exp(y[i]), name="z")
    func = te.create_prim_func([a, x, y, z])
    decisions = autosched.apply(func, NEON).decisions
    assert [decision.rule for decision in decisions] == ["packed GEMM"]
    plan = autosched.apply(func, ONE)
    assert plan.schedule.is_proved
    left, right = numbers((37, 50), "float32", 1), numbers((50,), "float32", 2)
    sums, after = np.empty(37, "float32"), np.empty(37, "float32")
    lw.build(plan.mod, target=ONE)(left, right, sums, after)
    np.testing.assert_allclose(sums, left.astype("float64") @ right, rtol=0, atol=1e-5)
    np.testing.assert_allclose(after, np.exp(sums), rtol=1e-5)


def test_a_matrix_with_itself_needs_no_copy() -> None:
    func = with_itself(5, 70, flipped=False)
    assert "dot products" in explained(func)
    a, c = numbers((5, 70), "float32", 1), np.empty((5, 5), "float32")
    lw.build(func, target=ONE, autosched=True)(a, c)
    np.testing.assert_allclose(c, a.astype("float64") @ a.T, rtol=0, atol=1e-4)


def test_not_a_number_reaches_only_the_results_it_is_in() -> None:
    func = matmul(2, 35, 6, flips="B")
    a, b = numbers((2, 35), "float32", 1), numbers((6, 35), "float32", 2)
    b[4, 34] = np.nan
    a[0, 0] = np.inf
    c = np.empty((2, 6), "float32")
    lw.build(func, target=ONE, autosched=True)(a, b, c)
    np.testing.assert_array_equal(np.isnan(c), np.isnan(a @ b.T))
    np.testing.assert_array_equal(np.isinf(c), np.isinf(a @ b.T))


def test_many_rows_pay_for_packing() -> None:
    assert "packed in panels" in explained(matmul(200, 64, 200, flips="B"))


@pytest.mark.parametrize("target", [ONE, AVX512])
def test_sizes_follow_from_the_machine(target: str) -> None:
    machine = Machine.of(target)
    func = matmul(4, 300, 100, flips="B")
    facts = Program(Schedule(func), "main").entries[0].facts
    product = product_of(facts) if facts is not None else None
    assert product is not None
    tiles = choose_dots(product, machine)
    assert tiles is not None and tiles.lanes == machine.lanes("float32")
    assert machine.fma_per_cycle * machine.fma_latency <= tiles.register_tile < machine.registers
    text = lw.lower(autosched.apply(func, target).mod, target=target).script()
    assert f"T.Broadcast(T.float32(0), {tiles.lanes})" in text and "T.fma" in text


def test_where_hardware_has_too_little_in_flight_the_rows_that_stream_are_prefetched() -> None:
    func = matmul(3, 2803, 382, "float64", flips="B")
    assert "B prefetched" in explained(func, AVX512)
    assert "prefetched" not in explained(func, NEON)
    assert "prefetched" not in explained(matmul(3, 280, 38, flips="B"), AVX512)  # from L2
    check(func, flips="B")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [(46, 624, 5), (300, 1000, 3), (50, 131, 4), (47, 624, 2)])
@pytest.mark.parametrize("batch", [0, 3])
def test_few_columns_are_transposed_for_dot_products(size: tuple[int, int, int], batch: int) -> None:
    func = matmul(*size, batch=batch)
    text = explained(func, AVX512)
    assert "B transposed first" in text and "dot products" in text
    assert "B transposed first" not in explained(func)  # few lanes are idle in vectors of four
    check(func, ONE)


@pytest.mark.parametrize("size", [(46, 624, 16), (46, 20, 5), (414, 1325, 6)])
def test_columns_that_fill_vectors_or_are_short_or_too_long_for_l1_stay(size: tuple[int, int, int]) -> None:
    assert "transposed first" not in explained(matmul(*size), AVX512)


@pytest.mark.parametrize("size", [(2, 63, 1500), (3, 33, 700), (1, 48, 333)])
def test_two_wide_vectors_of_a_reduction_are_enough(size: tuple[int, int, int]) -> None:
    func = matmul(*size, flips="B")
    check(func, flips="B")
    if size[1] > 40:
        assert "dot products" in explained(func, AVX512)
    assert "dot products" not in explained(matmul(2, 30, 1500, flips="B"), AVX512)
