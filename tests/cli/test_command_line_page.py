"""docs/command_line.md: every command it shows prints what it shows, and --json has the keys it lists."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopwright.cli import app
from tests.cli.models import NET
from tests.tune.simulated import Simulated, quick_spaces

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
SCALE = re.search(r"`scale.py`:\n\n```python\n(.*?)```", PAGE, re.DOTALL)[1]  # type: ignore[index]
COMMAND = re.compile(r"^\$ loopwright (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    return [(found[1], found[2]) for block in blocks for found in COMMAND.finditer(block)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LOOPWRIGHT_CACHE", raising=False)
    Path("scale.py").write_text(SCALE, encoding="utf-8")


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def data(*arguments: str):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(("command", "shown"), commands(), ids=lambda value: value if "\n" not in value else "")
def test_a_command_prints_what_the_page_shows(command, shown):
    result = run(*shlex.split(command))
    text, _, code = shown.partition("[exit ")
    assert result.exit_code == int(code.strip("]\n") or 0), result.output
    expected = "".join([".*" if part == "…" else re.escape(part) for part in re.split("(…)", text.rstrip())])
    assert re.fullmatch(expected, result.stdout.rstrip()), result.stdout


def listed(row: str) -> set[str]:
    """The keys that the table gives for a command."""
    found = re.findall(rf"^\| {re.escape(row)} \| (.*) \|$", PAGE, re.MULTILINE)
    return set(re.findall(r"`([a-z_][a-z0-9_]*)`", found[-1])) - {"null"}


def keys(value) -> set[str]:
    """The keys of an object, or of the objects in a list, and those one level in."""
    if isinstance(value, list):
        return set().union(*[keys(one) for one in value]) if value else set()
    if not isinstance(value, dict):
        return set()
    return set(value)


def test_the_keys_of_explain():
    assert keys(data("explain", "--json")) == listed("`explain`")
    assert keys(data("explain", "LW0021", "--json", "--run")) == listed("`explain CODE`")
    assert "raises" not in data("explain", "21", "--json")


def test_explain_parts_the_page_from_its_example():
    found = data("explain", "LW0021", "--json")
    assert found["page"].endswith("is a directory.") and found["example"].endswith('load_file("nowhere.py")\n')
    assert (found["name"], found["also"]) == ("NoSuchFile", "FileNotFoundError")


def test_the_keys_of_targets():
    found = data("targets", "--json")
    assert set(found) | keys(found["kinds"]) == listed("`targets`")
    assert {one["kind"] for one in found["kinds"] if one["builds"]} == {"llvm", "c", "cuda"}
    one = data("targets", "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell", "--json")
    assert set(one) | keys(one["means"]) == listed("`targets TARGET`")
    assert one["means"]["vector_bits"] == 256 and "FMA" in one["means"]["units"]
    gpu = data("targets", "nvidia/nvidia-h100", "--json")["means"]
    assert set(gpu) | {"means"} == listed("`targets TARGET`, of a GPU") and gpu["multiprocessors"] == 132
    assert data("targets", "vulkan", "--json")["means"] is None


def test_the_keys_of_show(tmp_path):
    found = data("show", "scale.py", "--json")
    assert keys(found) | keys(found[0]["stages"]) == listed("`show`")
    assert keys(data("show", "scale.py", "--autosched", "--json")) == keys(found) | {"explain"}
    names = data("show", "scale.py", "--stages", "--json")
    assert names == [stage["name"] for stage in found[0]["stages"]]
    for form in ("--llvm", "--asm"):
        assert keys(data("show", "scale.py", form, "--json")) == listed("`show --llvm`, `--asm`")
    assert data("show", "scale.py", "--html", "out.html", "--json") == {"wrote": "out.html"}
    assert (tmp_path / "out.html").is_file()


def test_the_keys_of_run():
    found = data("run", "--json", "scale.py")
    assert keys(found) == listed("`run` of programs")


def test_the_keys_of_models():
    """Of a model without weights as C source: nothing is compiled for it."""
    Path("net.relay").write_text(NET.replace("(n, 4)", "(2, 4)"), encoding="utf-8")
    made = data("compile", "net.relay", "-o", "net.c", "--print-pass-times", "--json")
    assert set(made) == listed("`compile`")
    found = data("inspect", "net.relay", "--json")
    assert set(found) == listed("`inspect`") - {"error"}
    ran = data("run", "net.relay", "--print-time", "--print-top", "1", "--profile", "--json")
    parts = [*ran["inputs"], *ran["outputs"], ran["top"], ran["times"], *ran["profile"], ran["roofline"]]
    assert set(ran).union(*parts) == listed("`run` of a model")
    without = data("run", "net.relay", "--json")
    assert (without["top"], without["times"], without["profile"], without["wrote"]) == (None, None, None, None)


def test_numbers_that_are_not_finite_are_null():
    Path("nan.py").write_text(SCALE.replace("* T.float32(2)", "* T.float32(0) / T.float32(0)"), encoding="utf-8")
    text = run("run", "--json", "nan.py").stdout
    (found,) = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["written"][0]["sum"] is None


def test_the_keys_of_cache():
    data("run", "--json", "scale.py")
    assert keys(data("cache", "info", "--json")) == listed("`cache info`")
    assert keys(data("cache", "list", "--json")) <= listed("`cache list`") - {"damaged"}
    assert keys(data("cache", "verify", "--json")) == {"entries", "damaged"}
    assert keys(data("cache", "clear", "--json")) == listed("`cache clear`, `prune`")


def test_the_keys_of_tune_and_db(monkeypatch):
    from loopwright.frontends import tuning
    from loopwright.tune import session

    monkeypatch.setattr(tuning, "Measurer", lambda *_, **__: Simulated())
    monkeypatch.setattr(session, "default_spaces", quick_spaces)
    found = data("tune", "scale.py", "--trials", "2", "-d", "t.db", "--json")
    assert set(found) | keys(found["tasks"]) == listed("`tune`")
    (row,) = data("db", "list", "-d", "t.db", "--json")
    assert set(row) == listed("`db list`")
    shown = data("db", "show", row["key"][:8], "-d", "t.db", "--json")
    assert set(shown) == listed("`db show KEY`") - {"all", "trace"}
    assert set(shown["settings"][0]) == set(row) | {"all", "trace"}
    assert set(data("db", "export", "out", "-d", "t.db", "--json")) == listed("`db export`")
    assert set(data("db", "import", "out", "-d", "new.db", "--json")) == listed("`db import`")
    assert set(data("db", "merge", "t.db", "-d", "new.db", "--json")) == listed("`db merge`")
    assert set(data("db", "prune", "-d", "new.db", "--json")) == listed("`db prune`")
    assert set(data("db", "verify", "-d", "new.db", "--json")) == listed("`db verify`")


def test_the_keys_of_doctor():
    found = json.loads(run("doctor", "--json").stdout)
    assert keys(list(found.values())) | {"fine", "missing", "broken"} == listed("`doctor`")


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["explain", "LW9999", "--json"], "LW0020", "no error has the code LW9999"),
        (["targets", "lvm", "--json"], "LW0601", "unknown target kind 'lvm'"),
        (["show", "nowhere.py", "--json"], "LW0021", "nowhere.py does not exist"),
        (["show", "scale.py:scal", "--json"], "LW0023", "defines no program 'scal'"),
        (["show", "scale.py", "--stage", "vectorise", "--json"], "LW0024", "no stage 'vectorise'"),
        (["run", "--json", "scale.py:scale", "m=3"], "LW0025", "'m=3' is not the value"),
        (["cache", "prune", "--size", "much", "--json"], None, "much"),
    ],
)
def test_errors_are_json_too(arguments, code, problem):
    result = run(*arguments)
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert problem in error["problem"] and error["problem"] in error["message"]
    assert code is None or error["code"] == code
    assert set(error) == {"type", "code", "problem", "why", "hint", "where", "message"}


def test_an_error_that_is_not_ours():
    Path("bad.py").write_text("x = 1\ny = x / 0\n", encoding="utf-8")
    result = run("show", "bad.py", "--json")
    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["type"], error["code"]) == (1, "ZeroDivisionError", None)
    assert "bad.py" in error["message"] and "y = x / 0" in error["message"]


def test_where_an_error_of_the_file_is():
    Path("bad.py").write_text('from loopwright.target import Target\n\nt = Target("lvm")\n', encoding="utf-8")
    error = json.loads(run("show", "bad.py", "--json").stdout)["error"]
    assert error["where"]["line"] == 3 and error["where"]["file"].endswith("bad.py")


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["show"], ["run"], ["run", "--fast", "scale.py"], ["explain", "--jsno"], ["cache", "tidy"]],
)
def test_a_command_line_that_cannot_be_read(arguments):
    assert run(*arguments).exit_code == 2


def test_a_script_ends_with_its_own_code():
    Path("ends.py").write_text("import sys\nprint('here')\nsys.exit(7)\n", encoding="utf-8")
    result = run("run", "ends.py")
    assert (result.exit_code, result.stdout) == (7, "here\n")


def test_quiet(monkeypatch):
    from loopwright.display import progress, screen

    monkeypatch.setattr(progress, "_watcher", None)
    monkeypatch.setattr(screen, "is_terminal", lambda stream=None: stream is not None and stream is sys.stderr)
    monkeypatch.delenv("LOOPWRIGHT_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    run("explain", "LW0021")
    assert isinstance(progress._watcher, progress.Watcher)
    for option in ("-q", "--quiet"):
        run(option, "explain", "LW0021")
        assert progress._watcher is None


def test_every_command_with_an_answer_has_json():
    import typer

    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        for part in getattr(command, "commands", {name: command}).values():
            assert any("--json" in option.opts for option in part.params), part.name
