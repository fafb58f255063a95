from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter

import pytest
from typer.testing import CliRunner

from loopwright.cli import app, doctor, explain

runner = CliRunner()


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert re.match(r"loopwright (\d+\.\d+\.\d+|\(not installed\))", result.stdout)


def test_python_dash_m_is_the_command():
    done = subprocess.run([sys.executable, "-m", "loopwright", "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("loopwright ")


def test_doctor_shows_the_machine():
    result = runner.invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for name in (
        "Python",
        "CPU",
        "Vectors",
        "Cores to use",
        "Caches",
        "LLVM",
        "tvm-ffi",
        "C compiler",
        "Thread pool",
        "CUDA",
    ):
        assert name in result.stdout


def test_doctor_in_a_file_has_whole_lines(monkeypatch):
    note = "a sentence that is " + "long, " * 30
    monkeypatch.setattr(doctor, "_PROBES", (lambda: [doctor.Fact("one", "One", "not found", "missing", note)],))
    result = runner.invoke(app, ["doctor"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 4 and lines[3] == f"–  One         not found: {note}".rstrip()


def test_doctor_in_json():
    report = json.loads(runner.invoke(app, ["doctor", "--json"]).stdout)
    keys = "python cpu vector_bits cores caches llvm thread_pool torch onnx cuda nvrtc gpu"
    assert set(keys.split()) <= set(report)
    assert "llvmlite" in report["llvm"]["value"]
    assert report["python"]["state"] == "fine"
    assert report["cuda"]["state"] == "missing"
    assert "libcuda.so.1" in report["cuda"]["value"]


def test_doctor_says_what_a_missing_package_means(monkeypatch):
    monkeypatch.setattr(doctor, "_is_installed", lambda module: False)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    result = runner.invoke(app, ["doctor", "--json"])
    report = json.loads(result.stdout)
    assert report["llvm"] == {
        "value": "not found",
        "state": "broken",
        "note": "nothing can be compiled; install llvmlite",
    }
    assert "install gcc or clang" in report["c_compiler"]["note"]
    for package in ("torch", "onnx"):
        assert report[package]["note"].endswith(f"models cannot be read; pip install {package}")
    assert result.exit_code == 1


def test_doctor_survives_a_probe_that_fails(monkeypatch):
    def _sick() -> list[doctor.Fact]:
        raise OSError("no such thing")

    monkeypatch.setattr(doctor, "_PROBES", (_sick, doctor._python))
    facts = doctor.examine("1.0")
    assert [fact.key for fact in facts] == ["loopwright", "sick", "python", "platform"]
    assert facts[1].state == "broken"
    assert facts[1].note == "OSError: no such thing"


def test_doctor_without_a_compiler_blames_it_for_exports_only(monkeypatch):
    from loopwright.runtime import thread_pool

    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ziglang" else find_spec(name))
    (fact,) = doctor._c_compiler()
    assert (fact.value, fact.state) == ("not found", "missing")
    assert fact.note == "shared libraries cannot be exported; install gcc or clang, or pip install ziglang"
    monkeypatch.setattr(thread_pool, "is_prebuilt", lambda: True)
    (fact,) = doctor._thread_pool()
    assert fact.value == f"prebuilt, {thread_pool.num_threads()} threads"


def test_doctor_names_the_serial_fallback(monkeypatch):
    from loopwright.runtime import thread_pool

    monkeypatch.setattr(thread_pool, "library", lambda: None)
    monkeypatch.setattr(thread_pool, "why_serial", lambda: "there is no C compiler")
    (fact,) = doctor._thread_pool()
    assert (fact.value, fact.state) == ("serial fallback", "missing")
    assert fact.note == "there is no C compiler; parallel loops run serially"


def test_doctor_says_why_arrays_pass_through_dlpack(monkeypatch):
    from loopwright.runtime import array_call

    monkeypatch.setattr(array_call, "why_not", lambda: "there is no C compiler")
    (fact,) = doctor._array_calls()
    assert (fact.value, fact.state) == ("through DLPack", "missing") and "no C compiler" in fact.note


@pytest.mark.parametrize("code", ["LW0601", "lw0601", "601", "LW601"])
def test_explain_prints_the_page(code):
    result = runner.invoke(app, ["explain", code])
    assert result.exit_code == 0
    assert result.stdout.startswith("UnknownTargetKind [LW0601] (a ValueError)\n")
    assert "The first word of a target names what generates the code" in result.stdout


def test_explain_knows_the_base_classes():
    assert "[LW0002]" in explain.page("LW0002")
    assert "never the user's mistake" in explain.page("LW0002")


def test_explain_offers_the_nearest_codes():
    known = {int(code[2:]) for code in explain.catalogue()}
    missing = min(code for code in range(601, 700) if code not in known)
    result = runner.invoke(app, ["explain", f"LW{missing:04d}"])
    assert result.exit_code == 1
    assert f"no error has the code LW{missing:04d}" in result.output
    assert f"LW{missing - 1:04d}" in result.output
    result = runner.invoke(app, ["explain", "hello"])
    assert result.exit_code == 1
    assert "no error has the code or the name hello" in result.output


@pytest.mark.parametrize(
    "asked", ["UnknownTargetKind", "unknowntargetkind", "loopwright.target.errors.UnknownTargetKind", "[LW0601]"]
)
def test_explain_knows_errors_by_name(asked):
    assert explain.page(asked) == explain.page("LW0601")


def test_explain_offers_the_nearest_names():
    with pytest.raises(explain.UnknownErrorCode, match="the code or the name UnknownTargetKnd") as caught:
        explain.page("UnknownTargetKnd")
    assert caught.value.hint is not None and caught.value.hint.startswith("did you mean UnknownTargetKind")


def test_a_name_of_several_errors_is_settled_by_their_codes():
    with pytest.raises(explain.SeveralErrors, match="2 errors have the name OutOfBounds") as caught:
        explain.page("OutOfBounds")
    codes = caught.value.fields["codes"]
    assert len(codes) == 2 and all([code in str(caught.value) for code in codes])
    entry = explain.catalogue()[codes[1]]
    assert explain.find(f"{entry.module}.{entry.name}") == entry


def test_explain_lists_all():
    listing = runner.invoke(app, ["explain"]).stdout.splitlines()
    assert len(listing) == len(explain.catalogue())
    assert any(line.startswith("LW0601  UnknownTargetKind") for line in listing)


def test_every_code_belongs_to_one_error_and_every_error_has_a_page():
    entries = explain.definitions()
    twice = [code for code, count in Counter(entry.code for entry in entries).items() if count > 1]
    assert not twice, [entry for entry in entries if entry.code in twice]
    assert not [entry for entry in entries if len(entry.page) < 20]
    assert not [entry for entry in entries if not re.fullmatch(r"LW\d{4}", entry.code)]


def test_a_guessed_command_is_told_what_to_write():
    result = runner.invoke(app, ["build", "kernel.py"])
    assert result.exit_code == 2
    plain = " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", "", result.output).split())
    assert "No such command 'build': `loopwright compile MODEL` compiles a model; `loopwright run FILE` builds" in plain


def test_the_list_of_errors_has_whole_sentences():
    assert not [line for line in explain.listing().splitlines() if line.endswith((";", ":", ","))]


def test_an_unknown_processor_is_refused():
    result = runner.invoke(app, ["targets", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v9"])
    assert result.exit_code == 1
    assert "unknown CPU 'neoverse-v9'" in result.output
    assert "LW0606" in result.output
