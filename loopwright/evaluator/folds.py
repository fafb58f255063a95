"""Folds: memory whose cells hold terms, and the reductions that run over them.

An update `C[i] = C[i] + A[i, k]` is kept as `□ + A[i, k]`. The updates of a cell since its last plain value form a
multiset, so their order leaves no trace. Cells that are updated together (the fields of a tuple reduction) fold
together: an update then is a tuple, whose holes are numbered by field.

Only updates that may change places are a multiset (`commuting_terms.py`). One that may not with those before it begins
a new one, on top of what they made; and one that may not with its own kind, like `□ * 2 + A[i, k]`, is a plain value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loopwright.evaluator.commuting_terms import Shape, commute, shape_of
from loopwright.evaluator.term import Term, as_term, fill, hole, holes, make, symbol
from loopwright.evaluator.values import Value
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import NotBuilt


class TermMemory:
    """Cells that hold numbers, terms or folds; those of an argument start as symbols, others without value."""

    def __init__(self, name: str, dtype: DataType, names: Mapping[int, tuple[int, ...]] | None, size: int = 0) -> None:
        self.name, self.dtype, self.names = name, dtype, names
        self.size = size
        self.cells: dict[int, Value] = {}

    def raw(self, index: int) -> Value:
        """What the cell holds, folds as they are; None without value. IndexError outside the memory."""
        result = self.cells.get(index)
        if result is None:
            if self.names is not None:
                if index not in self.names:
                    raise IndexError(index)
                return symbol(self.name, self.names[index], self.dtype)
            if not 0 <= index < self.size:
                raise IndexError(index)
        return result

    def get(self, index: int) -> Value:
        """The number or term in the cell."""
        result = self.raw(index)
        return result[0].term(result[1]) if type(result) is tuple else result

    def cell_name(self, index: int) -> str:
        indices = self.names.get(index) if self.names is not None else None
        return f"{self.name}[{', '.join([str(i) for i in indices]) if indices is not None else index}]"


class TermPointer:
    """A place in term memory, counted in elements."""

    def __init__(self, memory: TermMemory, offset: int = 0) -> None:
        self.memory, self.offset = memory, offset

    def moved(self, count: int, dtype: DataType) -> TermPointer:
        return TermPointer(self.memory, self.offset + count)

    def view(self, dtype: DataType) -> TermPointer:
        own = self.memory.dtype
        if own is not dtype and not (own.nbytes == dtype.nbytes == 1):
            raise NotBuilt(f"evaluation on terms of {own} memory seen as {dtype}")
        return self

    def flags(self, dtype: DataType) -> None:
        return None


Cell = tuple[TermMemory, int]


class Fold:
    """The running reduction of one group of cells: start values, and the updates since."""

    def __init__(self, cells: list[Cell], bases: list[Term]) -> None:
        self.cells, self.bases = cells, bases
        self.updates: list[tuple[Term, ...]] = []
        self.shapes: set[Shape] = set()
        self.known: tuple[int, list[Term]] = (-1, [])

    def takes(self, shape: Shape) -> bool:
        """Whether an update of this shape may change places with all those that were made."""
        return all([commute(shape, other) for other in self.shapes])

    def term(self, position: int) -> Term:
        """The value of the group's cell at `position`; a single update is simply applied."""
        if self.known[0] != len(self.updates):
            self.known = (len(self.updates), [self._term(k) for k in range(len(self.cells))])
        return self.known[1][position]

    def _term(self, position: int) -> Term:
        if len(self.updates) == 1:
            return fill(self.updates[0][position], lambda k: self.bases[k])
        ordered = sorted([tuple([term.number for term in update]) for update in self.updates])
        by_number = {term.number: term for update in self.updates for term in update}
        flat = [by_number[number] for update in ordered for number in update]
        return make("reduce", self.bases[position].dtype, [*self.bases, *flat], (position, len(self.bases)))


class Update:
    """One run of a reduction block: it loads holes, and its stores wait until the end."""

    def __init__(self) -> None:
        self.stores: dict[Cell, Value] = {}

    def load(self, cell: Cell) -> Value:
        return self.stores[cell] if cell in self.stores else hole(cell, cell[0].dtype)

    def commit(self, only_if: Callable[[Term, Value], bool] | None = None) -> None:
        """Make the stores: those that update what they loaded join their fold, the rest are plain values."""
        read = {cell: holes(value) if type(value) is Term else set() for cell, value in self.stores.items()}
        before: dict[Cell, Term] = {}

        def old(cell: Cell) -> Term:
            if cell not in before:
                before[cell] = as_term(cell[0].get(cell[1]), cell[0].dtype)
            return before[cell]

        groups, plain = _groups(list(self.stores), read)
        for cell, value in self.stores.items():
            if only_if is not None and cell not in plain and not only_if(value, cell):
                plain.add(cell)
        ready: list[tuple[Cell, Value]] = []
        folds: list[tuple[list[Cell], tuple[Term, ...], Shape]] = []
        for group in groups:
            update = self._of_group(group, old)
            shape = None if any([cell in plain for cell in group]) else shape_of(update)
            if shape is None or not commute(shape, shape):
                plain.update(group)
            elif not all([term.op == "hole" and term.data == k for k, term in enumerate(update)]):
                folds.append((group, update, shape))
        for cell, value in self.stores.items():
            if cell in plain:
                ready.append((cell, fill(value, old) if type(value) is Term else value))
        states = [[cell[0].raw(cell[1]) for cell in group] for group, _, _ in folds]
        for (group, update, shape), state in zip(folds, states, strict=True):
            fold = state[0][0] if type(state[0]) is tuple else None
            is_ours = fold is not None and fold.cells == group and all([s == (fold, k) for k, s in enumerate(state)])
            if fold is None or not is_ours or not fold.takes(shape):
                fold = Fold(group, [old(cell) for cell in group])
                for k, (memory, location) in enumerate(group):
                    memory.cells[location] = (fold, k)
            fold.updates.append(update)
            fold.shapes.add(shape)
        for (memory, location), value in ready:
            memory.cells[location] = value

    def _of_group(self, group: list[Cell], old: Callable[[Cell], Term]) -> tuple[Term, ...]:
        """The group's stores, with its own holes numbered by position and all others filled in."""
        positions = {cell: k for k, cell in enumerate(group)}

        def value_of(cell: Cell) -> Term:
            position = positions.get(cell)
            return old(cell) if position is None else hole(position, cell[0].dtype)

        # A cell may be given a number, and be of the group since another one is computed from what it held.
        return tuple([fill(as_term(self.stores[cell], cell[0].dtype), value_of) for cell in group])


def _groups(stored: list[Cell], read: Mapping[Cell, set[Cell]]) -> tuple[list[list[Cell]], set[Cell]]:
    """Stored cells that were also loaded, grouped so that no update depends on another group; and the others."""
    updated = [cell for cell in stored if any(cell in cells for cells in read.values())]
    plain = {cell for cell in stored if cell not in updated}
    group_of = {cell: {cell} for cell in updated}
    for cell in updated:
        for other in read[cell]:
            if other in group_of and group_of[other] is not group_of[cell]:
                joined = group_of[cell] | group_of[other]
                for member in joined:
                    group_of[member] = joined
    groups: list[list[Cell]] = []
    for cell in updated:
        if not any(cell in group for group in groups):
            groups.append([member for member in updated if member in group_of[cell]])
    return groups, plain
