"""Every schedule of `examples/te_schedules.py` is proved, and right against numpy."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[3] / "examples" / "te_schedules.py"
spec = importlib.util.spec_from_file_location("te_schedules_example", PATH)
assert spec is not None and spec.loader is not None
example = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = example
spec.loader.exec_module(example)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", example.CASES)
def test_proved_and_right(name):
    case = example.CASES[name]()
    assert case.schedule.as_tir_schedule(case.args).is_proved
    assert example.check(case) <= 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [4, 5, 7])
def test_a_convolution_of_any_size(size):
    assert example.check(example.conv2d(2, 3, size, 5)) <= 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 64])
def test_argmax_of_any_length(columns):
    assert example.check(example.argmax(3, columns)) == 0


def test_it_prints_programs_and_steps(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["te_schedules.py", "softmax"])
    example.main()
    assert "for i in T.parallel(5)" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["te_schedules.py", "--trace", "softmax"])
    example.main()
    assert "sch.compute_at" in capsys.readouterr().out
