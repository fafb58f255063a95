"""The text of the reference: the public names of a package, and every error by its code.

A class or function is handed to mkdocstrings (`::: path`), which reads its docstring and signature from the source.
What several packages offer is described once; the others link there.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from public_names import Name, made_by, public_names
from source_tree import ROOT, bases, code, docstring, errors

DOCS = ROOT / "docs"
PACKAGES = re.compile(r"<!-- public names: ([\w.]+) -->")  # the mark of a page that describes a package
FIRST = ("ir", "tir")  # what no package of its own offers is described there, not where it is offered again
# Their methods are written in several files.
WITH_BASES = ("loopwright.schedule.engine.schedule.Schedule", "loopwright.te.schedule.stage.Stage")


def reference(package: str) -> Iterator[str]:
    """The text of a page for the public names of a package."""
    short = package.removeprefix("loopwright.")
    of_kind: dict[str, list[Name]] = {}
    for name in public_names(package):
        of_kind.setdefault(name.kind, []).append(name)
    spelled = [name for name in public_names(package) if name.kind in ("class", "function")]
    for name in spelled:
        if _described(name.home) == (package, name.name):
            yield from _documented(name, f"{short}.{name.name}")
    yield from _table("value, or function made from a table", _values(package, short, of_kind.get("value", ())))
    yield from _table("module", _modules(package, short, of_kind.get("module", ())))
    yield from _table("error", _raised(of_kind.get("error", ())))

    links = [f"[`{name.name}`][{name.home}]" for name in spelled if _described(name.home) != (package, name.name)]
    for name in of_kind.get("value", ()):
        owner = _described(name.home)[0]
        if owner != package:
            links.append(f"[`{name.name}`]({_file_name(owner)})")
    if links:
        yield f"\nAlso here, and described where they belong: {', '.join(links)}."


def catalogue() -> Iterator[str]:
    """Every error by its code: what it means, and a program that raises it."""
    for number, path in errors():
        module, _, name = path.rpartition(".")
        usual = [base for base in bases(path) if isinstance(getattr(builtins, base, None), type)]
        also = f" · also a {', '.join([f'`{base}`' for base in usual])}" if usual else ""
        yield f"\n## {number} {name} {{ #{number.lower()} }}\n"
        yield f"`from {module} import {name}`{also}\n"
        yield docstring(path) + "\n"


# --- parts of a page ------------------------------------------------------------------------------------------------


def _documented(name: Name, title: str) -> Iterator[str]:
    yield f"\n::: {name.home}\n    options:\n      heading: {title}\n      toc_label: {name.name}"
    if name.home in WITH_BASES:
        yield "      inherited_members: true"
    if name.home.startswith("loopwright.ir."):
        yield "      show_if_no_docstring: true"  # the fields of nodes, which their names explain
    yield ""


def _table(title: str, rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    """Nothing, when there are no rows."""
    head = f"\n| {title} | |\n|---|---|"
    for first, second in rows:
        yield f"{head}\n" * bool(head) + f"| {first} | {_escaped(second)} |"
        head = ""


def _values(package: str, short: str, names: Sequence[Name]) -> Iterator[tuple[str, str]]:
    for name in names:
        if _described(name.home)[0] == package:
            call, text = made_by(name.home)
            yield f"`{short}.{name.name}{call}`", text


def _modules(package: str, short: str, names: Sequence[Name]) -> Iterator[tuple[str, str]]:
    for name in names:
        title = f"`{short}.{name.name}`"
        page = _file_name(name.home) if name.home in _pages() else _file_name(package)
        yield title if page == _file_name(package) else f"[{title}]({page})", _first_line(name.home)


def _raised(names: Sequence[Name]) -> Iterator[tuple[str, str]]:
    for name in names:
        number = code(name.home)
        yield f"[{number}](errors.md#{number.lower()}) `{name.name}`", _first_line(name.home)


def _first_line(path: str) -> str:
    return docstring(path).partition("\n")[0]


def _escaped(text: str) -> str:
    """Text for a cell of a table; bars in code are no border."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join([part if part.startswith("`") else part.replace("|", "\\|") for part in parts])


# --- who describes what ---------------------------------------------------------------------------------------------


@cache
def _pages() -> dict[str, Path]:
    """Package → the page that describes it."""
    found = {}
    for file in sorted((DOCS / "api").glob("*.md"), key=lambda file: (file.stem not in FIRST, file.stem)):
        for match in PACKAGES.finditer(file.read_text(encoding="utf-8")):
            found[match[1]] = file
    return found


def _file_name(package: str) -> str:
    return _pages()[package].name


def _described(home: str) -> tuple[str, str]:
    """Which package describes a definition, and under which name."""
    return _owners()[home]


@cache
def _owners() -> dict[str, tuple[str, str]]:
    """Definition → the package it lies in, if that offers it, else the first that does; and its first name there."""
    found: dict[str, tuple[str, str]] = {}
    ranks: dict[str, int] = {}
    for package in _pages():
        for name in public_names(package):
            rank = len(package) if name.home.startswith(f"{package}.") else 0
            if rank > ranks.get(name.home, -1):
                found[name.home], ranks[name.home] = (package, name.name), rank
    return found
