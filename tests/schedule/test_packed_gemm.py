"""The BLIS matrix product as an ordinary schedule: right at every size, and its inner loop is what it should be."""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib
import re
import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright.ir import assert_structural_equal
from loopwright.schedule import Schedule
from loopwright.schedule.errors import WouldRace
from loopwright.target import describe
from tests.schedule.steps import refused

_FILE = pathlib.Path(__file__).parents[2] / "examples" / "packed_gemm.py"
_SPEC = importlib.util.spec_from_file_location("packed_gemm", _FILE)
assert _SPEC is not None and _SPEC.loader is not None
packed = importlib.util.module_from_spec(_SPEC)
sys.modules["packed_gemm"] = packed
_SPEC.loader.exec_module(packed)

SMALL = packed.Tiles(mr=3, nr=8, mc=6, nc=16, kc=5, ku=1, lanes=4)


def assert_product(sch: Schedule, m: int, n: int, k: int) -> None:
    """The program multiplies, with the error of k roundings at most."""
    random = np.random.default_rng(0)
    a, b = random.random((m, k), np.float32), random.random((k, n), np.float32)
    c = np.full((m, n), np.nan, np.float32)
    lw.build(sch.mod)(a, b, c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.all(np.abs(c - exact) <= (k + 1) * 2.0**-24 * exact)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", [(12, 32, 10), (13, 17, 11), (5, 7, 4), (1, 1, 1), (7, 40, 23)])
def test_every_size_is_right(shape):
    sch = packed.packed_gemm(*shape, SMALL)
    assert sch.is_proved
    assert_product(sch, *shape)


def test_it_takes_few_steps_and_the_trace_gives_it_again():
    sch = packed.packed_gemm(12, 32, 10, SMALL)
    assert len(packed._steps(sch)) <= 40
    again = Schedule(packed.matmul(12, 32, 10))
    sch.trace.apply_to_schedule(again)
    assert_structural_equal(sch.mod["main"], again.mod["main"])


def test_the_row_loop_may_run_in_parallel_but_not_with_a_shared_panel():
    sch = packed.packed_gemm(12, 32, 10, SMALL)
    rows = sch.get_loops("A_stage")[2]
    shared = sch.copy()
    sch.parallel(rows)
    assert_product(sch, 12, 32, 10)
    shared.lift_alloc("A_stage", "A_stage")
    error = refused(shared, WouldRace, "parallel: loop i_0", "parallel", rows)
    assert "i_0 = 0 and i_0 = 1" in error.why and "A_stage[0, 0, 0]" in error.why


@pytest.mark.parametrize("size", [512, 1000])
def test_tiles_fit_the_machine(size):
    cpu = describe("llvm")
    t = packed.choose_tiles(size, size, size, cpu)
    vectors = t.nr // t.lanes
    assert t.nr % t.lanes == 0 and t.mc % t.mr == 0 and t.nc % t.nr == 0
    assert t.mr * vectors + vectors + 1 <= cpu.registers


def test_the_inner_loop_holds_its_tile_in_registers(monkeypatch):
    monkeypatch.delenv("LOOPWRIGHT_OPT_LEVEL")  # it is about machine code
    cpu = describe("llvm")
    if not cpu.has_fma:
        pytest.skip("this machine has no multiply-add")
    chosen = packed.choose_tiles(512, 512, 512, cpu)
    t = dataclasses.replace(chosen, mc=chosen.mr * 4, nc=chosen.nr * 2, kc=64)
    body = packed.inner_loop(t.mc, t.nc, 128, t)
    count = packed._multiply_adds(body)
    assert count and count % (t.mr * t.nr // t.lanes) == 0
    for line in body:
        assert "%rsp" not in line and "[sp" not in line, line
        assert not re.match(r"(st[rp]\b|v?mov\w*\s+%\w+, .*\()", line), f"the inner loop stores: {line}"
