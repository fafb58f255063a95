"""Moving elements: a stage whose every element is read from single elements of its inputs, as fusion likes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.types import Shape


def moved(
    shape: Shape,
    cell: Callable[..., Expr],
    name: str,
    kind: str = tag.INJECTIVE,
    attrs: Mapping[str, object] | None = None,
) -> te.Tensor:
    """The tensor of `shape` whose element at its indices is `cell(*indices)`, tagged as `kind`."""
    result: te.Tensor = te.compute(tuple(shape), cell, name=name, tag=default_tag(kind), attrs=attrs)
    return result
