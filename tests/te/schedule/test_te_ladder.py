"""The textbook ladder of `examples/textbook_ladder.py`, through te: the same lowered program, up to names."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir import assert_structural_equal
from loopwright.schedule import Schedule

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ladder = load("textbook_ladder")


def stages(s):
    return {stage.op.name: stage for stage in s.stages}


def unscheduled(s):
    pass


def reorder(s):
    for name in ("D", "F"):
        stage = stages(s)[name]
        m, n, k = stage.leaf_iter_vars
        stage.reorder(m, k, n)


def tile_the_reduce_axis(s):
    for name in ("D", "F"):
        stage = stages(s)[name]
        m, n, k = stage.leaf_iter_vars
        ko, ki = stage.split(k, factor=64)
        stage.reorder(ko, m, ki, n)


def tile(stage):
    m, n, k = stage.leaf_iter_vars
    mo, no, mi, ni = stage.tile(m, n, ladder.TILE, 4 * ladder.TILE)
    ko, ki = stage.split(k, factor=64)
    stage.reorder(mo, no, ko, mi, ki, ni)
    return mo, no, ni


def tile_all(s):
    for name in ("D", "F"):
        tile(stages(s)[name])


def merge_exp_into_the_tile(s):
    found = stages(s)
    tile(found["F"])
    m, n = found["E"].leaf_iter_vars
    _, no, _, ni = found["E"].tile(m, n, ladder.TILE, 4 * ladder.TILE)
    found["D"].compute_at(found["E"], no)
    m, n, k = found["D"].leaf_iter_vars
    ko, ki = found["D"].split(k, factor=64)
    found["D"].reorder(ko, m, ki, n)
    return ni, n


def merge_the_m_loops(s):
    found = stages(s)
    mo, _, l = tile(found["F"])
    found["E"].compute_at(found["F"], mo)
    m, n = found["E"].leaf_iter_vars
    no, ni = found["E"].split(n, factor=4 * ladder.TILE)
    found["E"].reorder(no, m, ni)
    found["D"].compute_at(found["E"], no)
    m, n, k = found["D"].leaf_iter_vars
    ko, ki = found["D"].split(k, factor=64)
    found["D"].reorder(ko, m, ki, n)
    return mo, {"D": n, "E": ni, "F": l}


def vectorize_and_parallel(s):
    found = stages(s)
    rows, inner = merge_the_m_loops(s)
    for name, axis in inner.items():
        _, lanes = found[name].split(axis, factor=ladder.LANES)
        found[name].vectorize(lanes)
    found["F"].parallel(rows)


RUNGS = [
    unscheduled,
    reorder,
    tile_the_reduce_axis,
    tile_all,
    merge_exp_into_the_tile,
    merge_the_m_loops,
    vectorize_and_parallel,
]


def test_no_rung_is_left_out():
    assert [rung.__name__ for rung in RUNGS] == [rung.__name__ for rung in ladder.RUNGS]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.__name__)
def test_the_same_program_as_through_tir(rung):
    args = ladder.chain()
    s = te.create_schedule(args[-1].op)
    rung(s)
    through_te = lw.lower(s, args)["main"]
    assert s.as_tir_schedule(args).is_proved

    sch = Schedule(te.create_prim_func(args))
    getattr(ladder, rung.__name__)(sch)
    if rung in (merge_the_m_loops, vectorize_and_parallel, merge_exp_into_the_tile):
        # A te schedule keeps what is computed inside a loop in memory of that loop; here it takes a step of its own.
        sch.sink_alloc("D", "D")
        if rung is not merge_exp_into_the_tile:
            sch.sink_alloc("E", "E")
    through_tir = lw.lower(sch.mod)["main"]
    for attr in ("from_legacy_te_schedule", "global_symbol"):
        through_te, through_tir = through_te.without_attr(attr), through_tir.without_attr(attr)
    assert_structural_equal(through_te, through_tir)
