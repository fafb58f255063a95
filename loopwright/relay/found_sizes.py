"""found_sizes: outputs whose sizes the run decides, cut to those.

A model gives such an output room for the most there may be, as a vector, and writes the sizes it found to outputs of
their own, behind the others (`lower/lower_to_program.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopwright.ir import Expr, Var
from loopwright.model.program import Program
from loopwright.model.sizes import bound_sizes, number


class FoundSizes:
    """What is known of the outputs of a program; false where the run decides no sizes."""

    def __init__(self, program: Program) -> None:
        shapes, locations = program.attrs.get("shapes") or {}, program.attrs.get("sizes") or {}
        assert isinstance(shapes, Mapping) and isinstance(locations, Mapping)
        self._program = program
        self._shapes: Mapping[int, Sequence[int | Expr]] = shapes
        self._locations: Mapping[Var, int] = locations
        found = {size for shape in shapes.values() for size in shape if not isinstance(size, int)}
        self._needs_inputs = not found <= set(locations)  # sizes of inputs take part in those of outputs

    def __bool__(self) -> bool:
        return bool(self._shapes)

    def cut(self, outputs: Sequence[Any], arrays: Sequence[Any]) -> list[np.ndarray]:
        """The outputs for these inputs in their own sizes; without those that hold the sizes."""
        sizes: dict[Var, int] = bound_sizes(self._program, arrays) if self._needs_inputs else {}
        for var, location in self._locations.items():
            sizes[var] = int(outputs[location].item())
        result = []
        for index, array in enumerate(outputs[: len(outputs) - len(self._locations)]):
            if index in self._shapes:
                shape = tuple([_size(size, sizes) for size in self._shapes[index]])
                count = prod(shape)
                # Memory of which most is used is kept; little in much would hold what nobody reads.
                array = array[:count].reshape(shape)
                array = array if 2 * count >= len(outputs[index]) else array.copy()
            result.append(array)
        return result


def _size(size: int | Expr, sizes: Mapping[Var, int]) -> int:
    if isinstance(size, int):
        return size
    known = sizes.get(size) if isinstance(size, Var) else None
    return number(size, sizes, "an output") if known is None else known
