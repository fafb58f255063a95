from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from loopwright.cli import app
from loopwright.ir import structural_equal
from loopwright.script import from_source

runner = CliRunner()

SCRIPT = """
from loopwright.script import tir as T, ir as I

@T.prim_func
def scale(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
    for i in range(10):
        with T.block("B"):
            v = T.axis.spatial(10, i)
            B[v] = A[v] * 2.0

@I.ir_module
class Both:
    @T.prim_func
    def main(A: T.Buffer((10,), "float32")):
        Both.helper(A.data)
    @T.prim_func(private=True)
    def helper(A: T.Buffer((10,), "float32")):
        A[0] = T.float32(1)

if __name__ == "__main__":
    raise SystemExit("not for show")
"""

TE = """
from loopwright import te
A = te.placeholder((4, 8), name="A")
k = te.reduce_axis((0, 8), name="k")
B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
C = te.compute((4,), lambda i: B[i] + 1.0, name="C")
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "programs.py"
    path.write_text(SCRIPT)
    return str(path)


def show(*arguments):
    result = runner.invoke(app, ["show", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_stage_that_changes_something(file):
    text = show(f"{file}:scale")
    assert re.findall(r"# ---- (\w+) -", text)[:2] == ["start", "lower_blocks"]
    assert 'with T.block("B"):' in text and "T.int64(10)" in text


def test_what_is_shown_is_a_file_that_can_be_shown(file, tmp_path):
    printed = tmp_path / "printed.py"
    printed.write_text(show(f"{file}:scale", "--stage", "start"))
    assert show(str(printed), "-s", "start").split("\n", 1)[1] == printed.read_text().split("\n", 1)[1]


def test_several_programs_and_functions_of_a_module(file):
    assert "# ---- scale: start" in (text := show(file, "-s", "start")) and "# ---- Both: start" in text
    assert "class Module:" in text
    assert "def helper" in show(f"{file}:Both.helper", "-s", "last")


def test_differences(file):
    text = show(f"{file}:scale", "--diff")
    assert "+        B[i] = A[i] * T.float32(2)" in text
    assert '-        with T.block("B"):' in text


def test_unchanged_stages_say_so(file):
    assert "write_inits (no change)" in show(f"{file}:scale", "--stage", "all")


def test_json_holds_scripts_that_read_back(file):
    (program,) = json.loads(show(f"{file}:scale", "--json"))
    first = program["stages"][0]
    assert program["program"] == "scale" and first["name"] == "start"
    assert structural_equal(from_source(first["script"]), from_source(program["stages"][1]["script"]))


def test_html_stands_alone(file, tmp_path):
    page = tmp_path / "out.html"
    assert show(file, "--html", str(page)) == f"wrote {page}\n"
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "what changed" in text and 'id="Both"' in text
    assert "<script" not in text and "http" not in text


def test_native_text(file):
    assert "define " in show(f"{file}:scale", "--llvm")
    assert "__tvm_ffi_scale" in show(f"{file}:scale", "--asm")
    assert show(file, "--stages").split()[:3] == ["start", "privatise_buffers", "check_run_once"]


def test_tensors_become_functions(tmp_path):
    path = tmp_path / "tensors.py"
    path.write_text(TE)
    assert 'def C(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")' in show(str(path), "-s", "start")
    assert "def B(" in show(f"{path}:B", "-s", "start")


def test_programs_scheduled_by_rule(tmp_path):
    path = tmp_path / "sums.py"
    path.write_text(TE)
    text = show(str(path), "--autosched", "--target", "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    assert re.findall(r"# ---- (\w+) -", text) == ["start", "explain"]
    assert "T.vectorized" in text or "T.unroll" in text
    (data,) = json.loads(show(str(path), "--autosched", "--json"))
    assert data["explain"] and data["stages"][0]["name"] == "start" and len(data["stages"]) > 2
    assert "explain" not in json.loads(show(str(path), "--json"))[0]
    page = tmp_path / "page.html"
    show(str(path), "--autosched", "--html", str(page))
    assert "<summary>explain</summary>" in page.read_text()
    assert show(str(path), "--autosched", "--asm") != show(str(path), "--asm")
    path.write_text("@T.prim_func\ndef one(A: T.Buffer((4,), 'float32')):\n    A[0] = T.float32(1)\n")
    assert "nothing was scheduled: rules are for blocks" in show(str(path), "--autosched")


FUNCTIONS = """
from loopwright import te
from loopwright.script import tir as T

def tensors():
    A = te.placeholder((4, 8), name="A")
    return [A, te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")]

def tensor(n=4):
    return tensors()[1]

def function():
    return te.create_prim_func(tensors())

def sized(n, m=2):
    return te.create_prim_func(tensors())

def number():
    return 3
"""


@pytest.mark.parametrize("name", ["tensors", "tensor", "function"])
def test_a_python_function_is_called_for_its_program(tmp_path, name):
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS)
    assert 'A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")' in show(f"{path}:{name}", "-s", "start")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere.py"], "NoSuchFile: nowhere.py does not exist"),
        (["{file}:scal"], "defines no program 'scal'; it defines scale, Both"),
        (["{file}", "--stage", "vectorise"], "lowering has no stage 'vectorise'"),
        (["{folder}/empty.py"], "empty.py defines no program"),
        (["{folder}/broken.py"], "InvalidSyntax|SyntaxError"),
        (["{folder}/raises.py"], "ZeroDivisionError: division by zero"),
        (["{folder}/mistake.py"], "BadShape: (.|\n)*more: loopwright explain LW0401"),
        (["{folder}/functions.py:sized"], "sized of .* is a Python function(.|\n)*needs n(.|\n)*program = sized.n.$"),
        (["{folder}/functions.py:number"], "number of .* is a Python function(.|\n)*it returned an int"),
        (["{folder}/functions.py"], "defines no program(.|\n)*ask for .*functions.py:tensors, or name its result"),
        (["{folder}"], "NoSuchFile: .* is a directory"),
        (["{file}", "--html", "{folder}/nowhere/x.html"], "NoSuchFolder: .*x.html: the folder .*nowhere does not"),
        (["{file}", "--target", "vulkan"], "target"),
    ],
)
def test_mistakes(file, tmp_path, arguments, problem):
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "mistake.py").write_text("from loopwright import te\nte.placeholder(5)\n")
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    given = [one.format(file=file, folder=tmp_path) for one in arguments]
    result = runner.invoke(app, ["show", *given])
    assert result.exit_code == 1
    assert re.search(problem, result.output, re.MULTILINE)
    assert "callback(" not in result.output


def test_a_model_is_no_program_and_a_program_no_model(file, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(b"\0")
    for command, name, told in (
        ("show", "tiny.onnx", "loopwright inspect {} shows its operators and shapes"),
        ("inspect", "programs.py", "loopwright show {} shows it"),
    ):
        path = str(tmp_path / "tiny.onnx") if name == "tiny.onnx" else file
        result = runner.invoke(app, [command, path])
        assert result.exit_code == 1
        assert told.format(path) in result.stderr
