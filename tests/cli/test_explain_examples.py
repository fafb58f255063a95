"""Every page of `loopwright explain` ends with a program that raises its error; all of them run here.

They run in this process, each in a folder of its own. Those that change what a process cannot take back (its
environment, its modules, a registry) say so in a comment and get a process of their own.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import linecache
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopwright.cli import app, explain
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.diagnose import suggestions

OWN_PROCESS = "# needs a process of its own"
CODES = sorted({entry.code for entry in explain.definitions()})

# What a layer's errors begin with; the table of CONTRIBUTING.md. A file of the package's top level is a layer here too.
RANGES = {
    "LW00": (
        *("cli", "compat", "contrib", "driver", "error", "testing"),
        *("runtime.errors", "runtime.together", "frontends.op_errors"),
    ),
    "LW01": ("runtime", "display"),
    "LW02": ("schedule",),
    "LW03": ("script",),
    "LW04": ("te",),
    "LW05": ("ir",),
    "LW06": ("target", "codegen"),
    "LW07": ("transform", "as_module", "compat.passes"),
    "LW08": ("analysis", "evaluator"),
    "LW09": ("arith",),
    "LW10": ("autosched",),
    "LW11": ("topi",),
    "LW12": ("relay", "model"),
    "LW13": ("frontends",),
    "LW15": ("tune", "meta_schedule"),
}

# The page of a class that only stands for its subclasses says which of them its example raises.
BASE = re.compile(r"The example raises `(\w+)`\.")

# Examples that raise their error by hand, and why nothing else can.
BY_HAND = {
    "LW0005": "the front ends raise it; scripts raise it themselves",
    "LW0006": "the same",
    "LW0007": "the same",
    "LW0008": "the same",
    "LW0009": "the same",
    "LW0010": "remote sessions come with a later floor; scripts raise it themselves",
    "LW0011": "the same",
    "LW0044": "pytest alone calls the fixture that raises it",
    "LW0161": "only an old driver raises it",
    "LW0162": "only a driver raises it",
    **{f"LW016{k}": "only a GPU raises it; tests/runtime/nvidia provokes each" for k in range(3, 8)},
    "LW0169": "only NVRTC raises it, which is optional",
    "LW0170": "the same",
}


def class_of(entry: explain.Entry) -> type[LoopwrightError]:
    return getattr(importlib.import_module(entry.module), entry.name)


def raised_here(file: Path, source: str) -> BaseException | None:
    """What the program ends with; its standard output is dropped."""
    linecache.checkcache(str(file))
    program = compile(source, str(file), "exec")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(program, {"__name__": "__main__", "__file__": str(file)})
    except BaseException as error:
        return error
    return None


def raised_elsewhere(file: Path) -> tuple[str, str]:
    """The name of the class that ends a process running the program, and all the process said."""
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=file.parent, timeout=120)
    last = [line for line in done.stderr.splitlines() if re.match(r"[\w.]+(:|$)", line)]
    return (last[-1].partition(":")[0] if last else "nothing"), done.stderr


@pytest.mark.one_in(2)
@pytest.mark.parametrize("code", CODES)
def test_the_example_raises_its_error(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(suggestions, "TIME", -1.0)  # what else would work is tried for as long as somebody waits
    entry = explain.find(code)
    if re.search(r"^(import|from) torch\b", entry.example, re.MULTILINE):
        pytest.importorskip("torch")  # it is optional, and large
    file = tmp_path / f"{code.lower()}.py"
    file.write_text(entry.example, encoding="utf-8")
    expected = class_of(entry)
    if OWN_PROCESS in entry.example:
        name, told = raised_elsewhere(file)
        assert name == f"{expected.__module__}.{expected.__qualname__}", told
        assert f"[{code}]" in told
        return
    error = raised_here(file, entry.example)
    subclass = BASE.search(" ".join(entry.page.split()))
    if subclass is not None:
        assert isinstance(error, expected)
        assert type(error).__name__ == subclass[1] != entry.name
    else:
        assert type(error) is expected, error
        assert str(error).splitlines()[0].endswith(f"[{code}]")
        assert error.problem


@pytest.mark.one_in(3)
@pytest.mark.parametrize("code", CODES)
def test_the_example_is_a_whole_program(code):
    entry = explain.find(code)
    assert entry.example, f"{code} {entry.name}: the docstring does not end with `For example:` and a program"
    assert len(entry.page.partition("For example:")[0]) >= 20, "a page says what the error means before it shows it"
    tree = ast.parse(entry.example)
    imported = {
        (name.asname or name.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert imported, "an example runs by itself"
    assert imported <= used, f"imported, but not used: {sorted(imported - used)}"
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    assert bool(raised) == (code in BY_HAND), "an example makes Loopwright raise the error"


def test_every_code_is_in_the_range_of_its_layer():
    wrong = []
    for entry in explain.definitions():
        inside = entry.module.removeprefix("loopwright.")
        layers = RANGES.get(entry.code[:4], ())
        if not any(inside == layer or inside.startswith(layer + ".") for layer in layers):
            wrong.append(f"{entry.code} {entry.name} of {entry.module}")
        if inside == "runtime.errors" and entry.code[:4] != "LW00":
            wrong.append(f"{entry.code} {entry.name} of {entry.module}")
    assert not wrong


def test_every_code_has_one_class_and_every_class_its_own_code():
    seen: dict[str, explain.Entry] = {}
    for entry in explain.definitions():
        assert entry.code not in seen, f"{entry.code} belongs to {seen[entry.code].name} and {entry.name}"
        seen[entry.code] = entry
        found = class_of(entry)
        assert issubclass(found, LoopwrightError)
        assert LoopwrightError.codes[entry.code] is found
    without = [
        error.__qualname__
        for error in _all_subclasses(LoopwrightError)
        if error.__module__.startswith("loopwright.") and "code" not in error.__dict__ and not error.__subclasses__()
    ]
    assert not without, "an error that is raised has a code of its own"


def test_a_class_that_is_raised_is_no_base():
    """Only the class of all errors is both: an error that nobody would tell from others has no class of its own."""
    sources = "\n".join(
        file.read_text(encoding="utf-8") for file in Path(explain.__file__).resolve().parent.parent.rglob("*.py")
    )
    bases = [entry for entry in explain.definitions() if BASE.search(" ".join(entry.page.split()))]
    assert len(bases) >= 7
    assert not [b.name for b in bases if b.code != "LW0001" and re.search(rf"\braise {b.name}\b", sources)]


def test_explain_shows_the_example_in_colours():
    plain, coloured = explain.page("LW0401"), explain.page("LW0401", coloured=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_explain_runs_the_example_as_the_docs_show():
    docs = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
    shown = re.search(r"```console\n\$ loopwright (explain .*?)\n(.*?)```", docs.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    result = CliRunner().invoke(app, shown[1].split())
    assert result.exit_code == 0
    assert result.stdout == shown[2]


def _all_subclasses(base: type) -> list[type]:
    return [found for below in base.__subclasses__() for found in (below, *_all_subclasses(below))]
