"""explain: the page of an error, which is the docstring of its class, and the program at its end that raises it.

Codes are found by reading the sources, so that only the module that defines the one asked for is imported.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import inspect
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from loopwright.display import progress
from loopwright.runtime.errors import LoopwrightError, with_article

_PACKAGE: Final = Path(__file__).resolve().parent.parent
_EXAMPLE: Final = "For example:\n\n"
_MENTIONS_CODE: Final = re.compile(r'^ +code\b[^=\n]*= "LW\d{4}"', re.MULTILINE)


class UnknownErrorCode(LoopwrightError, ValueError):
    """`loopwright explain` was asked for a code or a name that no error has. `loopwright explain` alone lists them all.

    For example:

        from loopwright.cli.explain import page

        page("LW9999")
    """

    code = "LW0020"

    def __init__(self, asked: str, near: list[str]) -> None:
        every = "`loopwright explain` lists all"
        if is_code(asked):
            problem, hint = f"no error has the code {asked}", f"the nearest codes are {', '.join(near)}; {every}"
        else:
            problem = f"no error has the code or the name {asked}"
            hint = f"did you mean {' or '.join(near)}? {every}" if near else every
        super().__init__(problem, hint=hint, fields={"asked": asked, "near": near})


class SeveralErrors(LoopwrightError, ValueError):
    """`loopwright explain` was asked for a name that several errors have, in different modules; their codes differ.

    For example:

        from loopwright.cli.explain import page

        page("OutOfBounds")
    """

    code = "LW0027"

    def __init__(self, name: str, entries: Sequence[Entry]) -> None:
        where = [f"{entry.code} (of {entry.module})" for entry in entries]
        super().__init__(
            f"{len(entries)} errors have the name {name}",
            hint=f"ask for one by its code: {', '.join(where)}",
            fields={"name": name, "codes": [entry.code for entry in entries]},
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
    result = []
    for file in sorted(_PACKAGE.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if not _MENTIONS_CODE.search(source):
            continue
        parts = [_PACKAGE.name, *file.relative_to(_PACKAGE).with_suffix("").parts]
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef) and (code := _code_of(node)) is not None:
                result.append(Entry(code, node.name, module, ast.get_docstring(node) or ""))
    return tuple(result)


@functools.cache
def catalogue() -> dict[str, Entry]:
    """All errors of the package by code."""
    return {entry.code: entry for entry in sorted(definitions())}


def find(asked: str) -> Entry:
    """The error with the code (`LW0113`, `lw113`, `113`, `[LW0113]` are the same) or with the name `asked`."""
    digits = re.fullmatch(r"\[?(?:LW)?(\d{1,4})\]?", asked.strip().upper())
    if not digits:
        return _named(asked.strip())
    code = f"LW{int(digits[1]):04d}"
    entry = catalogue().get(code)
    if entry is None:
        raise UnknownErrorCode(code, nearest_codes(code))
    return entry


def _named(asked: str) -> Entry:
    """The error whose class has that name, with or without its module, in any case."""
    name = asked.rpartition(".")[2].lower()
    result = [entry for entry in catalogue().values() if entry.name.lower() == name]
    exact = [entry for entry in result if f"{entry.module}.{entry.name}" == asked]
    if len(exact or result) > 1:
        raise SeveralErrors(result[0].name, result)
    if not result:
        known = {entry.name.lower(): entry.name for entry in catalogue().values()}
        raise UnknownErrorCode(asked, [known[near] for near in difflib.get_close_matches(name, known, n=3, cutoff=0.7)])
    return (exact or result)[0]


def is_code(text: str) -> bool:
    """Whether the text is written like a code."""
    return re.fullmatch(r"LW\d{4}", text) is not None


def page(asked: str, coloured: bool = False) -> str:
    """The page of the error with code `asked`; `coloured` for a terminal that shows colours."""
    entry = find(asked)
    kind = _python_kind(entry)
    also = f" ({with_article(kind)})" if kind else ""
    text = entry.page
    if coloured and entry.example:
        from loopwright.display.colours import highlight

        # Line by line, so that an empty line stays empty and none carries a colour into the next.
        lines = [highlight(line).rstrip("\n") if line else "" for line in entry.example.splitlines()]
        text = text.rpartition(_EXAMPLE)[0] + _EXAMPLE + textwrap.indent("\n".join(lines), "    ")
    return f"{entry.name} [{entry.code}]{also}\n\n{text}\n\nfrom {entry.module} import {entry.name}"


def run_example(asked: str) -> str:
    """What the example of a page ends with: the message of its error, as `loopwright run` shows it."""
    entry = find(asked)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "example.py").write_text(entry.example, encoding="utf-8")
        command = [sys.executable, "-m", "loopwright", "--quiet", "run", "--script", "example.py"]
        with progress.task("run the example"):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return (done.stdout + done.stderr).rstrip("\n")


def page_json(asked: str, run: bool) -> str:
    """The page of an error as JSON; with `run`, also what its example raises."""
    entry = find(asked)
    data = {
        "code": entry.code,
        "name": entry.name,
        "module": entry.module,
        "also": _python_kind(entry),
        "page": entry.page.rpartition(_EXAMPLE)[0].rstrip() if entry.example else entry.page,
        "example": entry.example or None,
    }
    return json.dumps({**data, "raises": run_example(asked)} if run else data, indent=2)


def listing_json() -> str:
    """Every error as JSON: code, name, module, first sentence."""
    rows = [
        {"code": entry.code, "name": entry.name, "module": entry.module, "summary": _first_sentence(entry.page)}
        for entry in catalogue().values()
    ]
    return json.dumps(rows, indent=2)


def listing() -> str:
    """One line per error: code, name, first sentence."""
    entries = catalogue().values()
    width = max(len(entry.name) for entry in entries)
    return "\n".join(f"{entry.code}  {entry.name:<{width}}  {_first_sentence(entry.page)}" for entry in entries)


def nearest_codes(code: str) -> list[str]:
    """The codes nearest in number to one that does not exist."""
    wanted = int(code[2:])
    return sorted(sorted(catalogue(), key=lambda other: abs(int(other[2:]) - wanted))[:4])


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
    """What comes before the first full stop, colon or semicolon; all but a full stop only lead on, and are left out."""
    return re.split(r"(?<=[.:;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(":;")
