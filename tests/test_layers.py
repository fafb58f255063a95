"""A folder is a layer; a layer imports only from layers before it (STYLE: imports point one way)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "loopwright"

LAYERS = (
    "runtime",
    "display",
    "target",
    "ir",
    "arith",
    "script",
    "analysis",
    "evaluator",
    "codegen",
    "transform",
    "schedule",
    "te",
    "autosched",
    "topi",
    "model",
    "relay",
    "tune",
    "frontends",
    "meta_schedule",
    "contrib",
    "cli",
    "explore",
    "compat",
)
# Packages of names alone, as the files at the top are; no layer imports them.
FACADES = ("driver", "testing", "tir")
RANK = {layer: rank for rank, layer in enumerate(LAYERS)}

# The parts of a package, folders and files, in their order, as its `__init__` has them.
PARTS = {
    "schedule": (
        ("errors", "handles"),
        ("view", "origins"),
        ("step",),
        ("rewrite",),
        ("proof", "winograd"),
        ("primitives",),
        ("trace",),
        ("diagnose",),
        ("page",),
        ("engine",),
        ("tensorize_mapping", "testing"),
        ("analysis", "transform"),
    ),
    "relay/transform": (
        ("graph_pass", "typed_rewrite"),
        ("types",),
        ("simplify",),
        ("layout", "fusion", "precision", "partition", "functions", "devices"),
        ("pipeline",),
    ),
}

# Loaded only when needed, never by `import loopwright`.
HEAVY = ("llvmlite", "islpy", "tvm_ffi", "torch", "onnx", "typer", "rich", "sqlalchemy", "xgboost")


@cache  # several tests look at every file
def imports(source: str, module: str) -> tuple[tuple[int, str], ...]:
    """Line and full name of everything the module imports, wherever the import stands."""
    return tuple(_imports(source, module))


def _imports(source: str, module: str) -> Iterator[tuple[int, str]]:
    package = module.rsplit(".", 1)[0]
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):  # statements: expressions import nothing
            inner = getattr(node, part, ())
            pending += inner if isinstance(inner, list) else ()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def wrong_imports(source: str, path: str) -> list[str]:
    """What is wrong with the imports of the file at `path` (relative to the package)."""
    parts = path.removesuffix(".py").split("/")
    layer = parts[0]
    if len(parts) == 1 or layer in FACADES:
        return []  # a facade may import anything
    if layer not in RANK:
        return [f"{path}: folder {layer} is not a layer; give it a place in LAYERS"]
    found = []
    for line, name in imports(source, ".".join(["loopwright", *parts])):
        top, *rest = name.split(".")
        if top != "loopwright":
            continue
        imported = rest[0] if rest else "(the package itself)"
        if imported not in RANK:
            found.append(f"{path}:{line}: layer {layer} imports the facade {imported}")
        elif RANK[imported] > RANK[layer]:
            found.append(f"{path}:{line}: layer {layer} imports from {imported}, which comes later")
    return sorted(set(found))


def test_imports_point_one_way():
    files = sorted(PACKAGE.rglob("*.py"))
    assert files
    found = []
    for file in files:
        path = file.relative_to(PACKAGE).as_posix()
        found += wrong_imports(file.read_text(encoding="utf-8"), path)
    assert not found, "imports that point the wrong way:\n" + "\n".join(found)


@pytest.mark.parametrize("package", PARTS)
def test_parts_of_a_package_import_one_way(package):
    rank = {part: number for number, row in enumerate(PARTS[package]) for part in row}
    prefix = f"loopwright.{package.replace('/', '.')}."
    found = []
    for file in sorted((PACKAGE / package).rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        own = file.relative_to(PACKAGE / package).with_suffix("").parts[0]
        if own == "__init__":
            continue
        for line, name in imports(file.read_text("utf-8"), ".".join(["loopwright", *parts])):
            if not name.startswith(prefix):
                continue
            other = name.removeprefix(prefix).split(".")[0]
            if own != other and rank.get(other, len(rank)) >= rank.get(own, -1):
                found.append(f"{'/'.join(parts)}.py:{line}: {own} imports from {other}, which is no part before it")
    assert not found, "\n".join(found)


def import_graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Which modules each imports, wherever the import stands; `sources` by path relative to the package."""
    names = {path: ".".join(["loopwright", *path.removesuffix(".py").split("/")]) for path in sources}
    modules = {name.removesuffix(".__init__") for name in names.values()}
    graph: dict[str, set[str]] = {}
    for path, name in names.items():
        imported = set()
        for _, full in imports(sources[path], name):
            target = full if full in modules else full.rpartition(".")[0]  # a module, or a name in one
            imported |= {target} & modules
        graph[name.removesuffix(".__init__")] = imported - {name.removesuffix(".__init__")}
    return graph


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in graph[module]:
            if other not in order:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == order[module]:
            component = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(component) > 1:
                result.append(sorted(component))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return sorted(result)


def test_files_do_not_import_each_other():
    """Imports for annotations and inside functions count."""
    sources = {file.relative_to(PACKAGE).as_posix(): file.read_text("utf-8") for file in PACKAGE.rglob("*.py")}
    wrong = [", ".join(component) for component in cycles(import_graph(sources))]
    assert not wrong, "files that import each other:\n" + "\n".join(wrong)


def test_cycles_are_found_wherever_the_import_stands():
    sources = {
        "te/a.py": "from loopwright.te import b",
        "te/b.py": "if TYPE_CHECKING:\n    from loopwright.te.c import C",
        "te/c.py": "def f():\n    from .a import x",
        "te/d.py": "from loopwright.te.a import x",
        "te/__init__.py": "from loopwright.te.d import x",
    }
    assert cycles(import_graph(sources)) == [["loopwright.te.a", "loopwright.te.b", "loopwright.te.c"]]
    sources["te/c.py"] = ""
    assert cycles(import_graph(sources)) == []


def test_runtime_needs_nothing_of_the_compiler():
    for file in sorted((PACKAGE / "runtime").rglob("*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        module = "loopwright." + path.removesuffix(".py").replace("/", ".")
        for line, name in imports(file.read_text(encoding="utf-8"), module):
            assert name.split(".")[0] not in ("llvmlite", "islpy"), f"{path}:{line} imports {name}"
            if name.startswith("loopwright"):
                assert name.startswith("loopwright.runtime"), f"{path}:{line} imports {name}"


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("ir/expr.py", "from loopwright.runtime.dtype import DataType", None),
        ("ir/expr.py", "from loopwright.ir.node import node", None),
        ("ir/expr.py", "import numpy", None),
        ("tir.py", "from loopwright.schedule import Schedule", None),
        ("ir/expr.py", "\nimport loopwright.te", "ir/expr.py:2: layer ir imports from te, which comes later"),
        ("ir/expr.py", "from loopwright import te", "ir/expr.py:1: layer ir imports from te, which comes later"),
        ("ir/expr.py", "from ..te import x", "ir/expr.py:1: layer ir imports from te, which comes later"),
        ("ir/expr.py", "def f():\n    from loopwright.script import x", "ir/expr.py:2: layer ir imports from script"),
        (
            "codegen/llvm/a.py",
            "from ...transform import x",
            "codegen/llvm/a.py:1: layer codegen imports from transform",
        ),
        ("te/a.py", "from loopwright import tir", "te/a.py:1: layer te imports the facade tir"),
        ("te/a.py", "from loopwright.build import build", "te/a.py:1: layer te imports the facade build"),
        ("te/a.py", "import loopwright", "te/a.py:1: layer te imports the facade (the package itself)"),
        ("testing/a.py", "from loopwright.build import build", None),
        ("te/a.py", "from loopwright import testing", "te/a.py:1: layer te imports the facade testing"),
        ("misc/a.py", "", "folder misc is not a layer"),
    ],
)
def test_the_check_itself(path, source, complaint):
    found = wrong_imports(source, path)
    if complaint is None:
        assert not found
    else:
        assert len(found) == 1
        assert complaint in found[0]


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, loopwright; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, check=True)
    assert done.stdout.split() == []
