"""Every Python block of the README and the docs runs, and prints what the block after it shows.

A block is a program of its own, unless its page says `<!-- one program -->`: there each block goes on where the one
before it ended, as in a notebook.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests import warm_python

pytestmark = pytest.mark.optimized

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
ONE_PROGRAM = "<!-- one program -->"
BETWEEN = "\x1e"  # printed between the blocks of one program

# Each block is a file, since script functions are read from their source, and errors name the line that asked.
# The reader's own model, on pages that do not write one.
MODEL = """
<ir_version: 9, opset_import: ["" : 19]>
scores (float[batch, 3] x) => (float[batch, 2] y) {
    weight = Constant <value = float[3, 2] {1.0, -1.0, 0.5, 0.5, -1.0, 1.0}> ()
    product = MatMul (x, weight)
    y = Softmax (product)
}
"""

RUN_IN_ORDER = f"""
import sys

names = {{"__name__": "__main__"}}
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), names)
    print({BETWEEN!r}, end="", flush=True)
"""


def title(page: Path) -> str:
    return page.relative_to(ROOT / "docs" if ROOT / "docs" in page.parents else ROOT).as_posix()


def programs() -> list[tuple[str, list[str], list[str | None]]]:
    """For each program its name, its blocks, and what each of them shows."""
    found: list[tuple[str, list[str], list[str | None]]] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = [(match[1], match[2]) for match in BLOCK.finditer(text)]
        if ONE_PROGRAM in text:
            found.append((title(page), [code for code, _ in blocks], [shown for _, shown in blocks]))
        else:
            found += [(f"{title(page)}-{number}", [code], [shown]) for number, (code, shown) in enumerate(blocks, 1)]
    return found


def run(blocks: Sequence[str], folder: Path, warm: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the blocks in order, in one process; each is `example.py` in a folder of its own."""
    paths = []
    if any('"model.onnx"' in code for code in blocks) and not any("onnx.save" in code for code in blocks):
        onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")
    for number, code in enumerate(blocks, 1):
        path = folder / str(number) / "example.py"
        path.parent.mkdir()
        path.write_text(code, encoding="utf-8")
        paths.append(str(path))
    if len(paths) > 1:
        (folder / "in_order.py").write_text(RUN_IN_ORDER, encoding="utf-8")
        paths.insert(0, str(folder / "in_order.py"))
    if warm:
        return warm_python.run(paths, cwd=folder)
    return subprocess.run([sys.executable, *paths], capture_output=True, text=True, cwd=folder, timeout=300)


PROGRAMS = programs()


@pytest.mark.parametrize(("name", "blocks", "shown"), PROGRAMS, ids=[name for name, *_ in PROGRAMS])
def test_a_documented_example_runs(name, blocks, shown, tmp_path):
    # What a newcomer tries first runs in a Python that has imported nothing yet.
    done = run(blocks, tmp_path, warm=not name.startswith("README"))
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(BETWEEN)
    for number, (got, wanted) in enumerate(zip(printed, shown, strict=False), 1):
        if wanted is not None:
            assert got.rstrip() == wanted.rstrip(), f"block {number} of {name}"


def test_a_page_that_is_one_program_keeps_its_names(tmp_path):
    done = run(["x = 1\nprint(x)\n", "print(x + 1)\n", "x / 0\n"], tmp_path)
    assert done.stdout == f"1\n{BETWEEN}2\n{BETWEEN}"
    assert "ZeroDivisionError" in done.stderr and "example.py" in done.stderr


def test_a_warm_python_runs_programs_as_python_does(tmp_path):
    program = tmp_path / "example.py"
    lines = ["import atexit, sys", "atexit.register(print, 'bye')", "print(__name__, sys.argv[1:])", "sys.exit(3)"]
    program.write_text("\n".join(lines))
    done = warm_python.run([program, "a", "-b"], cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "__main__ ['a', '-b']\nbye\n", "")
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert warm_python.run([program], cwd=tmp_path).returncode == -9
    program.write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(subprocess.TimeoutExpired):
        warm_python.run([program], cwd=tmp_path, timeout=0.5)
    program.write_text("1 / 0\n")
    done = warm_python.run([program], cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n") and "warm_python.py" not in done.stderr
