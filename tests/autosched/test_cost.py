"""The cycles that every choice of tiles is made of."""

from __future__ import annotations

import pytest

from loopwright.autosched import Machine
from loopwright.autosched.cost import LATE, OVERHEAD, micro_kernel, on_threads, tile_step, turns_of

SKYLAKE_X = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=8")
ZEN_4 = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4 -num-cores=8")
CORTEX_A72 = Machine.of("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -num-cores=4")


def test_a_step_waits_for_the_scarcest_of_ports():
    loads = 0.2 * (8 + 3)
    assert tile_step(SKYLAKE_X, 8, 3) == pytest.approx(8 * 3 / 2 + loads)  # two FMA a cycle
    assert tile_step(ZEN_4, 8, 3) == pytest.approx(8 * 3 + loads)  # 512 bits take both 256-bit ports
    assert tile_step(CORTEX_A72, 8, 3) == pytest.approx(8 * 3 + loads)


def test_a_small_tile_waits_for_its_own_accumulators():
    assert tile_step(SKYLAKE_X, 1, 1) == pytest.approx(4 + 0.2 * 2)
    assert tile_step(CORTEX_A72, 1, 1) == pytest.approx(7 + 0.2 * 2)


def test_products_of_two_instructions_take_twice_the_arithmetic():
    assert tile_step(SKYLAKE_X, 8, 3, products=2) - tile_step(SKYLAKE_X, 8, 3) == pytest.approx(12)


def test_a_micro_kernel_has_its_start_and_its_end():
    assert micro_kernel(SKYLAKE_X, 8, 3, 0) == OVERHEAD
    assert micro_kernel(SKYLAKE_X, 8, 3, 100) == pytest.approx(OVERHEAD + 100 * tile_step(SKYLAKE_X, 8, 3))


@pytest.mark.parametrize(("tasks", "threads", "turns"), [(1, 8, 1), (8, 8, 1), (9, 8, 2), (16, 8, 2), (0, 8, 0)])
def test_all_wait_for_the_thread_with_the_most_tasks(tasks, threads, turns):
    assert turns_of(tasks, threads) == turns
    if turns:
        expected = 1000 * turns * (1 + LATE / turns) + SKYLAKE_X.fork_cycles
        assert on_threads(SKYLAKE_X, 1000, tasks, threads) == pytest.approx(expected)


def test_one_thread_wakes_nobody():
    assert on_threads(SKYLAKE_X, 1000, 5, 1) == 5000
