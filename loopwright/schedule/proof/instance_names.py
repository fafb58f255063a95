"""Names of instances: what makes a read or write of one version of a program comparable with one of another.

The instance of block b with axis values v is called `b[v]`, wherever its loops are. So steps that only move loops need
no map, and recomputation (several iterations with equal axis values) is many-to-one by itself. A step that makes new
blocks says with `Origins` what they stand for.

A block in another one runs once for each instance of that, and a block without axes uses loop variables: there, axes
alone call different instances by one name. Finer ways to name them are tried where the plain one proves nothing; any
of them will do, as long as both versions use the same:

    with T.block("outer"):                      plain      B[vi]
        vo = T.axis.spatial(4, io)              nested     B[vi, vo]             with the axes of the blocks around
        for i in range(4):                      by cell    B[vi, vo * 4 + vi]    with whatever B computes from outside,
            with T.block("B"):                                                   however loops are split or fused, but
                vi = T.axis.spatial(4, i)                                        for the indices of its loads
                B[vo * 4 + vi] = A[vo]          by use     B[vi, vo * 4 + vi, vo]    and with those
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from loopwright.analysis.dataflow import BlockKey, Dataflow, InitOf, NotProvable, Reference
from loopwright.analysis.instances import Place
from loopwright.arith.affine import Form, Part
from loopwright.ir import (
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    Expr,
    Node,
    Var,
    deep,
    pre_order_visit,
    uses_var,
)
from loopwright.schedule.origins import Origins


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


class Way(Enum):
    """What instances are called by, beside the axes of their block."""

    PLAIN = "variables from outside that the block computes with"
    NESTED = "and the axes of the blocks around"
    BY_CELL = "what the block computes from variables from outside, without the indices of its loads"
    BY_USE = "all that the block computes from variables from outside"


BY_WHAT_IT_DOES = (Way.BY_CELL, Way.BY_USE)


class Naming:
    """The names of one version's accesses; those of a new version follow the old one's, `like`."""

    def __init__(self, dataflow: Dataflow, origins: Origins, way: Way = Way.PLAIN, like: Naming | None = None) -> None:
        self.dataflow = dataflow
        self.origins = origins
        self.way = way
        self.axes_around: dict[BlockKey, tuple[Var, ...]] = {} if like is None else like.axes_around
        if way is Way.NESTED and like is None:
            for location in dataflow.by_place:
                self.axes_around.setdefault(dataflow.key(location), tuple(_axes_around(location)))
        self._used: dict[Place, list[tuple[str, Form]]] = {}
        self.labels: dict[str, Label] = {}
        self.ambiguous: set[str] = set()  # names of blocks without axes that more than one block has
        self._names: dict[Reference, Name] = {}

    def name(self, item: Reference) -> Name:
        """The name of an access. Raises NotProvable when axes are not affine."""
        result = self._names.get(item)
        if result is None:
            result = self._names[item] = self._virtual(item) if item.access is None else self._real(item)
            self.labels[result.space] = result.label
        return result

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
        access, location = item.access, item.place
        assert access is not None and location is not None
        key, ordinal, values = self.origin(item, location)
        if key in self.ambiguous:
            raise NotProvable(f"several blocks without axes are called {key!r}")
        # Loops inside the block, lanes and unknown indices tell its accesses apart, and so does whatever the block
        # uses from outside beside its axes.
        inner = []
        if not self._is_inlined(item, location):  # such a load is called what it was called in its old block
            inner += [(loop.var.name, item.names[loop.var]) for loop in access.running[location.depth :]]
        inner += [(dim, dim) for dim in item.dims[len(access.loops) :]]
        outer, tag = self._outside(key, location)
        texts = []
        for value in [*values, *[form for _, form in outer]]:
            if value is None:
                raise NotProvable(f"the axes of block {_title(location)} are not affine in its loops")
            texts.append(self.dataflow.text.form(value, item.names))
        role = "r" if item.kind == "read" else "w" if item.kind == "write" else "u"
        space = f"{role}{_key_text(key)}_{ordinal}{self._shadow(item)}{tag}"
        axes = [axis.var.name for axis in location.block.iter_vars] if location.block is not None else []
        axes = [*axes[: len(values)], *[f"axis {k}" for k in range(len(axes), len(values))]]
        label = Label(
            item.kind,
            _title(location),
            (*axes, *[name for name, _ in outer], *[name for name, _ in inner]),
            item.shadow_of or item.buffer,
        )
        return Name(space, (*texts, *[text for _, text in inner]), label)

    def _outside(self, key: BlockKey, location: Place) -> tuple[list[tuple[str, Form | None]], str]:
        """What a name holds besides the axes, with words for it; and a mark of what sort of thing that is."""
        values = self.dataflow.program.affine.values
        if self.way in BY_WHAT_IT_DOES:
            used = self.used(location)
            return [*used], f"_u{len(used)}"
        around = [var for var in self.axes_around.get(key, ()) if var not in location.outer]
        if around and not {*around} <= {*_axes_around(location)}:
            raise NotProvable(f"block {_title(location)} is not inside the blocks that it was in")
        outer = [*location.outer, *around]
        return [(var.name, values.get(var)) for var in outer], "".join([f"_o{id(var)}" for var in outer])

    def used(self, location: Place) -> list[tuple[str, Form]]:
        """What the block computes from variables from outside, beside what its own loops add, in order."""
        result = self._used.get(location)
        if result is None:
            result = self._used[location] = []
            if location.outer or location.indexed:
                result += _used_in(location, self.dataflow, self.way is Way.BY_USE)
        return result

    def uses_outside(self) -> bool:
        """Whether other ways to name things would name them differently."""
        return any([offset.outer or offset.indexed or _axes_around(offset) for offset in self.dataflow.by_place])

    def origin(self, item: Reference, location: Place) -> tuple[BlockKey, int, Sequence[Form | None]]:
        """The old block, the number of the access in it, and the old axis values in the loops of this access."""
        key, ordinal = self.dataflow.key(location), item.ordinal
        if item.kind == "read" and (key, ordinal) in self.origins.loads:
            old, old_ordinal, exprs = self.origins.loads[key, ordinal]
            return old, old_ordinal, self._forms(location, exprs)
        if key in self.origins.renamed:
            assert location.block is not None
            old, values = self.origins.renamed[key]
            return old, ordinal, self._forms(location, values([axis.var for axis in location.block.iter_vars]))
        return key, ordinal, location.values

    def _is_inlined(self, item: Reference, location: Place) -> bool:
        """Whether the access is a load that stands for one of another block."""
        if not self.origins.loads or item.kind != "read":
            return False
        key = self.dataflow.key(location)
        result = self.origins.loads.get((key, item.ordinal))
        return result is not None and result[0] != key

    def texts(self, item: Reference, exprs: Sequence[Expr]) -> list[str] | None:
        """Expressions in the axes of an access's block, as isl text in its loops; None when they are not affine."""
        assert item.place is not None
        forms = self._forms(item.place, exprs)
        return (
            [self.dataflow.text.form(form, item.names) for form in forms if form is not None]
            if None not in forms
            else None
        )

    def texts_around(self, key: BlockKey, item: Reference) -> list[str] | None:
        """What the name of an instance of block `key` holds besides its axes, if an access is in the same blocks."""
        assert item.place is not None
        around = self.axes_around.get(key, ())
        if self.way in BY_WHAT_IT_DOES or not {*around} <= {*_axes_around(item.place)}:
            return None
        forms = [self.dataflow.program.affine.values.get(var) for var in around]
        texts = [self.dataflow.text.form(form, item.names) for form in forms if form is not None]
        return texts if len(texts) == len(forms) else None

    def _forms(self, location: Place, exprs: Sequence[Expr]) -> list[Form | None]:
        affine = self.dataflow.program.affine
        # A block may stand in several places; here its axes are what they are in this one.
        assert location.block is not None
        affine.values.update(zip([axis.var for axis in location.block.iter_vars], location.values, strict=True))
        return [affine.form(expr) for expr in exprs]


def _axes_around(location: Place) -> list[Var]:
    """The axes of the blocks around a block."""
    result: list[Var] = []
    outer = location.around
    while outer is not None:
        result += [axis.var for axis in outer.block.iter_vars] if outer.block is not None else []
        outer = outer.around
    return result


@deep
def _used_in(place: Place, dataflow: Dataflow, in_loads: bool) -> list[tuple[str, Form]]:
    """The largest affine expressions in a block's body that use variables from outside, without the block's loops."""
    affine = dataflow.program.affine
    outside = {**place.outer, **place.indexed}
    block = place.block
    if block is None:
        raise NotProvable("statements outside of blocks use variables from outside")
    affine.values.update(zip([axis.var for axis in block.iter_vars], place.values, strict=True))
    inner = {
        loop.var for access in dataflow.by_place[place] for loop in access.loops[place.depth :] if loop.product is None
    }
    result: list[tuple[str, Form]] = []

    def look(node: Node) -> bool:
        if isinstance(node, (BlockRealize, BufferRegion, Buffer)) or (isinstance(node, BufferLoad) and not in_loads):
            return False
        if not isinstance(node, Expr) or not uses_var(node, outside.__contains__):
            return not isinstance(node, Expr)
        form = affine.form(node) if node.dtype.is_int and node.dtype.lanes == 1 else None
        if form is None:
            if isinstance(node, Var):
                raise NotProvable(f"what block {block.name_hint} computes from {node.name} is not affine")
            return True
        if any([isinstance(term, Part) and not term.variables.isdisjoint(inner) for term in form.terms]):
            raise NotProvable(f"block {block.name_hint} mixes its own loops with what it computes from outside")
        result.append((str(node), Form({term: k for term, k in form.terms.items() if term not in inner}, form.const)))
        return False

    pre_order_visit(block.body, look)
    return result


def _title(location: Place) -> str:
    return location.block.name_hint if location.block is not None else "the function"


def _key_text(key: BlockKey) -> str:
    # isl knows names only, and those of two variables may be the same: an address, of a variable that a program holds.
    if isinstance(key, InitOf):
        return f"z{_key_text(key.block)}"
    return f"{id(key)}" if isinstance(key, Var) else f"s{key.encode().hex()}"
