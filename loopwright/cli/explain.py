"""explain: the page of an error, which is the docstring of its class, and the program at its end that raises it.

Codes are found by reading the sources, so that only the module that defines the one asked for is imported.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import inspect
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Final, NamedTuple

from loopwright.runtime.errors import LoopwrightError, with_article

_PACKAGE: Final = Path(__file__).resolve().parent.parent
_EXAMPLE: Final = "For example:\n\n"
_MENTIONS_CODE: Final = re.compile(r'^ +code\b[^=\n]*= "LW\d{4}"', re.MULTILINE)


class UnknownErrorCode(LoopwrightError, ValueError):
    """`loopwright explain` was asked for a code that no error has. `loopwright explain` alone lists them all.

    For example:

        from loopwright.cli.explain import page

        page("LW9999")
    """

    code = "LW0020"

    def __init__(self, asked: str, near: list[str]) -> None:
        super().__init__(
            f"no error has the code {asked}",
            hint=f"the nearest codes are {', '.join(near)}; `loopwright explain` lists all",
            fields={"asked": asked, "near": near},
        )


class Entry(NamedTuple):
    """Where an error is defined, and its page."""

    code: str
    name: str
    module: str
    page: str

    @property
    def example(self) -> str:
        """The program at the end of the page that raises the error; empty when the page has none."""
        return textwrap.dedent(self.page.rpartition(_EXAMPLE)[2]) + "\n" if _EXAMPLE in self.page else ""


@functools.cache
def definitions() -> tuple[Entry, ...]:
    """Every class of the package that has an error code of its own."""
    found = []
    for file in sorted(_PACKAGE.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if not _MENTIONS_CODE.search(source):
            continue
        parts = [_PACKAGE.name, *file.relative_to(_PACKAGE).with_suffix("").parts]
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef) and (code := _code_of(node)) is not None:
                found.append(Entry(code, node.name, module, ast.get_docstring(node) or ""))
    return tuple(found)


@functools.cache
def catalogue() -> dict[str, Entry]:
    """All errors of the package by code."""
    return {entry.code: entry for entry in sorted(definitions())}


def find(asked: str) -> Entry:
    """The error with code `asked` (`LW0113`, `lw113` and `113` are the same)."""
    digits = re.fullmatch(r"(?:LW)?(\d{1,4})", asked.strip().upper())
    code = f"LW{int(digits[1]):04d}" if digits else asked
    entry = catalogue().get(code)
    if entry is None:
        raise UnknownErrorCode(code, nearest_codes(code))
    return entry


def page(asked: str, coloured: bool = False) -> str:
    """The page of the error with code `asked`; `coloured` for a terminal that shows colours."""
    entry = find(asked)
    kind = _python_kind(entry)
    also = f" ({with_article(kind)})" if kind else ""
    text = entry.page
    if coloured and entry.example:
        from loopwright.script.highlight import highlight

        # Line by line, so that an empty line stays empty and none carries a colour into the next.
        lines = [highlight(line).rstrip("\n") if line else "" for line in entry.example.splitlines()]
        text = text.rpartition(_EXAMPLE)[0] + _EXAMPLE + textwrap.indent("\n".join(lines), "    ")
    return f"{entry.name} [{entry.code}]{also}\n\n{text}\n\nfrom {entry.module} import {entry.name}"


def run_example(asked: str) -> str:
    """What the example of a page ends with: the message of its error, as `loopwright run` shows it."""
    entry = find(asked)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "example.py").write_text(entry.example, encoding="utf-8")
        command = [sys.executable, "-m", "loopwright", "run", "--script", "example.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return (done.stdout + done.stderr).rstrip("\n")


def listing() -> str:
    """One line per error: code, name, first sentence."""
    entries = catalogue().values()
    width = max(len(entry.name) for entry in entries)
    return "\n".join(f"{entry.code}  {entry.name:<{width}}  {_first_sentence(entry.page)}" for entry in entries)


def nearest_codes(code: str) -> list[str]:
    """The codes nearest to one that does not exist: in number, or in spelling when it is no number."""
    known = list(catalogue())
    if re.fullmatch(r"LW\d{4}", code):
        wanted = int(code[2:])
        return sorted(sorted(known, key=lambda other: abs(int(other[2:]) - wanted))[:4])
    return difflib.get_close_matches(code.upper(), known, n=4, cutoff=0.0)


def _code_of(node: ast.ClassDef) -> str | None:
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            targets: list[ast.expr] = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        value = statement.value
        if any(isinstance(target, ast.Name) and target.id == "code" for target in targets) and (
            isinstance(value, ast.Constant) and isinstance(value.value, str)
        ):
            return value.value
    return None


def _python_kind(entry: Entry) -> str | None:
    """Which of Python's own errors `except` may name for it, beside RuntimeError; None if only that."""
    try:
        error = getattr(importlib.import_module(entry.module), entry.name, None)
    except (ImportError, OSError):  # an optional package is not installed: the page is still worth printing
        return None
    if not inspect.isclass(error):
        return None
    builtin = [
        base.__name__
        for base in error.__mro__
        if base.__module__ == "builtins" and base not in (RuntimeError, Exception, BaseException, object)
    ]
    return builtin[0] if builtin else None


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:;])\s", " ".join(text.split()), maxsplit=1)[0]
