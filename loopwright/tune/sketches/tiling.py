"""Tiling: how a sketch tiles one block, as plain data: what formulas about all its tile sizes need.

It travels as JSON in an annotation of the block, which the rule that tiles leaves and the last postproc takes away.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from loopwright.autosched.facts import BlockFacts, const
from loopwright.runtime.dtype import DataType

TILED = "loopwright.tiled"  # the annotation


@dataclass(frozen=True)
class TiledAccess:
    """A load or store: `steps[d][a]` is how far index d moves with axis a; `packed` is "root", "slab" or empty."""

    itemsize: int
    shape: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    strides: tuple[int, ...]  # by axis, in elements
    packed: str = ""


@dataclass(frozen=True)
class Tiling:
    """The axes are those that are tiled, data axes first and that of the vectors the last of them."""

    block: str
    structure: str
    dtype: str
    axes: tuple[str, ...]
    extents: tuple[int, ...]
    data: int  # how many of the axes are no reductions
    reads: tuple[TiledAccess, ...]
    write: TiledAccess
    level: int = 0  # after which data level results are copied; 0 for written where they belong, -1 for in registers

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Tiling:
        data: dict[str, Any] = {key: _tuples(value) for key, value in json.loads(text).items()}
        data["reads"] = tuple([_access(one) for one in data["reads"]])
        data["write"] = _access(data["write"])
        return cls(**data)

    @property
    def vector(self) -> int:
        """The number of the axis that vectors run along."""
        return self.data - 1

    def text(self) -> str:
        """What distinguishes it: `C: vectors along j, B packed first, A packed by slab, copied out at level 1`."""
        packed = [f"operand {k} in panels ({one.packed})" for k, one in enumerate(self.reads) if one.packed]
        out = [f"copied out at level {self.level}"] if self.level > 0 else ["sums in registers"] * -self.level
        return f"{self.block}: {', '.join([f'vectors along {self.axes[self.vector]}', *packed, *out])}"


def slab_level(structure: str) -> int:
    """How many levels are outside what operands are packed for at a time: those to the first reduction, or two."""
    return structure.index("R") + 1 if structure.count("R") > 1 else min(2, structure.index("R"))


def _access(data: dict[str, Any]) -> TiledAccess:
    return TiledAccess(**{key: _tuples(value) for key, value in data.items()})


def _tuples(value: object) -> Any:
    return tuple([_tuples(one) for one in value]) if isinstance(value, list) else value


def tiling_of(
    facts: BlockFacts, structure: str, order: Sequence[int], data: int, level: int, packed: dict[int, str]
) -> Tiling:
    """The tiling of a plain block; `order` are the numbers of the axes that are tiled."""
    axes = [facts.axes[number] for number in order]

    def access(number: int) -> TiledAccess:
        one = facts.reads[number] if number >= 0 else facts.write
        steps = [one.steps(axis.var) for axis in axes]
        return TiledAccess(
            DataType(str(one.buffer.dtype)).element.bits // 8 or 1,
            tuple([const(size) or 1 for size in one.buffer.shape]),
            tuple([tuple([abs(step[d] or 0) for step in steps]) for d in range(len(one.indices))]),
            tuple([abs(one.stride(axis.var) or 0) for axis in axes]),
            packed.get(number, ""),
        )

    return Tiling(
        facts.name,
        structure,
        facts.dtype,
        tuple([axis.name for axis in axes]),
        tuple([axis.extent or 1 for axis in axes]),
        data,
        tuple([access(number) for number in range(len(facts.reads))]),
        access(-1),
        level,
    )
