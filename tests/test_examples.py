"""The examples run (at their own sizes where those are small) and say what they should."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir import assert_structural_equal
from loopwright.schedule import Schedule, Trace
from tests.html_check import check_html

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def load(name: str, **sizes: int) -> ModuleType:
    """An example as a module, with some of its sizes changed before its functions run."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    for size, value in sizes.items():
        setattr(module, size, value)
    return module


def test_the_chain_of_products_at_a_small_size(capsys):
    chain = load("matmul_chain", M=64, K=128, N=64, L=192)
    chain.main()
    shown = capsys.readouterr().out
    for part in ("@T.prim_func", "packed GEMM", "Scheduled by rule", "te, scheduled by rule", "loops as written"):
        assert part in shown


def test_the_demo_at_a_small_size(capsys, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    demo = load("demo", IMAGE=32, STAGES=(1, 1, 0, 0), PAIRS=1)
    small = sys.modules["resnet50"]
    monkeypatch.setattr(small, "FIRST", 8)
    monkeypatch.setattr(small, "WIDTHS", (4, 8, 8, 8))
    monkeypatch.setattr(small, "CLASSES", 10)
    demo.main()
    shown = capsys.readouterr().out
    for part in ("seeded random weights", "equal to the lower bound", "of its bound", "Loopwright", "slowest kernels"):
        assert part in shown
    page = (tmp_path / "build/demo/report.html").read_text(encoding="utf-8")
    text = check_html(page)
    assert "stage1.0.sum.relu" in text and "the lower bound" in text and "Against float64" in text


def test_a_network_in_float64_is_within_its_own_bound_of_a_float32_run(monkeypatch):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    resnet50 = load("resnet50", FIRST=8, WIDTHS=(4, 8, 8, 8), CLASSES=10)
    model = resnet50.resnet50(image=16, blocks=(1, 1, 0, 0))
    onnx.checker.check_model(model)
    image = np.random.default_rng(0).standard_normal((1, 3, 16, 16), np.float32)
    exact = load("float64_network").float64_network(model, {"image": image})["logits"]
    (single,) = ReferenceEvaluator(model).run(None, {"image": image})
    error = np.abs(single - exact.value)
    assert 0 < error.max() and (error <= exact.bound()).all()
    assert (exact.bound() < 1e-4 * np.abs(exact.value).max()).all()  # it allows rounding, not mistakes


def test_every_rung_of_the_textbook_ladder_keeps_the_values():
    ladder = load("textbook_ladder", M=32, K=64, N=128, L=128)
    function = te.create_prim_func(ladder.chain())
    rng = np.random.default_rng(0)
    a, b, c = (rng.uniform(-0.2, 0.2, shape).astype("float32") for shape in ((32, 64), (64, 128), (128, 128)))
    exact = np.exp(a.astype("float64") @ b) @ c
    for rung in ladder.RUNGS:
        sch = Schedule(function)
        rung(sch)
        assert sch.is_proved
        f = np.empty((32, 128), "float32")
        lw.build(sch.mod)(a, b, c, f)
        np.testing.assert_allclose(f, exact, rtol=0, atol=(64 + 128 + 8) * 2**-23 * 128 * 0.2 * 1.5)


gemm_ladder = load("gemm_ladder")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rung", gemm_ladder.RUNGS, ids=lambda rung: rung.__name__)
@pytest.mark.parametrize(("m", "n", "k"), [(12, 128, 8), (1, 64, 1), (7, 65, 3)])
def test_every_rung_of_the_product_is_proved_and_right(rung, m, n, k):
    sch = gemm_ladder.scheduled(rung, m, n, k, gemm_ladder.Sizes(rows=6, columns=64, panel=64, lanes=16))
    assert sch.is_proved
    rng = np.random.default_rng(0)
    a, b, c = rng.random((m, k), np.float32), rng.random((k, n), np.float32), np.empty((m, n), np.float32)
    lw.build(sch.mod)(a, b, c)
    exact = a.astype("float64") @ b
    assert (np.abs(c - exact) <= k * 2.0**-24 * exact).all()


def test_sizes_of_the_product_follow_from_the_machine():
    cpu = lw.target.describe("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")
    large = replace(cpu, cache_sizes=lw.target.Caches(48 << 10, 2 << 20, 32 << 20, 64))
    assert gemm_ladder.choose_sizes(768, 768, large) == gemm_ladder.Sizes(rows=6, columns=64, panel=256, lanes=16)
    assert gemm_ladder.choose_sizes(1536, 1536, large).panel == 128
    plain = lw.target.describe("llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=sifive-u74")
    assert gemm_ladder.choose_sizes(7, 7, plain).lanes == plain.native_vector_lanes("float32")


def test_the_ladder_of_the_product_prints_a_table(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gemm_ladder.py", "64"])
    gemm_ladder.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:]] == [*[rung.__name__ for rung in gemm_ladder.RUNGS], "by"]
    monkeypatch.setattr(sys, "argv", ["gemm_ladder.py", "64", "--show", "packed"])
    gemm_ladder.main()
    assert "B_stage" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_an_exported_library_in_c_and_in_a_python_without_the_compiler(capfd):
    load("export_and_load").main()
    shown = capfd.readouterr().out
    assert "int32_t loopwright_softmax(const float *X, float *Y, int32_t rows);" in shown
    assert [line for line in shown.splitlines() if line.startswith("row ")] == [
        f"row {row} sums to 1.0000" for row in range(3)
    ]
    assert "rows sum to [1.0, 1.0, 1.0]" in shown
    assert "refused: softmax: argument Y has shape (3, 4), expected (3, 8) = (rows, 8)" in shown
    assert "the compiler was imported: False" in shown


def test_the_lstm(capsys):
    load("lstm_scan", STEPS=5, HIDDEN=8).main()
    shown = capsys.readouterr().out
    for part in ("te.scan  5 steps of 2×8", "script   5 steps", "Steps cannot run at once: parallel: loop t"):
        assert part in shown


def test_argmax(capsys):
    load("argmax").main()
    shown = capsys.readouterr().out
    assert [line.split(":")[0] for line in shown.splitlines()] == ["te", "te, rows in parallel", "script", "in lanes"]


def test_the_hybrid_convolution(capsys):
    load("hybrid_convolution", SIZE=7, FILTERS=3).main()
    shown = capsys.readouterr().out
    for part in ("as Python", "hybrid: shape (3, 7, 7)", "stride 2: shape (3, 4, 4)", "script: shape (3, 7, 7)"):
        assert part in shown


def test_calls_into_numpy_and_c(capsys):
    load("extern_calls").main()
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in shown] == ["te", "script"]


def test_the_int8_product(capsys):
    sys.path.insert(0, str(EXAMPLES))
    example = load("int8_matmul")
    sys.path.remove(str(EXAMPLES))
    for kind in example.available():
        assert kind in example.check_and_time(64, kind, 1)  # which checks every cell against numpy


# The same as te_schedules.py, which tests/te/schedule/test_same_as_tir.py shows.
tir_schedules = load("tir_schedules")


def test_there_is_a_tir_schedule_for_each_of_te():
    assert list(tir_schedules.CASES) == list(load("te_schedules").CASES)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", tir_schedules.CASES)
def test_a_tir_schedule_is_proved_right_and_replayed(name):
    case = tir_schedules.CASES[name]()
    assert case.schedule.is_proved
    assert tir_schedules.check(case) <= 1
    again = Schedule(case.function)
    Trace.apply_json_to_schedule(json.dumps(case.schedule.trace.as_json()), again)
    assert again.is_proved
    assert_structural_equal(again.mod, case.schedule.mod)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        *[("conv2d", (2, 3, size, 5)) for size in (4, 5, 7)],
        ("depthwise_conv2d", (1, 1, 3, 3)),
        ("max_pool_batch_norm", (1, 2)),
        *[("softmax", (3, columns)) for columns in (1, 4, 5)],
        *[("argmax", (3, columns)) for columns in (1, 7, 8, 9, 64)],
        ("lstm", (2, 1, 1)),
    ],
)
def test_a_tir_schedule_at_other_sizes(name, sizes):
    case = getattr(tir_schedules, name)(*sizes)
    assert case.schedule.is_proved
    assert tir_schedules.check(case) <= 1


def test_tir_schedules_print_programs_steps_and_a_table(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tir_schedules.py", "softmax"])
    tir_schedules.main()
    assert "for i in T.parallel(5)" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["tir_schedules.py", "--trace", "softmax"])
    tir_schedules.main()
    assert "sch.sink_alloc" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["tir_schedules.py"])
    monkeypatch.setattr(tir_schedules, "CASES", {"softmax": tir_schedules.softmax})
    tir_schedules.main()
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["schedule", "steps"]
    assert line.split()[:2] == ["softmax", "11"] and "True" in line
