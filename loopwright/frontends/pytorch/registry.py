"""The converters of PyTorch's operators.

    @converter("softmax.int", "_softmax")
    def softmax(node: Node, x: Expr, dim: int, dtype: object = None) -> Expr:
        return relay.nn.softmax(x, dim)

A name is that of an operator of the namespace aten, for all its overloads or, with a dot, for one of them; other
namespaces are written out ("quantized_decomposed::quantize_per_tensor"). A converter is given the node (see `node.py`)
and the arguments of the call: expressions for tensors, numbers, lists, None. Where tensors are laid out and stored is
left out. It returns an expression, or several as a list; the element type that torch says the result has is seen to.

An operator that has a converter is kept when torch expresses operators by simpler ones. Converters live in `ops/`; a
new file of them is named in `ops/__init__.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Final, TypeVar

from loopwright.frontends.pytorch.values import Results

Convert = Callable[..., Results]
F = TypeVar("F", bound=Convert)

_TABLE: Final[dict[str, Convert]] = {}  # "namespace::operator" or "namespace::operator.overload" → converter
_loaded: Final[list[bool]] = []


def converter(*names: str) -> Callable[[F], F]:
    """Enter a function as the converter of these operators."""

    def enter(function: F) -> F:
        for name in names:
            _TABLE[full_name(name)] = function
        return function

    return enter


def full_name(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


def names_of(target: object) -> tuple[str, str]:
    """An operator of torch with its overload, and without: "aten::add.Tensor", "aten::add"."""
    schema = getattr(target, "_schema", None)
    if schema is not None:
        overload = schema.overload_name or "default"
        return f"{schema.name}.{overload}", str(schema.name)
    if hasattr(target, "namespace") or type(target).__module__.startswith("torch._higher_order"):
        own = getattr(target, "name", None)
        name = own() if callable(own) else str(target)
        return f"higher_order::{name}", f"higher_order::{name}"
    name = f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}".removeprefix("_")
    return name, name


def find(target: object) -> Convert | None:
    """The converter of an operator: of its overload, or else of all of them."""
    load_all()
    for name in names_of(target):
        if name in _TABLE:
            return _TABLE[name]
    return None


def supported_operators() -> list[str]:
    """The names of the operators that have converters."""
    load_all()
    return sorted(_TABLE)


def load_all() -> None:
    """Load every file of converters, once."""
    if _loaded:
        return
    _loaded.append(True)
    from loopwright.frontends.pytorch.ops import CONVERTER_FILES

    for name in CONVERTER_FILES:
        importlib.import_module(f"loopwright.frontends.pytorch.ops.{name}")
