from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from loopwright.cli import app
from loopwright.cli.run import only_defines

runner = CliRunner()

ADD = """
from loopwright.script import tir as T

@T.prim_func
def add(a: T.handle, b: T.handle, scale: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] + scale

@T.prim_func
def answer(x: T.int64) -> T.int64:
    T.ret(x + T.int64(2))
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "add.py"
    path.write_text(ADD)
    return str(path)


def run(*arguments):
    result = runner.invoke(app, ["run", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_programs_run_on_random_inputs(file):
    text = run(f"{file}:add", "n=5")
    assert "argument A: float32[5]" in text and "argument scale: float32 = 1.0" in text
    assert re.search(r"wrote B: sum \S+, crc32 [0-9a-f]{8}", text)
    assert "largest difference 0" in text and "median of 5" in text
    assert run(f"{file}:add", "n=5").splitlines()[4] == text.splitlines()[4]  # the same inputs every time


def test_all_programs_of_a_file_that_only_defines(file):
    (add, answer) = json.loads(run("--json", "--repeat", "1", file))
    assert add["program"] == "add" and add["arguments"][0]["shape"] == [64]
    assert answer["returned"] == 66 and answer["difference_from_evaluator"] == 0.0


@pytest.mark.parametrize("dtype", "bool int8 uint8 int64 float16 bfloat16 float64".split())
def test_every_type(tmp_path, dtype):
    path = tmp_path / "copy.py"
    path.write_text(
        f'@T.prim_func\ndef copy(A: T.Buffer((3,), "{dtype}"), B: T.Buffer((3,), "{dtype}")):\n'
        "    for i in range(3):\n        B[i] = A[i]\n"
    )
    assert "largest difference 0" in run(str(path))


def test_options_may_follow_the_file(file):
    (named,) = json.loads(run(f"{file}:add", "--json", "n=5", "--repeat", "1"))
    assert named["program"] == "add" and named["arguments"][0]["shape"] == [5]
    add, answer = json.loads(run(file, "--repeat", "1", "--json"))
    assert add["program"] == "add" and answer["returned"] == 66


def test_a_script_keeps_options_of_ours_that_follow_it(file):
    assert run("--script", file, "--json", "--seed", "x") == ""  # it defines programs, and does nothing
    assert run("--script", file, "--help") == ""


def test_scripts_get_their_arguments(tmp_path):
    path = tmp_path / "script.py"
    path.write_text('import sys\nif __name__ == "__main__":\n    print("got", sys.argv[1:])\n')
    assert run(str(path), "--seed", "x") == "got ['--seed', 'x']\n"
    assert not only_defines(str(path))


@pytest.mark.parametrize("given", ["--autoschd {file}", "{file} --autoschd", "{file}:add --autoschd"])
def test_an_unknown_option_is_no_argument(file, given):
    result = runner.invoke(app, ["run", *given.format(file=file).split()])
    assert result.exit_code == 2
    assert "No such option: --autoschd" in re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_programs_scheduled_by_rule(tmp_path, monkeypatch):
    from loopwright.cli import run as command

    asked = []
    compiled = command.compiled

    def watched(module, target, autosched=False):
        asked.append(autosched)
        return compiled(module, target, autosched)

    monkeypatch.setattr(command, "compiled", watched)
    path = tmp_path / "copy.py"
    path.write_text(
        "from loopwright import te\nA = te.placeholder((37,), name='A')\n"
        "B = te.compute((37,), lambda i: A[i] * 2, name='B')\n"
    )
    assert "largest difference 0" in run("--autosched", str(path))
    assert "largest difference 0" in run(str(path))
    assert asked == [True, False]


def test_a_script_may_end_with_a_status(tmp_path):
    path = tmp_path / "leaves.py"
    path.write_text("import sys\nsys.exit(3)\n")
    assert runner.invoke(app, ["run", str(path)]).exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["{file}:add", "n:5"], "BadSize: 'n:5' is not the value of a size or number"),
        (["{file}:add", "m=5"], "'m=5' is not .*the program takes scale, n"),
        (["{file}:add", "n=-5"], "BadSize: n=-5: dimension 0 of A would be -5"),
        (["{file}:add", "n=3", "n=4"], "BadSize: n=4: n is given twice, 3 before"),
        (["/dev/null"], "NoSuchFile: /dev/null is not a regular file"),
        (["{folder}/pointer.py"], "CannotInvent: parameter p is a handle"),
        (["nowhere.py"], "NoSuchFile"),
        (["--autosched", "{folder}/fails.py"], "ScriptNotScheduled: .*fails.py is a script"),
        (["{folder}/fails.py"], "BadShape: (.|\n)*call: te.placeholder.5. at fails.py:2"),
    ],
)
def test_mistakes(file, tmp_path, arguments, problem):
    (tmp_path / "pointer.py").write_text("@T.prim_func\ndef f(p: T.handle):\n    T.evaluate(0)\n")
    (tmp_path / "fails.py").write_text("from loopwright import te\nte.placeholder(5)\n")
    given = [one.format(file=file, folder=tmp_path) for one in arguments]
    result = runner.invoke(app, ["run", *given])
    assert result.exit_code == 1
    assert re.search(problem, result.output)


def test_a_seed_is_not_negative(file):
    result = runner.invoke(app, ["run", f"{file}:add", "--seed", "-1"])
    assert result.exit_code == 2
    assert re.search(r"x>=0|greater than or equal to 0", result.output)


def test_a_program_too_large_for_the_evaluator_says_so(file):
    text = run("--repeat", "1", f"{file}:add", "n=40000")
    assert "not checked against the evaluator: too large; try smaller sizes" in text
    assert "against the evaluator: largest" not in text
