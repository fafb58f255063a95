"""The race of hand-written schedules against gcc: both sides compute what they should before anything is timed."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from rich.console import Console

from benchmarks.bench.case import Bounded, aligned, uniform
from benchmarks.bench.measure import Effort
from benchmarks.bench.row import OURS
from benchmarks.loops import cli
from benchmarks.loops.c_compiler import c_text, plain_c_text
from benchmarks.loops.race import PLAIN_C, C, contenders, run_rung
from benchmarks.loops.rung import Loops, Rung, as_written, scheduled
from benchmarks.loops.rungs import FAMILIES
from loopwright import te

pytestmark = pytest.mark.usefixtures("no_collection")  # a time is of no matter here

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

ALL = [(family, rung) for family, rungs in FAMILIES.items() for rung in rungs]
TYPICAL = [
    "tutorial: blocking",
    "tutorial: write cache, parallel",
    "int8 to int32, order ikj",
    "textbook: fuse rows",
    "NCHW, register tile",
    "depthwise NHWC, order hwyxc",
    "3-D, 7 points, tiled 8 × 16",
    "blur, fused by rows",
    "row argmax",
    "dot, 64 partial sums in vectors",
    "blocks of 24 of 1000",
    "along rows",
    "softmax, row by row in vectors",
    "float32 to int8",
]
QUICK = Effort(budget=0.01, sample=1e-5, least=5, most=7)


def doubled(n: int, mistake: bool = False) -> Loops:
    X = te.placeholder((n,), name="X")
    Y = te.compute((n,), lambda i: X[i] * (3.0 if mistake else 2.0), name="Y")
    x = uniform(n, seed=1)
    return Loops(te.create_prim_func([X, Y]), [x], [aligned(n)], lambda: [Bounded(2.0 * x.astype("float64"), 0.0)])


def test_names_are_distinct_and_enough():
    names = [(family, rung.name) for family, rung in ALL]
    assert len(set(names)) == len(names) >= 25
    assert set(TYPICAL) <= {name for _, name in names}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", TYPICAL)
def test_both_sides_compute_the_same(name, tmp_path):
    (rung,) = [rung for _, rung in ALL if rung.name == name]
    runs, _ = contenders(rung.make(*rung.small), tmp_path)  # raises where a result is outside its bound
    assert list(runs)[:2] == [OURS, C]
    assert (tmp_path / "ours.s").read_text() and (tmp_path / "loops_0.c").read_text()


def test_vectorized_loops_have_a_plain_text_too(tmp_path):
    def vectorize(sch):
        _, lane = sch.split(sch.get_loops("Y")[0], [None, 8])
        sch.vectorize(lane)

    loops = doubled(64)
    vectors = Loops(scheduled(loops.function, vectorize), loops.inputs, loops.outputs, loops.reference)
    assert c_text(loops.function) == plain_c_text(loops.function)
    assert "for (int64_t i_1 = 0; i_1 < 8; ++i_1)" in plain_c_text(vectors.function)
    runs, same = contenders(vectors, tmp_path)
    assert list(runs) == [OURS, C, PLAIN_C] and same


def test_a_row_has_times_and_ratios():
    row = run_rung(Rung("doubled", doubled, (1000,), (10,)), QUICK)
    assert row["status"] == "ok" and row["gcc"] == C and row["same_bits"]
    assert row["ratio"] == row["ratios"][C] and row["ratio"]["median"] > 0


def test_a_wrong_result_is_not_timed():
    row = run_rung(Rung("tripled", lambda n: doubled(n, mistake=True), (10,), (10,)), QUICK)
    assert row["status"] == "wrong" and row["message"].startswith("ours: output 0 at [0] is ")
    assert "ratio" not in row


def test_a_rung_that_fails_leaves_the_others_alone(monkeypatch, tmp_path):
    def broken(n: int) -> Loops:
        raise ValueError("no such loops")

    rungs = [Rung("doubled", doubled, (1000,), (10,)), Rung("broken", broken, (10,), (10,))]
    monkeypatch.setitem(cli.FAMILIES, "gemm", rungs)
    assert cli.main(["gemm", "--budget", "0.01", "--json", str(tmp_path / "out.json")]) == 1
    record = json.loads((tmp_path / "out.json").read_text())
    assert [row["status"] for row in record["rows"]] == ["ok", "error"]
    assert record["minimum"] == record["rows"][0]["ratio"]["median"]
    assert record["geomean"] == pytest.approx(record["minimum"])


def test_the_table_says_what_failed(capsys, monkeypatch):
    record = cli.run(["scan"], "nothing of that name", 0.01, None, Console())
    record["rows"] = [{"family": "scan", "name": "broken", "status": "error", "message": "ValueError: no such loops"}]
    cli.show(record, Console(width=120))
    shown = capsys.readouterr().out
    assert "ERROR" in shown and "broken: ValueError: no such loops" in shown


def test_an_unknown_family_is_refused(capsys):
    with pytest.raises(SystemExit):
        cli.main(["gem"])
    assert "unknown family gem: choose from gemm, chain" in capsys.readouterr().err


def test_steps_are_proved():
    loops = doubled(8)
    assert scheduled(loops.function, as_written).body is not None
    assert np.isfinite(loops.reference()[0].exact).all()
