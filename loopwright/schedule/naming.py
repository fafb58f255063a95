"""Names of instances: what makes a read or write of one version of a program comparable with one of another.

The instance of block b with axis values v is called `b[v]`, wherever its loops are. So steps that only move loops need
no map, and recomputation (several iterations with equal axis values) is many-to-one by itself. A step that makes new
blocks says with `Origins` what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from loopwright.analysis.affine import Form
from loopwright.analysis.dataflow import BlockKey, Dataflow, InitOf, NotProvable, Reference
from loopwright.analysis.instances import Place
from loopwright.ir import Buffer, Expr, Var

OldValues = Callable[[Sequence[Var]], Sequence[Expr]]


@dataclass(frozen=True)
class Origins:
    """What the blocks, loads and buffers of a new version stand for in the old one; what is not named stays itself.

    `copies`: blocks that copy a cell, seen through to what the cell they copy holds.
    `renamed`: a new block → the old one (`InitOf(b)` for the init of b), and its axis values in the new block's axes.
    `loads`: (new block, load number) → (old block, load number, axis values in the new block's axes); loads are
        numbered in the order of evaluation within their block.
    `buffers`: a new argument buffer → the old one.
    """

    copies: frozenset[BlockKey] = frozenset()
    renamed: Mapping[BlockKey, tuple[BlockKey, OldValues]] = field(default_factory=dict)
    loads: Mapping[tuple[BlockKey, int], tuple[BlockKey, int, Sequence[Expr]]] = field(default_factory=dict)
    buffers: Mapping[Buffer, Buffer] = field(default_factory=dict)


class Label(NamedTuple):
    """A tuple of names in words: `title` with `axes`."""

    kind: str
    title: str
    axes: tuple[str, ...]
    buffer: Buffer


class Name(NamedTuple):
    """What an access is called: the isl tuple `space[values]`."""

    space: str
    values: tuple[str, ...]
    label: Label


UNDEFINED = "undefined"


class Naming:
    """The names of one version's accesses."""

    def __init__(self, dataflow: Dataflow, origins: Origins) -> None:
        self.dataflow = dataflow
        self.origins = origins
        self.labels: dict[str, Label] = {}
        self.ambiguous: set[str] = set()  # names of blocks without axes that more than one block has
        self._names: dict[Reference, Name] = {}

    def name(self, item: Reference) -> Name:
        """The name of an access. Raises NotProvable when axes are not affine."""
        found = self._names.get(item)
        if found is None:
            found = self._names[item] = self._virtual(item) if item.access is None else self._real(item)
            self.labels[found.space] = found.label
        return found

    def is_copy(self, item: Reference) -> bool:
        """Whether the access is in a block that only copies."""
        return item.place is not None and self.dataflow.key(item.place) in self.origins.copies

    def _virtual(self, item: Reference) -> Name:
        buffer = item.shadow_of or item.buffer
        if item.kind == "start" and buffer not in self.dataflow.arguments:
            return Name(UNDEFINED, (), Label("undefined", "", (), buffer))
        origin = self.origins.buffers.get(buffer, buffer)
        space = f"{'initial' if item.kind == 'start' else 'final'}{id(origin)}{self._shadow(item)}"
        return Name(space, tuple(item.dims), Label(item.kind, origin.name, tuple(item.dims), buffer))

    def _shadow(self, item: Reference) -> str:
        if item.shadow_of is None:
            return ""
        return f"_x{self.dataflow.groups[item.shadow_of].index(item.buffer)}"

    def _real(self, item: Reference) -> Name:
        access, place = item.access, item.place
        assert access is not None and place is not None
        key, ordinal, values = self.origin(item, place)
        if key in self.ambiguous:
            raise NotProvable(f"several blocks without axes are called {key!r}")
        # Loops inside the block, lanes and unknown indices tell its accesses apart, and so does whatever the block
        # uses from outside beside its axes.
        inner = [(loop.var.name, item.names[loop.var]) for loop in access.running[place.depth :]]
        inner += [(dim, dim) for dim in item.dims[len(access.loops) :]]
        outer = list(place.outer)
        texts = []
        for value in [*values, *[self.dataflow.program.affine.values.get(var) for var in outer]]:
            if value is None:
                raise NotProvable(f"the axes of block {_title(place)} are not affine in its loops")
            texts.append(self.dataflow.text.form(value, item.names))
        role = "r" if item.kind == "read" else "w" if item.kind == "write" else "u"
        space = f"{role}{_key_text(key)}_{ordinal}{self._shadow(item)}" + "".join([f"_o{id(var)}" for var in outer])
        axes = [axis.var.name for axis in place.block.iter_vars] if place.block is not None else []
        axes = [*axes[: len(values)], *[f"axis {k}" for k in range(len(axes), len(values))]]
        label = Label(
            item.kind,
            _title(place),
            (*axes, *[var.name for var in outer], *[name for name, _ in inner]),
            item.shadow_of or item.buffer,
        )
        return Name(space, (*texts, *[text for _, text in inner]), label)

    def origin(self, item: Reference, place: Place) -> tuple[BlockKey, int, Sequence[Form | None]]:
        """The old block, the number of the access in it, and the old axis values in the loops of this access."""
        key, ordinal = self.dataflow.key(place), item.ordinal
        if item.kind == "read" and (key, ordinal) in self.origins.loads:
            old, old_ordinal, exprs = self.origins.loads[key, ordinal]
            return old, old_ordinal, self._forms(place, exprs)
        if key in self.origins.renamed:
            assert place.block is not None
            old, values = self.origins.renamed[key]
            return old, ordinal, self._forms(place, values([axis.var for axis in place.block.iter_vars]))
        return key, ordinal, place.values

    def texts(self, item: Reference, exprs: Sequence[Expr]) -> list[str] | None:
        """Expressions in the axes of an access's block, as isl text in its loops; None when they are not affine."""
        assert item.place is not None
        forms = self._forms(item.place, exprs)
        return (
            [self.dataflow.text.form(form, item.names) for form in forms if form is not None]
            if None not in forms
            else None
        )

    def _forms(self, place: Place, exprs: Sequence[Expr]) -> list[Form | None]:
        affine = self.dataflow.program.affine
        # A block may stand in several places; here its axes are what they are in this one.
        assert place.block is not None
        affine.values.update(zip([axis.var for axis in place.block.iter_vars], place.values, strict=True))
        return [affine.form(expr) for expr in exprs]


def _title(place: Place) -> str:
    return place.block.name_hint if place.block is not None else "the function"


def _key_text(key: BlockKey) -> str:
    if isinstance(key, InitOf):
        return f"z{_key_text(key.block)}"
    return f"{id(key)}" if isinstance(key, Var) else f"s{key.encode().hex()}"
