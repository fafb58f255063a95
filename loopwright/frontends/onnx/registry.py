"""The converters of ONNX's operators.

    @converter("Softmax", since=13)
    def softmax(node: Node, x: Expr) -> Expr:
        return relay.nn.softmax(x, node.attr("axis", -1))

A converter is given the node (attributes, shapes, known values: see `node.py`) and its inputs as expressions, None for
those that are left out. It returns an expression, or several (a list, or the TupleWrapper of an operator of relay);
None in a list is an output that is not made. Of several converters of one operator, the newest that is not newer than
the model's operator set is used: give one for each version whose meaning differs.

`domain="com.microsoft"` enters it for another set. `fold=False` keeps a node from being computed while the model is
imported, though all its inputs are known (random numbers). Converters live in `ops/`; a new file of them is named in
`ops/__init__.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from loopwright.frontends.onnx.values import Results

Convert = Callable[..., Results]
F = TypeVar("F", bound=Convert)


@dataclass(frozen=True)
class Converter:
    """How one operator is converted from a version of its operator set on."""

    name: str
    domain: str
    since: int
    convert: Convert
    fold: bool = True


_TABLE: Final[dict[tuple[str, str], list[Converter]]] = {}  # (domain, operator) → converters, oldest first
_loaded: Final[list[bool]] = []


def converter(*names: str, since: int = 1, domain: str = "", fold: bool = True) -> Callable[[F], F]:
    """Enter a function as the converter of these operators, from version `since` of their set on."""

    def enter(function: F) -> F:
        for name in names:
            entries = _TABLE.setdefault((domain, name), [])
            entries[:] = [entry for entry in entries if entry.since != since]
            entries.append(Converter(name, domain, since, function, fold))
            entries.sort(key=lambda entry: entry.since)
        return function

    return enter


def find(name: str, domain: str, version: int) -> Converter | None:
    """The newest converter of an operator that is not newer than the version; the oldest where all are."""
    load_all()
    entries = _TABLE.get(("" if domain == "ai.onnx" else domain, name))
    if not entries:
        return None
    fitting = [entry for entry in entries if entry.since <= version]
    return fitting[-1] if fitting else entries[0]


_REASONS: Final = {
    **dict.fromkeys(
        ["StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch"],
        "texts are not computed with: do that before the model",
    ),
    "ImageDecoder": "files of pictures are not decoded: give the model their pixels",
    "Gradient": "training is not supported: derive the model before it is exported",
    **dict.fromkeys(["Adagrad", "Adam", "Momentum"], "training is not supported"),
}


def reason_against(name: str) -> str | None:
    """Why an operator without a converter has none, where there is more to say."""
    return _REASONS.get(name)


def supported_operators(domain: str = "") -> dict[str, list[int]]:
    """The operators of a domain that have converters, with the versions from which each of these holds."""
    load_all()
    return {name: [entry.since for entry in entries] for (of, name), entries in sorted(_TABLE.items()) if of == domain}


def load_all() -> None:
    """Load every file of converters, once."""
    if _loaded:
        return
    _loaded.append(True)
    from loopwright.frontends.onnx.ops import CONVERTER_FILES

    for name in CONVERTER_FILES:
        importlib.import_module(f"loopwright.frontends.onnx.ops.{name}")
