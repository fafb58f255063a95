"""Benchmarks on a GPU lose no row but the one at fault: `benchmarks/gpu/children.py`; and what their bars mean."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from benchmarks.gpu.children import side_by_side, supervised
from benchmarks.gpu.report import against_better, geomean, show

ROOT = Path(__file__).resolve().parent.parent
CHILD = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from benchmarks.gpu.children import serve

lost = False

def work(job):
    global lost
    print("a compiler's words")
    if job["do"] == "die":
        os._exit(9)
    if job["do"] == "hang":
        time.sleep(60)
    if job["do"] == "lose":
        lost = True
    if job["do"] != "right":
        raise ValueError(job["do"])
    return {{"result": "lost" if lost else job["n"] * 2}}

sys.exit(serve(work, lambda: not lost))
"""
COMMAND = [sys.executable, "-c", CHILD]


def jobs(*kinds: str) -> list[dict[str, object]]:
    return [{"do": kind, "n": n} for n, kind in enumerate(kinds)]


def test_a_row_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchmarks.gpu.children._START", 10.0)
    given = jobs("right", "raise", "right", "die", "die", "lose", "right")
    rows = list(supervised(COMMAND, given, patience=10, deadline=time.monotonic() + 60))
    assert [row["n"] for row in rows] == list(range(7))
    assert [row.get("result") for row in rows] == [0, None, 4, None, None, None, 12]
    assert rows[1]["failed"] == "ValueError: raise"
    assert rows[3]["failed"].startswith("the process ended with 9")
    assert rows[5]["failed"] == "ValueError: lose"


def test_a_row_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchmarks.gpu.children._START", 2.0)
    given = jobs("right", "hang", "right")
    rows = list(supervised(COMMAND, given, patience=1, deadline=time.monotonic() + 60))
    assert [row.get("result") for row in rows] == [0, None, 4]
    assert rows[1]["failed"] == "no result after 1 seconds"


def test_what_is_behind_the_deadline_is_left_out():
    rows = side_by_side(COMMAND, jobs("right", "right"), 2, 10, time.monotonic())
    assert [row["failed"] for row in rows] == ["left out: the time is used up"] * 2


def row(ours: float, eager: float, compiled: float) -> dict[str, object]:
    seconds = {"ours": ours, "eager": eager, "compile": compiled}
    return {"family": "add", "name": str(ours), "seconds": seconds, "bytes": 1e9, "cold": True, "reads": False}


def test_the_bars(capsys: pytest.CaptureFixture[str]):
    rows = [row(1.0, 1.2, 1.0), row(2.0, 3.0, 1.6)]
    assert [against_better(one) for one in rows] == [1.0, 0.8]
    assert geomean([2.0, 8.0]) == pytest.approx(4)
    ceilings = {"copy": 2e9, "read": 2e9, "device": "a GPU", "torch": "2"}
    assert show([ceilings, *rows, {"case": "x", "failed": "why"}]) == 1
    said = capsys.readouterr().out
    assert "passed over all ≥ 1.1 × eager" in said
    assert "FAILED every family ≥ 0.97 × the better add 0.89" in said
    assert "FAILED no row under 0.85 × the better add 2.0 0.80" in said
    assert "FAILED x: why" in said
    assert "  50% copy" in said
