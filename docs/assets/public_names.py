"""Which names a package offers, and where each is defined, read from the sources without running them.

    public_names("loopwright.te")   →   Name("compute", "loopwright.te.compute.compute", kind="function"), …

A package says what is public by `__all__`; one without it offers what it imports from us and defines, in that order.
Names that load when first used stand in tables of text, one of name → module or of module → names; both are read.
`tests/test_docs.py` holds what is found here against what the packages answer when they run.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import NamedTuple

from source_tree import PACKAGE, assigned, code, comment_above, defined, file_of, statements, tree_of, words_of


class Name(NamedTuple):
    """A public name: `home` is the dotted path of its definition; a module's is its own path."""

    name: str
    home: str
    kind: str  # "class", "error", "function", "value" or "module"


def public_names(module: str) -> list[Name]:
    """The public names of a module, in the order of its `__all__`, or of its source."""
    bound = _bindings(module)
    listed = _literal_all(module)
    names = listed if listed is not None else [name for name in bound if not name.startswith("_")]
    return [Name(name, *_definition(*bound.get(name, (module, name)))) for name in names]


def made_by(path: str) -> tuple[str, str]:
    """For a name that no `def` or `class` defines: how it is called (or "") and what it is, as the source says it."""
    module, _, name = path.rpartition(".")
    value = assigned(module, name)
    if value is None:
        for table, node in defined(module).items():
            if name in (words_of(module, table) or ()):
                return "", comment_above(module, node) or f"listed in `{module}`"
        return "", f"made in `{module}`"
    text = ast.unparse(value)
    return _call_of(module, value), f"`` {text} ``" if len(text) <= 80 else f"made in `{module}`"


def _call_of(module: str, value: ast.expr) -> str:
    """The parameters of a function that another function makes and returns; "" for other values."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return ""
    maker = defined(module).get(value.func.id)
    for node in ast.walk(maker) if isinstance(maker, ast.FunctionDef) else ():
        if isinstance(node, ast.FunctionDef) and node is not maker:
            return f"({ast.unparse(_without_types(node.args))})"
    return ""


def _without_types(arguments: ast.arguments) -> ast.arguments:
    for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        each.annotation = None
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            rest.annotation = None
    return arguments


# --- what a module binds --------------------------------------------------------------------------------------------


@cache
def _bindings(module: str) -> dict[str, tuple[str, str]]:
    """Name → (module, name there); (module, "") is that module itself."""
    found: dict[str, tuple[str, str]] = {}
    for node in statements(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            source = node.module or ""
            for alias in node.names:
                if alias.name == "*":
                    found.update({name.name: (source, name.name) for name in public_names(source)})
                elif _is_module_here(source, alias.name):
                    found[alias.asname or alias.name] = f"{source}.{alias.name}", ""
                else:
                    found[alias.asname or alias.name] = source, alias.name
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = module, node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found[target.id] = module, target.id
                    found.update(_later(module, node.value))
                elif isinstance(target, ast.Subscript) and node.value is not None:  # one more row of such a table
                    found.update(_row(module, ast.literal_eval(target.slice), ast.literal_eval(node.value)))
        elif isinstance(node, ast.AugAssign):
            found.update(_of_one_module(node.value))
    return found


def _is_module_here(package: str, name: str) -> bool:
    return file_of(f"{package}.{name}") is not None and name not in defined(package) and name not in _imported(package)


@cache
def _imported(module: str) -> frozenset[str]:
    """The names that a module imports from modules of ours that define them."""
    found = set()
    for node in statements(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}.") and node.module != module:
            values = [alias for alias in node.names if file_of(f"{node.module}.{alias.name}") is None]
            found.update([alias.asname or alias.name for alias in values])
    return frozenset(found)


# --- names that load when first used --------------------------------------------------------------------------------


def _later(module: str, value: ast.expr | None) -> dict[str, tuple[str, str]]:
    """The names in a table of lazy names; none when the value is no such table."""
    found: dict[str, tuple[str, str]] = {}
    if isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(item, ast.Constant):
                found.update(_row(module, key.value, item.value))
    for words in ast.walk(value) if value is not None else ():
        # "analysis arith …".split(): submodules by name
        if isinstance(words, ast.Call) and ast.unparse(words.func).endswith(".split") and not words.args:
            text = words.func.value if isinstance(words.func, ast.Attribute) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found.update({w: (f"{module}.{w}", "") for w in text.value.split() if file_of(f"{module}.{w}")})
    return found


def _of_one_module(value: ast.expr) -> dict[str, tuple[str, str]]:
    """The names in `dict.fromkeys("one two".split(), "loopwright.module")`: several of one module."""
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) == "dict.fromkeys" and len(value.args) == 2):
        return {}
    words, home = value.args
    text = words.func.value if isinstance(words, ast.Call) and isinstance(words.func, ast.Attribute) else None
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str) and isinstance(home, ast.Constant)):
        return {}
    return {name: (str(home.value), name) for name in text.value.split()}


def _row(module: str, key: object, value: object) -> dict[str, tuple[str, str]]:
    if not isinstance(key, str) or not isinstance(value, str):
        return {}
    if key.startswith(f"{PACKAGE}.") and file_of(key):  # also where a module is called as one of the names
        return {name: (key, name) for name in value.split()}
    home = _module(module, value)
    if value == "" and _module(module, key):
        return {key: (f"{module}.{key}", "")}
    if home is not None:
        return {key: (home, key if key in _bindings(home) else "")}
    home = _module(module, key)
    return {name: (home, name) for name in value.split()} if home is not None else {}


def _module(package: str, text: str) -> str | None:
    """A module by its path, or by its name in the package."""
    if text.startswith(f"{PACKAGE}.") and file_of(text):
        return text
    return f"{package}.{text}" if text and file_of(f"{package}.{text}") else None


# --- definitions ----------------------------------------------------------------------------------------------------


def _definition(module: str, name: str) -> tuple[str, str]:
    """Where a name is defined, through every re-export, and what it is."""
    seen = set()
    while name and (module, name) not in seen:
        seen.add((module, name))
        node = defined(module).get(name)
        if node is None:
            following = _bindings(module).get(name)
            if following is None:
                return f"{module}.{name}", "value"
            module, name = following
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in _bindings(module):
            name = node.value.id  # another name for the same thing
        else:
            break
    if not name:
        return module, "module"
    node = defined(module).get(name)
    if isinstance(node, ast.FunctionDef):
        return f"{module}.{name}", "function"
    if isinstance(node, ast.ClassDef):
        return f"{module}.{name}", "error" if code(f"{module}.{name}") else "class"
    return f"{module}.{name}", "value"


def _literal_all(module: str) -> list[str] | None:
    """`__all__`, where its names are written out, here or in tables of words; None where it is computed."""
    node = defined(module).get("__all__")
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.List | ast.Tuple):
        return None
    found: list[str] = []
    for item in node.value.elts:
        if isinstance(item, ast.Constant):
            found.append(str(item.value))
            continue
        source = item.value if isinstance(item, ast.Starred) else None
        if isinstance(source, ast.GeneratorExp):
            source = source.generators[0].iter
        words = words_of(module, source.id) if isinstance(source, ast.Name) else None
        if words is None:
            return None
        found += words
    return list(dict.fromkeys(found))
