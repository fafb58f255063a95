"""The cycles that every choice of tiles is made of."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from loopwright import autosched
from loopwright.autosched import Machine
from loopwright.autosched.cost import LATE, OVERHEAD, at_once, micro_kernel, on_threads, relayout, tile_step, turns_of
from loopwright.autosched.prefetch import prefetch_distance
from loopwright.autosched.rules.contraction.tiles import Size, choose_tiles
from loopwright.target import Moves

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


def test_what_goes_on_at_once_takes_as_long_as_the_longer_and_some_of_the_other():
    assert at_once(100, 40) == at_once(40, 100) == pytest.approx(100 + 0.6 * 40)
    assert at_once(100, 40, is_cached=True) == pytest.approx(100 + 0.2 * 40)


def with_core(machine, **numbers):
    """The machine with other numbers of its microarchitecture."""
    core = replace(machine.cpu.microarchitecture, **numbers)
    return replace(machine, cpu=replace(machine.cpu, microarchitecture=core))


def test_a_changed_layout_is_a_copy_and_a_transpose():
    slow = with_core(SKYLAKE_X, moves=Moves(copied=1.0, transposed=2.0))
    assert (relayout(SKYLAKE_X), relayout(slow)) == (pytest.approx(1.0), pytest.approx(3.0))


def test_a_lane_is_gathered_where_there_is_an_instruction_and_else_inserted():
    machine = with_core(SKYLAKE_X, gather_cycles=0.25, insert_cycles=3.0)
    assert [machine.lane_cycles(size) for size in (1, 2, 4, 8)] == [3.0, 3.0, 0.25, 0.25]
    assert with_core(CORTEX_A72, insert_cycles=3.0).lane_cycles(4) == 3.0


def test_packing_pays_by_what_the_description_says_of_the_machine():
    size = Size(m=64, n=1024, k=1024, batch=1, dtype="float32", row_stride=1024)
    assert choose_tiles(size, SKYLAKE_X).packs
    assert not choose_tiles(size, with_core(SKYLAKE_X, moves=Moves(packed=9.0, packed_far=9.0))).packs


def test_weights_are_prefetched_past_the_page_of_the_machine():
    assert prefetch_distance(SKYLAKE_X) == 4096 + 512
    assert prefetch_distance(with_core(SKYLAKE_X, page=16384)) == 16384 + 512


def test_a_number_of_the_rules_has_one_place():
    """Two rules that mean the same share it; two that do not name it differently."""
    places = defaultdict(list)
    for file in sorted(Path(autosched.__file__).parent.rglob("*.py")):
        for name in module_numbers(file.read_text("utf-8")):
            places[name].append(file.name)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def module_numbers(source):
    """Names that a module binds to a number, or to several."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        if any(isinstance(node, ast.Constant) and isinstance(node.value, int | float) for node in ast.walk(value)):
            yield from [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
