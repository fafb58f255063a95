"""The documentation site: every page is in it, every link leads somewhere, and its reference has the public names.

The site itself is built by `make docs`, which needs packages that the tests do without. What can go wrong in the
sources of the pages is found here.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MARKER = re.compile(r"<!-- public names: ([\w.]+) -->")
PACKAGES = [match for page in PAGES for match in MARKER.findall(page.read_text(encoding="utf-8"))]
# Without an `__all__` that says so: modules that were imported, and what the source needs for itself.
NOT_OFFERED = {"Any", "TYPE_CHECKING", "annotations", "importlib"}


def _script(name: str) -> types.ModuleType:
    """One of the scripts that make the site, as a module; they find each other in their folder, as mkdocs has it."""
    sys.path.insert(0, str(DOCS / "assets"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS / "assets"))


@pytest.fixture(scope="module")
def names() -> types.ModuleType:
    return _script("public_names")


@pytest.fixture(scope="module")
def sources() -> types.ModuleType:
    return _script("source_tree")


def _prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _links(page: Path) -> list[str]:
    """Where a page links to; code that looks like a link is none."""
    words = re.sub(r"`([^`\n]*)`", lambda code: code[1].replace("](", "] ("), _prose(page))
    return re.findall(r"\]\(([^)\s]+)\)", words)


# --- pages and links ------------------------------------------------------------------------------------------------


def test_every_page_is_in_the_navigation_once():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"^\s*- (?:.*: )?([\w/]+\.md)$", nav, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    pages = {page.relative_to(DOCS).as_posix() for page in PAGES}
    examples = {f"examples/{path.stem}.md" for path in (ROOT / "examples").glob("*.py")}
    assert sorted((pages | examples) - set(listed)) == [], "not in the navigation of mkdocs.yml"
    assert sorted(set(listed) - (pages | examples)) == [], "in the navigation of mkdocs.yml, but not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_lead_somewhere(page):
    for link in _links(page):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor and target.suffix == ".md":
            assert anchor in _anchors(target), f"{page.name} links to {link}; there are {sorted(_anchors(target))}"


def _anchors(page: Path) -> set[str]:
    """The anchors that headings get."""
    found = set()
    for title in re.findall(r"^#+ (.+)$", _prose(page), flags=re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")).strip().lower()
        found.add(re.sub(r"[\s-]+", "-", plain))
    return found


def test_files_that_pages_name_are_there():
    named = re.compile(r"`((?:loopwright|benchmarks|examples|tests|tools)/[\w/]+\.(?:py|md|c|h))`")
    for page in PAGES:
        for path in named.findall(_prose(page)):
            assert (ROOT / path).is_file(), f"{page.name} names {path}"


def test_users_are_sent_to_pages_of_the_documentation():
    """An installed package has no folder docs/: messages and public docstrings name a page of the site by its title."""
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    titles = {"What works today": "status.md", "Winograd": "winograd.md"}
    has_docstring = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = set()
    for file in sorted((ROOT / "loopwright").rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if "docs/" not in source and "in the documentation" not in source:
            continue
        nodes = list(ast.walk(ast.parse(source)))
        documented = [node for node in nodes if isinstance(node, has_docstring) and ast.get_docstring(node) is not None]
        exempt = [one.body[0].value for one in documented if getattr(one, "name", "_").startswith("_")]
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in exempt:
                text = " ".join(node.value.split())
                assert "docs/" not in text, f"{file.name}:{node.lineno}"
                found |= set(re.findall(r'see "([^"]+)" in the documentation', text))
    assert found == set(titles)
    for title, page in titles.items():
        assert f"- {title}: {page}\n" in listed


def test_pages_fetch_nothing():
    for page in [*PAGES, *(DOCS / "assets").glob("*.css"), *(DOCS / "assets").glob("*.js"), ROOT / "mkdocs.yml"]:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"!\[[^\]]*\]\(https?:|src=\"https?:|url\(['\"]?https?:|@import", text), page.name
    assert "font: false" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


# --- pictures -------------------------------------------------------------------------------------------------------


def test_pictures_are_those_that_the_script_draws():
    drawn: set[str] = set()
    for script in ("draw_proof", "draw_race"):
        for name, draw in _script(script).PICTURES.items():
            text = (DOCS / "assets" / f"{name}.svg").read_text(encoding="utf-8")
            assert text == draw().svg(), f"{name}.svg is old: python docs/assets/{script}.py"
            drawn.add(name)
    assert {path.stem for path in (DOCS / "assets").glob("*.svg")} == drawn


# --- the reference --------------------------------------------------------------------------------------------------


def test_every_public_package_has_a_page():
    packages = {path.parent.name for path in (ROOT / "loopwright").glob("*/__init__.py")}
    inner = {"cli", "codegen", "compat", "contrib", "display", "driver", "model", "testing"}  # commands, doors, helpers
    described = {package.split(".")[1] for package in PACKAGES if "." in package}
    assert packages - inner == described
    assert len(PACKAGES) == len(set(PACKAGES))


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_the_names_that_a_package_offers(package, names, sources):
    module = importlib.import_module(package)
    found = names.public_names(package)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        assert {name.name for name in found} == set(listed)
    for name in found:
        value = getattr(module, name.name)
        if name.kind == "module":
            assert value.__name__ == name.home
            continue
        home, _, attribute = name.home.rpartition(".")
        if isinstance(value, types.ModuleType):
            # A module of the same name was imported meanwhile, and hides it; or it is a namespace of operators.
            value = getattr(value, name.name, value)
        assert getattr(importlib.import_module(home), attribute) is value, name
        assert (name.kind in ("class", "error")) <= isinstance(value, type), name
        assert sources.docstring(name.home) or name.kind != "function", f"{name.home} has no docstring"


def test_names_without_all_are_what_the_source_offers(names):
    for package in PACKAGES:
        module = importlib.import_module(package)
        if hasattr(module, "__all__") or package == "loopwright.script.tir":  # its names of types are made in a loop
            continue
        offered = {
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and not isinstance(value, types.ModuleType) and name not in NOT_OFFERED
        }
        assert offered <= {name.name for name in names.public_names(package)}, package


def test_the_catalogue_has_every_error(sources):
    from loopwright.cli.explain import catalogue

    assert dict(sources.errors()).keys() == dict(catalogue()).keys()


def test_reading_public_names_runs_nothing_of_ours():
    code = (
        f"import sys; sys.path.insert(0, {str(DOCS / 'assets')!r})\n"
        "from public_names import public_names\n"
        "public_names('loopwright'), public_names('loopwright.te')\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'loopwright'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr
