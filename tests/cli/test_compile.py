"""`loopwright compile`, and `run` and `inspect` of what it writes; of models, one is compiled for all the tests."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from loopwright.cli import app
from loopwright.cli.compiled_model import (
    BadOption,
    Options,
    compile_model,
    graph_context,
    lowered,
    read_config,
    read_layouts,
)
from loopwright.cli.model_files import read_model
from loopwright.cli.package import BadPackage, load_package, read_metadata
from loopwright.runtime.c_header import identifier
from tests.cli.models import MLP, NET, save
from tests.html_check import check_html

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def run(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output + result.stderr
    return result.stdout


def error_of(*arguments):
    result = invoke(*arguments, "--json")
    assert result.exit_code == 1, result.output
    return json.loads(result.stdout)["error"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and what is compiled from it: net.tar, and net.so with its header and C program."""
    path = tmp_path_factory.mktemp("models")
    (path / "net.relay").write_text(NET)
    run(
        "compile", path / "net.relay", "-o", path / "net.tar", "--report", path / "net.html", "--dump-code", "tir,relay"
    )
    return path


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """The same in a folder of the test's own."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expected(x, w):
    return np.maximum(x @ w.T, 0)


@needs_cc
def test_a_package_holds_everything_and_runs(here):
    with tarfile.open("net.tar") as archive:
        names = archive.getnames()
    assert names == ["metadata.json", "mod.so", "mod.json", "mod.params", "mod.h", "main.c"]
    assert "nn.relu" in Path("net.tar.relay").read_text() and "T.prim_func" in Path("net.tar.tir").read_text()
    x, w = np.arange(8, dtype="float32").reshape(2, 4) - 3, np.arange(12, dtype="float32").reshape(3, 4) - 5
    np.savez("in.npz", x=x, w=w)
    text = run("run", "net.tar", "--inputs", "in.npz", "-o", "out.npz", "--print-top", "2")
    assert "input x: float32[2, 4], in.npz" in text and "wrote out.npz" in text
    found = np.load("out.npz")["output_0"]
    np.testing.assert_array_equal(found, expected(x, w))  # small integers: exact in any order
    top = np.argsort(-found.reshape(-1), kind="stable")[:2]
    assert re.search(rf"Largest of output_0:\n +{top[0]}  \S+\n +{top[1]}  ", text)


@needs_cc
def test_the_report_stands_alone(here):
    text = check_html(Path("net.html").read_text(encoding="utf-8"))
    for part in ("Graph", "Kernels", "Memory", "Compiling", "nn_dense", "x: float32[n, 4]", "every schedule step"):
        assert part in text


@needs_cc
def test_a_library_comes_with_its_header_and_a_program_that_runs(here):
    found = json.loads(run("compile", "net.relay", "-o", "small.so", "--json", "--input-shapes", "x:[2,4]"))
    assert found["wrote"] == ["small.h", "small.so", "small_main.c"]
    assert found["outputs"] == [{"name": "output_0", "dtype": "float32", "shape": [2, 3]}]
    subprocess.run("cc small_main.c ./small.so -Wl,-rpath,. -o small".split(), check=True)
    shown = subprocess.run(["./small"], check=True, capture_output=True, text=True)
    assert shown.stdout.endswith("[0] = 0\n")  # zeros in, zeros out
    text = run("run", "small.so", "--print-time", "--repeat", "2")
    assert "input x: float32[2, 4], random" in text and "Execution time summary:" in text
    assert "input x: float32[2, 4]" in run("inspect", "small.so")


@needs_cc
def test_objects_in_a_package_are_linked_when_it_is_loaded(here):
    run("compile", "net.relay", "-o", "objects.tar", "-f", "tar")
    assert "mod.tar" in tarfile.open("objects.tar").getnames()
    same = [run("run", name, "n=2", "--seed", "4").splitlines()[3] for name in ("net.tar", "objects.tar")]
    assert same[0] == same[1] and "crc32" in same[0]


def test_c_source(here):
    error = error_of("compile", "net.relay", "-o", "net.c", "-t", "c")
    assert (error["code"], '--input-shapes "x:[1,4]"' in error["hint"]) == ("LW1255", True)
    (here / "net.relay").write_text(NET.replace("(n, 4)", "(2, 4)"))
    text = run("compile", "net.relay", "-o", "net.c", "--module-name", "small net", "--dump-code", "tir")
    assert text.startswith("wrote net.c, net.c.tir, net.h\n")
    assert "small_net" in Path("net.h").read_text() and "small_net_kernel_0" in Path("net.c").read_text()


@needs_cc
def test_onnx_with_its_own_weights_and_names(here):
    pytest.importorskip("onnx")
    save(here / "mlp.onnx", MLP)
    shown = run("compile", "mlp.onnx", "-o", "mlp.tar", "--constants", "file", "--print-pass-times")
    assert "2 launches of 2 kernels" in shown and "FuseOps" in shown and "plus, for each call, " in shown
    assert "mod.weights" in tarfile.open("mlp.tar").getnames()
    x = np.eye(4, dtype="float32")[:3]
    np.save("x.npy", x)
    found = json.loads(run("run", "mlp.tar", "--json", "-i", "x.npy", "-o", "y.npz"))
    w = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3], "float32").reshape(4, 3)
    v = np.array([1, -1, 2, -2, 3, -3], "float32").reshape(3, 2)
    np.testing.assert_array_equal(np.load("y.npz")["output_0"], np.maximum(x @ w, 0) @ v)
    assert found["outputs"][0]["name"] == "y" and found["outputs"][0]["shape"] == [3, 2]
    profiled = json.loads(run("run", "mlp.onnx", "--profile", "--print-time", "--end-to-end", "--json", "batch=2"))
    assert len(profiled["profile"]) == 2 and profiled["inputs"][0]["shape"] == [2, 4]
    assert profiled["profile"][0]["operators"] == ["dense", "relu"] and profiled["roofline"]["flops"] > 1e6
    text = run("compile", "mlp.onnx", "-o", "mlp.tar", "--profile", "--input-shapes", "x:[2,4]")
    assert "why not faster" in text and "one call of the model: " in text
    refused = error_of("compile", "mlp.onnx", "-o", "mlp.c", "--profile")
    assert refused["problem"] == "--profile -o mlp.c: C source is not compiled here: there is nothing to run"
    assert profiled["times"]["min"] <= profiled["times"]["median"] <= profiled["times"]["max"]


@needs_cc
def test_an_output_whose_size_the_run_finds(here):
    pytest.importorskip("onnx")
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3] x) => (int64[2, k] y) { y = NonZero(x) }'
    save(here / "nonzero.onnx", text)
    run("compile", "nonzero.onnx", "-o", "nonzero.tar")
    x = np.zeros((5, 3), "float32")
    x[1, 2] = x[4, 0] = 1
    np.savez("x.npz", x=x)
    run("run", "nonzero.tar", "-i", "x.npz", "-o", "y.npz")
    np.testing.assert_array_equal(np.load("y.npz")["output_0"], np.nonzero(x))


def test_a_value_that_the_graph_is_made_for_comes_from_the_inputs(here):
    pytest.importorskip("onnx")
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, int64[1] n) => (float[m] y) { y = Tile(x, n) }'
    save(here / "tile.onnx", text)
    np.savez("n.npz", n=np.array([3]))
    found = json.loads(run("inspect", "tile.onnx", "--values", "n.npz", "--json"))
    assert found["outputs"] == [{"name": "y", "dtype": "float32", "shape": [6]}]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["-o", "net.xyz"], "LW0051", "--output net.xyz: unknown suffix"),
        (["-o", "nowhere/net.so"], "LW0148", "the folder nowhere does not exist"),
        (["-o", "net.so", "-f", "tar"], "LW0051", "it says what is inside a package, and net.so is none"),
        (["-f", "mlf"], "LW0051", "it is neither so nor tar"),
        (["--constants", "cloud"], "LW0051", "it is neither library nor file"),
        (["-o", "net.c", "--constants", "file"], "LW0051", "only a linked library reads its weights from a file"),
        (["--dump-code", "wasm"], "LW0051", "'wasm' is no kind of code"),
        (["-o", "net.c", "--dump-code", "asm"], "LW0051", "there is no code to show"),
        (["-o", "a.tar", "--report", "a.tar"], "LW0051", "it is the output itself"),
        (["--pass-config", "tir.disable_vectorize"], "LW0051", "it is not NAME=VALUE"),
        (["--pass-config", "tir.disable_vectorise=1"], "LW0520", "no setting is called 'tir.disable_vectorise'"),
        (["--desired-layout", "NHWC", "--desired-layout", "NCHW"], "LW0051", "there are 2 layouts for 3 operators"),
        (["--desired-layout", "FOO"], "LW0051", "--desired-layout FOO: it is no layout of the data"),
        (["--desired-layout", "NHWC:NHWC"], "LW0051", "--desired-layout NHWC: it is no layout of the weights"),
        (
            ["--desired-layout", "NHWC", "--desired-layout-ops", "nn.conv2"],
            "LW0051",
            "--desired-layout-ops nn.conv2: there is no such operator",
        ),
        (["--disabled-pass", "FuseOps,foo"], "LW0051", "--disabled-pass foo: no pass is called that"),
        (["--report", "/dev/null"], "LW0048", "/dev/null cannot be written: it is not a regular file"),
        (["--input-shapes", "x=2"], "LW0047", "is no list of input shapes"),
        (["--model-format", "caffe"], "LW0046", "there is no format 'caffe'"),
        (["--target", "lvm"], "LW0601", "unknown target kind 'lvm'"),
        (["--values", "nowhere.npz"], "LW0053", "no arrays can be read from nowhere.npz"),
    ],
)
def test_options_are_refused_and_nothing_is_written(here, options, code, problem):
    before = sorted(here.iterdir())
    error = error_of("compile", "net.relay", *options)
    assert (error["code"], problem in error["problem"]) == (code, True), error["problem"]
    assert sorted(here.iterdir()) == before


def test_a_model_that_is_no_model(here):
    (here / "bad.relay").write_text("def @main(")
    assert error_of("compile", "bad.relay")["code"].startswith("LW12")
    assert error_of("compile", "nowhere.onnx")["code"] == "LW0045"
    pytest.importorskip("onnx")
    (here / "bad.onnx").write_bytes(b"\x00\x01 no model")
    assert error_of("compile", "bad.onnx")["code"] == "LW1301"
    assert not (here / "module.tar").exists()
    (here / "kernel.py").write_text("")
    for command in (("compile", "kernel.py:make", "-o", "k.so"), ("inspect", "kernel.py:make")):
        assert error_of(*command)["problem"] == "kernel.py is a Python file, and no model"


@needs_cc
def test_a_full_disk_while_writing(here, monkeypatch):
    before = {path.name: path.read_bytes() for path in here.iterdir()}

    def full(path, parts):
        path.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("loopwright.cli.compile.write_package", full)
    error = error_of("compile", "net.relay", "-o", "net.tar")
    assert error["code"] == "LW0048" and "net.tar cannot be written: No space left on device" in error["problem"]
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_missing_framework_ends_with_its_own_status(here, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    (here / "m.onnx").write_bytes(b"")
    result = invoke("compile", "m.onnx")
    assert result.exit_code == 5
    assert result.stderr.strip() == "reading ONNX models needs the package onnx: pip install onnx"


@needs_cc
@pytest.mark.parametrize(
    ("arrays", "options", "problem"),
    [
        ({"z": np.zeros(1)}, [], "has an array 'z', and the model has no input of that name"),
        ({"x": np.zeros((2, 4))}, [], "'x' has dtype float64, expected float32"),
        ({"x": np.zeros((2, 5), "float32")}, [], "dimension 1 is 5, not 4"),
        ({}, ["m=3"], "'m=3' is not the value of a size"),
        ({}, ["--fill-mode", "twos"], "there is no fill mode 'twos'"),
        ({}, ["--profile"], "net.tar cannot be profiled"),
        ({}, ["--device", "cuda"], "running a model on 'cuda'"),
        ({}, ["-o", "nowhere/out.npz"], "the folder nowhere does not exist"),
    ],
)
def test_runs_that_are_refused(here, arrays, options, problem):
    np.savez("in.npz", **arrays)
    error = error_of("run", "net.tar", "-i", "in.npz", *options)
    assert problem in error["problem"], error["problem"]


def test_inputs_that_cannot_be_read(here):
    (here / "in.npz").write_bytes(b"no arrays")
    assert error_of("run", "net.relay", "-i", "in.npz")["code"] == "LW0053"
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "no arrays can be read" in error_of("run", "net.relay", "-i", "objects.npy")["problem"]
    (here / "in.npz").write_bytes(b"PK\3\4junk")
    for command in (["run", "net.relay", "-i", "in.npz"], ["compile", "net.relay", "--values", "in.npz"]):
        assert "no arrays can be read from in.npz: File is not a zip file" in error_of(*command)["problem"]


def test_sizes_that_cannot_be(here):
    np.savez("in.npz", x=np.ones((2, 4), "float32"))
    assert error_of("run", "net.tar", "n=-1")["problem"] == "n=-1: a dimension cannot be negative"
    contradiction = error_of("run", "net.tar", "-i", "in.npz", "n=3")["problem"]
    assert contradiction == "n=3: the array 'x' of in.npz has n = 2"
    assert json.loads(run("run", "net.tar", "-i", "in.npz", "n=2", "--json"))["inputs"][0]["shape"] == [2, 4]
    assert error_of("run", "net.tar", "n=3", "n=3")["problem"] == "n=3: n is given twice, 3 before"


def test_a_model_is_a_regular_file(here):
    for command in (["inspect", "/dev/null"], ["compile", "/dev/null"]):
        error = error_of(*command)
        assert error["problem"] == "/dev/null is not a regular file"
        assert error["hint"] == "give the path of a model, such as model.onnx"


def test_passes_and_layouts_that_exist_are_named(here):
    assert "did you mean FuseOps?" in error_of("compile", "net.relay", "--disabled-pass", "FuseOp")["hint"]
    assert "NCHW, NHWC" in error_of("compile", "net.relay", "--desired-layout", "NHCC")["hint"]
    run("compile", "net.relay", "-o", "net.o", "--disabled-pass", "FuseOps,tir.LoopPartition,vectorize_loops")


@needs_cc
def test_damaged_packages(here):
    data = Path("net.tar").read_bytes()
    for size in (0, 100, 600, len(data) // 2):
        Path("cut.tar").write_bytes(data[:size])
        assert invoke("run", "cut.tar").exit_code == 1
    Path("noise.tar").write_bytes(bytes(range(256)) * 20)
    with pytest.raises(BadPackage, match=r"noise\.tar is no package that can be read"):
        read_metadata("noise.tar")
    Path("newer.tar").write_bytes(data.replace(b'"loopwright_package": 1', b'"loopwright_package": 9'))
    with pytest.raises(BadPackage, match="it has format 9, this version reads 1"):
        load_package("newer.tar")
    with tarfile.open("empty.tar", "w") as archive:
        archive.add("net.relay", "metadata.json")
    with pytest.raises(BadPackage, match="is no package"):
        load_package("empty.tar")


def test_options_as_they_are_written():
    assert read_config(["tir.disable_vectorize=True"]) == {"tir.disable_vectorize": True}
    with pytest.raises(BadOption, match="'maybe' is not a truth value"):
        read_config(["tir.disable_vectorize=maybe"])
    assert read_layouts(["NHWC:HWIO"], ["nn.conv2d"]) == {"nn.conv2d": ["NHWC", "HWIO"]}
    assert read_layouts(["NHWC", "NCHW"], ["a", "b"]) == {"a": ["NHWC", "default"], "b": ["NCHW", "default"]}
    assert [identifier(text) for text in ("net", "my-net.v2", "3d", "")] == ["net", "my_net_v2", "_3d", "_"]


def test_layouts_and_narrow_types_are_those_asked_for(tmp_path):
    (tmp_path / "conv.relay").write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {\n"
        "  nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3])\n}\n"
    )
    model = read_model(str(tmp_path / "conv.relay"))
    for options, part in (
        (Options(layouts=read_layouts(["NHWC"], ["nn.conv2d"])), 'data_layout="NHWC"'),
        (Options(mixed="float16"), "float16"),
    ):
        with graph_context(options):
            fused, _ = lowered(model, options)
        assert part in str(fused)
    with graph_context(Options()):
        assert "float16" not in str(lowered(model, Options())[0])


def test_kernels_come_from_the_cache_the_second_time(here, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(here / "cache"))
    monkeypatch.delenv("LOOPWRIGHT_CACHE", raising=False)
    first, second = [compile_model(read_model("net.relay"), Options()).built.compiled.counts for _ in range(2)]
    assert (first.compiled, first.from_cache) == (1, 0)
    assert (second.compiled, second.from_cache) == (0, 1)
    from loopwright import relay

    mod = read_model("net.relay").mod
    assert relay.build(mod, winograd=True).compiled.counts.from_cache == 1  # the same kernels as those of relay.build


def test_another_precision_is_compared_with_float32(tmp_path):
    path = save(tmp_path / "mlp.onnx", MLP)
    samples = tmp_path / "samples.npz"
    np.savez(samples, x=np.random.default_rng(0).uniform(0, 1, (3, 2, 4)).astype("float32"))  # three of two rows
    package = tmp_path / "mlp.tar"
    text = run("compile", path, "-o", package, "--precision", "int8", "--calibrate", samples)
    assert "int8: " in text and "times as fast" in text and "top-1 agreement 100.0% (3 samples of 2 rows)" in text
    facts = read_metadata(str(package))  # what --json prints
    accuracy = facts["accuracy"]
    assert facts["precision"] == "int8" and accuracy["source"] == "samples.npz" and accuracy["top1"] == 1.0
    assert 0 < accuracy["max_difference"] < 0.03 * accuracy["largest"]
    assert accuracy["run_seconds"] > 0 and accuracy["float32_run_seconds"] > 0
    assert "computes in int8" in run("run", package)
    assert json.loads(run("run", package, "--json"))["precision"] == "int8"
    for options, words in [
        (("--precision", "int3"), "unknown precision 'int3'"),
        (("--calibrate", samples), "samples are for a precision other than float32"),
        (("--precision", "int8", "--calibrate-mode", "guess"), "there is no such mode"),
        (("--precision", "float16", "--mixed-precision"), "--mixed-precision says it already"),
        (("--precision", "int8", "--calibrate", tmp_path / "nowhere.npz"), "no arrays can be read"),
    ]:
        assert words in error_of("compile", path, "-o", package, *options)["message"]
    np.savez(tmp_path / "other.npz", y=np.zeros((2, 4)))
    wrong = error_of("compile", path, "--precision", "int8", "--calibrate", tmp_path / "other.npz")
    assert "no input of that name" in wrong["message"]


def test_sizes_that_nobody_gave_are_said(here):
    text = run("run", "net.relay")
    assert "n = 1 by default: set it by n=24 after the model, or by an array in --inputs" in text
    assert "by default" not in run("run", "net.relay", "n=2")
    assert json.loads(run("run", "net.relay", "--json"))["assumed_sizes"] == {"n": 1}


def test_a_package_for_another_machine_is_named(here):
    other = "riscv64-unknown-linux-gnu" if platform.machine() != "riscv64" else "aarch64-unknown-linux-gnu"
    run("compile", "net.relay", "-o", "other.tar", "-f", "tar", "-t", f"llvm -mtriple={other}")
    result = invoke("run", "other.tar")
    assert "the package 'other.tar' cannot run on this machine: it was made for another" in result.stderr
