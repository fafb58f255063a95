"""Our sources as syntax trees: what a module defines, and what stands there. Nothing is imported or run.

`public_names.py` finds with it what packages offer; `hooks.py` takes docstrings and error codes from here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "loopwright"


def docstring(path: str) -> str:
    """The docstring of a module, class or function."""
    node: ast.AST | None
    if file_of(path) is not None:
        node = tree_of(path)
    else:
        module, _, name = path.rpartition(".")
        node = defined(module).get(name)
    return (ast.get_docstring(node) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else None) or ""


def code(path: str) -> str:
    """The code of an error class."""
    module, _, name = path.rpartition(".")
    return _code(defined(module)[name])


def bases(path: str) -> list[str]:
    """The bases of a class, as they are written."""
    module, _, name = path.rpartition(".")
    node = defined(module)[name]
    return [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []


def errors() -> Iterator[tuple[str, str]]:
    """Every error that has a code: the code and the path of the class, by code."""
    found = []
    for file in sorted((ROOT / PACKAGE).rglob("*.py")):
        if '= "LW' not in file.read_text(encoding="utf-8"):
            continue
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for name, node in defined(module).items():
            if _code(node):
                found.append((_code(node), f"{module}.{name}"))
    yield from sorted(found)


def _code(node: ast.AST | None) -> str:
    """The code of an error class, such as LW0402."""
    for item in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(item, ast.Assign | ast.AnnAssign) and isinstance(item.value, ast.Constant):
            target = item.targets[0] if isinstance(item, ast.Assign) else item.target
            if isinstance(target, ast.Name) and target.id == "code":
                return str(item.value.value)
    return ""


@cache
def file_of(module: str) -> Path | None:
    """The source of a module; None when there is no such module."""
    folder = ROOT.joinpath(*module.split(".")[:-1])
    last = module.rpartition(".")[2]
    if not last or not folder.is_dir():
        return None
    names = {entry.name for entry in folder.iterdir()}  # compared by spelling on every file system
    if last in names and (folder / last / "__init__.py").is_file():
        return folder / last / "__init__.py"
    return folder / f"{last}.py" if f"{last}.py" in names else None


@cache
def tree_of(module: str) -> ast.Module:
    file = file_of(module)
    assert file is not None, module
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def defined(module: str) -> dict[str, ast.stmt]:
    """What a module defines itself."""
    found: dict[str, ast.stmt] = {}
    for node in statements(tree_of(module)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found.update({target.id: node for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module, those for type checkers only included: they say where lazy names are."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.If) else [node]


def assigned(module: str, name: str) -> ast.expr | None:
    """The value that a name is assigned, also as one of several."""
    for node in statements(tree_of(module)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return node.value
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=True))
            for target, value in pairs:
                if isinstance(target, ast.Name) and target.id == name:
                    return value
    return None


def words_of(module: str, name: str) -> list[str] | None:
    """A table of names: a text that is split, a list, or the keys of a dict."""
    node = defined(module).get(name)
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "split":
        text = value.func.value
        return text.value.split() if isinstance(text, ast.Constant) and isinstance(text.value, str) else None
    items: Sequence[ast.expr | None] = [None]
    if isinstance(value, ast.Dict):
        items = value.keys
    elif isinstance(value, ast.List | ast.Tuple):
        items = value.elts
    words = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return words if len(words) == len(items) else None


def comment_above(module: str, node: ast.stmt) -> str:
    file = file_of(module)
    assert file is not None
    line = file.read_text(encoding="utf-8").splitlines()[node.lineno - 2]
    return line.removeprefix("#").strip() if line.startswith("#") else ""
