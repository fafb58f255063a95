"""Every Python block of the README and the docs runs, and prints what the block after it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


def snippets() -> list[tuple[str, str, str | None]]:
    found = []
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")), 1):
            found.append((f"{page.name}-{number}", match[1], match[2]))
    return found


@pytest.mark.parametrize(
    ("name", "code", "shown"), snippets(), ids=lambda value: value if "\n" not in str(value) else ""
)
def test_a_documented_example_runs(name, code, shown, tmp_path):
    script = tmp_path / "example.py"  # a file, since script functions are read from their source
    script.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    if shown is not None:
        assert done.stdout.rstrip() == shown.rstrip()
