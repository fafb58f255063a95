"""Layouts: the index maps that rules give to `transform_layout`, `transform_block_layout` and `stage`, as text.

layout(["d0", "d1"], ["d1", "d0"])     lambda d0, d1: (d1, d0)
moved_last(4, 1)                       lambda d0, d1, d2, d3: (d0, d2, d3, d1)
swapped_last(3)                        lambda d0, d1, d2: (d0, d2, d1)
in_panels(2, 1, 16)                    lambda d0, d1: (d1 // 16, d0, d1 % 16)
"""

from __future__ import annotations

from collections.abc import Sequence


def dimensions(rank: int) -> list[str]:
    """Names for as many dimensions: d0, d1 …"""
    return [f"d{k}" for k in range(rank)]


def layout(names: Sequence[str], indices: Sequence[str]) -> str:
    """The map from dimensions of these names to `indices` made of them."""
    return f"lambda {', '.join(names)}: ({', '.join(indices)})"


def moved_last(rank: int, dimension: int) -> str:
    """One dimension after all others."""
    names = dimensions(rank)
    return layout(names, [*names[:dimension], *names[dimension + 1 :], names[dimension]])


def swapped_last(rank: int) -> str:
    """The last two dimensions the other way round."""
    names = dimensions(rank)
    return layout(names, [*names[:-2], names[-1], names[-2]])


def in_panels(rank: int, dimension: int, width: int) -> str:
    """Panels of `width` neighbours along one dimension: the panel first, then the others, then the place in it."""
    names = dimensions(rank)
    own, others = names[dimension], [*names[:dimension], *names[dimension + 1 :]]
    return layout(names, [f"{own} // {width}", *others, f"{own} % {width}"])


def folded(names: Sequence[str], extents: Sequence[int]) -> str:
    """Several dimensions as one: the number of a pixel in its image, y * 56 + x."""
    text = names[0]
    for name, size in zip(names[1:], extents[1:], strict=True):
        text = f"({text}) * {size} + {name}"
    return text
