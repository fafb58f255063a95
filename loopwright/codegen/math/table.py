"""Which functions have a body of our own, for which element type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright import ir
from loopwright.runtime.dtype import DataType

# (function, element type) → the body, from arguments of that type with any number of lanes
BODIES: Final[dict[tuple[str, str], Callable[..., ir.Expr]]] = {}


def has_body(name: str, dtype: DataType) -> bool:
    """Whether `name` on values of `dtype` is computed by a body of ours."""
    return (name, str(dtype.element)) in BODIES


def expand(name: str, args: Sequence[ir.Expr], source: DataType, target: DataType) -> ir.Expr:
    """The body of `name` on `args`.

    `decode` takes the bits of a small float type `source` to float32, and `encode` a float32 to the bits of `target`.
    """
    element = target if name == "encode" else source
    return BODIES[name, str(element.element)](*args)
