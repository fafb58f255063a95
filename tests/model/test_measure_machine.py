"""Measuring this machine gives a description; how fast the machine is, no test may ask."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from loopwright.model import measure_kernels as kernels
from loopwright.model import measure_machine as measuring
from loopwright.target import Microarchitecture, Target, describe, detect_host
from loopwright.target.microarchitecture import from_data
from loopwright.target.moves import USUAL_MOVES

HASWELL = describe(Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"))
HERTZ = 2e9


def assert_plausible(measured: Microarchitecture) -> None:
    """Every number is of its type and within what a CPU may have, and the description can be read back."""
    assert measured.name == detect_host().cpu
    assert from_data(json.loads(measured.to_json())) == measured
    assert measured.store_ports in range(1, 5)
    assert measured.vector_per_cycle in range(1, 9)
    assert measured.scalar_per_cycle in range(1, 13)
    assert 0.1 <= measured.insert_cycles <= 20
    assert 0.1 <= measured.shuffle_cycles <= 10
    for name in ("fma_ports", "fma_latency", "load_ports", "store_ports", "vector_per_cycle", "scalar_per_cycle"):
        assert isinstance(getattr(measured, name), int), name
    moves = measured.moves
    assert 0.1 <= moves.line_skipped <= moves.line_of_page <= moves.line_of_page_far <= 500
    assert moves.line_of_page <= moves.line_of_page_somewhere <= moves.line_of_page_far
    assert moves.transposed == USUAL_MOVES.transposed


def test_the_description_is_whole(monkeypatch):
    monkeypatch.setattr(measuring, "_STEPS", 2000)
    monkeypatch.setattr(measuring, "_PATIENCE", 0.0)
    monkeypatch.setattr(measuring, "_FAR", 1)
    assert_plausible(measuring.measure_machine())


@pytest.mark.parametrize("seconds", [1e-12, 1e-3, 1e6])
def test_times_that_mean_nothing_are_kept_within_bounds(monkeypatch, seconds):
    without_kernels(monkeypatch)
    monkeypatch.setattr(measuring, "_seconds", lambda kernel, *arrays: seconds)
    assert_plausible(measuring.measure_machine())


def test_a_known_machine_gets_its_own_figures(monkeypatch):
    without_kernels(monkeypatch)
    monkeypatch.setattr(measuring, "_seconds", lambda kernel, *arrays: cycles_of(kernel, arrays) / HERTZ)
    measured = measuring.measure_machine()
    assert_plausible(measured)
    assert (measured.fma_ports, measured.fma_latency) == (2, 5)
    assert (measured.load_ports, measured.store_ports) == (2, 2)
    assert (measured.vector_per_cycle, measured.scalar_per_cycle) == (3, 5)
    rates = (measured.l2_bytes_per_cycle, measured.l3_bytes_per_cycle, measured.memory_bytes_per_cycle)
    assert rates == (20.0, 9.0, 4.0)
    assert (measured.memory_cores, measured.fork_cycles) == (3, 7000)
    assert (measured.gather_cycles, measured.insert_cycles, measured.shuffle_cycles) == (0.7, 1.25, 0.8)
    moves = measured.moves
    assert (moves.line_skipped, moves.line_of_page, moves.line_of_page_far) == (1.5, 4.0, 25.0)
    assert moves.line_of_page_somewhere == 10.0


def test_a_line_of_another_page_is_never_cheaper_than_one_of_the_same(monkeypatch):
    without_kernels(monkeypatch)
    monkeypatch.setattr(measuring._Core, "line_cycles", lambda core, footprint, row: 2.0 if row < 4096 else 1.0)
    moves = measuring._moves(measuring._Core(HASWELL, HERTZ))
    assert (moves.line_skipped, moves.line_of_page, moves.line_of_page_far) == (2.0, 2.0, 2.0)


def test_the_time_of_a_kernel_is_its_least(monkeypatch):
    clock = iter([0, 3, 10, 11, 20, 22, 30, 35, 40, 44])  # five samples: 3, 1, 2, 5 and 4 seconds
    monkeypatch.setattr(measuring, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(measuring, "_PATIENCE", 0.0)
    calls = []
    assert measuring._seconds(lambda x: calls.append(x), np.zeros(1)) == 1
    assert len(calls) == 6  # the first one is not timed


def without_kernels(monkeypatch) -> None:
    """Compile nothing: a kernel is its text and its sizes. The CPU is a Haswell with four threads."""

    def kernel(source: str, **sizes: object) -> SimpleNamespace:
        return SimpleNamespace(source=source, **{"steps": measuring._STEPS, **sizes})

    monkeypatch.setattr(measuring, "_kernel", kernel)
    monkeypatch.setattr(measuring, "host_description", lambda: HASWELL)
    monkeypatch.setattr(measuring, "num_threads", lambda: 4)


def cycles_of(kernel: SimpleNamespace, arrays: tuple[np.ndarray, ...]) -> float:
    """What a kernel takes on a made-up machine."""
    match kernel.source:
        case kernels.CLOCK:
            return 2 * kernel.steps
        case kernels.FMA:
            return kernel.steps * max(5, kernel.chains / 2)
        case kernels.VECTOR:
            return kernel.steps * kernel.chains * 4 / 3
        case kernels.SCALAR:
            return kernel.again * 64 * 6 * 3 / 5
        case kernels.STORE:
            return kernel.again * arrays[1].size / kernel.lanes / 2
        case kernels.GATHER:
            return kernel.steps * 8 * kernel.lanes * 0.7
        case kernels.INSERT:
            return kernel.again * arrays[0].size * 1.25
        case kernels.SHUFFLE:
            return kernel.again * kernel.count * 8 * (0.5 + 0.8 * (kernel.stride - 1))
        case kernels.LINES:
            lines = kernel.turns * 8 * kernel.columns
            return kernel.again * lines * (2.0 + _skipping(arrays[0].nbytes, kernel.columns))
        case kernels.READ:
            is_parallel = kernel.kind == "parallel"
            rate = _rate(arrays[0].nbytes // kernel.threads) * (2.5 if is_parallel else 1)
            work = 10 if kernel.count == 1 else arrays[0].nbytes * kernel.again / rate
            return work + (7000 if is_parallel and kernel.count == 1 else 0)
    raise AssertionError(kernel.source)


def _skipping(footprint: int, columns: int) -> float:
    if columns == 1:
        return 0.0
    if columns * HASWELL.cache_sizes.line < 4096:
        return 1.5
    return 4.0 if footprint <= HASWELL.cache_sizes.l2 else 25.0


def _rate(footprint: int) -> float:
    """Bytes a cycle."""
    caches = HASWELL.cache_sizes
    levels = [(caches.l1d, 64.0), (caches.l2, 20.0), (caches.l3, 9.0)]
    return next((rate for size, rate in levels if footprint <= size), 4.0)
