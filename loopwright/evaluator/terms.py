"""evaluate_terms: run a program on terms instead of numbers, to say what it computes for all inputs at once.

Loops, indices and conditions run on numbers; what is loaded from an argument is a symbol, what is computed from it is
a term. Two programs compute the same when every cell the caller can see holds the same term:

    difference(evaluate_terms(before), evaluate_terms(after)) is None

The updates that a reduction block makes to a cell between two other writes form a multiset: summation order does not
matter, but how often each update happens does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from loopwright.evaluator.arguments import Array, as_scalar, check_count
from loopwright.evaluator.errors import DataDependent, Race, UninitialisedRead
from loopwright.evaluator.evaluate import Program, choose_function
from loopwright.evaluator.lockstep import InLockstep, LockstepCompiler
from loopwright.evaluator.places import Place, Run
from loopwright.evaluator.statements import OnStep
from loopwright.evaluator.term import Term, as_term, fill, hole, holes, make, symbol
from loopwright.ir import (
    BlockRealize,
    Buffer,
    BufferStore,
    Expr,
    For,
    ForKind,
    IntImm,
    IRModule,
    IterType,
    Node,
    PrimFunc,
    Stmt,
    Var,
    deep,
    pre_order_visit,
)
from loopwright.runtime.call_errors import ArgumentKindMismatch, RankMismatch
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import NotBuilt

Terms = dict[str, np.ndarray]


@deep
def evaluate_terms(
    program: PrimFunc | IRModule,
    *arguments: Any,
    check_races: bool = False,
    all_reductions: bool = False,
    on_step: OnStep | None = None,
    function: str | None = None,
) -> Terms:
    """What every cell of every argument buffer holds after the program ran, by buffer name.

    An argument is a shape (or an array, for its shape) or a number; leave all of them out when every shape is a
    literal. `check_races` refuses parallel loops with two iterations that touch one cell, one of them writing.
    `all_reductions` also takes stores like `x[i] = x[i] + y` outside blocks as updates of a reduction, so that
    lowered programs compare with their blocks.
    """
    module, func = choose_function(program, function)
    races = _Races() if check_races else None
    compiled = Program(module, lambda: _TermCompiler(on_step, races, all_reductions)).function(func)
    given = arguments or (None,) * len(func.params)
    check_count(func, given)
    values = [_argument(func, param, argument) for param, argument in zip(func.params, given, strict=True)]
    compiled.run(values)
    found: Terms = {}
    for param, value in zip(func.params, values, strict=True):
        if isinstance(value, Array):
            found[func.buffer_map[param].name] = _cells(value)
    return found


def difference(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> str | None:
    """The first cell where two results differ, in words; None when they are the same."""
    if list(first) != list(second):
        return f"the buffers differ: {', '.join(first)} and {', '.join(second)}"
    for name in first:
        a, b = first[name], second[name]
        if a.shape != b.shape:
            return f"{name} has shapes {a.shape} and {b.shape}"
        for indices in np.ndindex(a.shape):
            if a[indices] is not b[indices]:
                where = ", ".join([str(index) for index in indices])
                return f"{name}[{where}] holds {a[indices]} in one and {b[indices]} in the other"
    return None


def _argument(func: PrimFunc, param: Var, given: Any) -> Any:
    buffer = func.buffer_map.get(param)
    if buffer is None:
        if given is None and param.dtype.is_float:
            return make("cell", param.dtype, (), (param.name, None))
        return as_scalar(given, param, func.name)
    if given is None:
        if not all(isinstance(size, IntImm) for size in buffer.shape):
            raise ArgumentKindMismatch(f"{func.name}: give the shape of argument {buffer.name}; it is symbolic")
        given = [int(size) for size in buffer.shape]  # type: ignore[call-overload]
    if hasattr(given, "shape"):
        given = given.shape
    shape = (given,) if isinstance(given, int) else tuple([int(size) for size in given])
    if len(shape) != len(buffer.shape):
        raise RankMismatch(
            f"{func.name}: argument {buffer.name} has {len(shape)} dimensions, expected {len(buffer.shape)}"
        )
    strides, step = [], 1
    for size, declared in zip(reversed(shape), reversed(buffer.strides or (None,) * len(shape)), strict=True):
        strides.append(declared.value if isinstance(declared, IntImm) else step)
        step = strides[-1] * size
    layout = tuple(reversed(strides))
    offset = buffer.elem_offset.value if isinstance(buffer.elem_offset, IntImm) else 0
    names = {
        offset + sum([i * s for i, s in zip(indices, layout, strict=True)]): indices
        for indices in product(*[range(size) for size in shape])
    }
    lanes, element = buffer.dtype.lanes, buffer.dtype.element
    if lanes > 1:
        names = {place * lanes + k: (*indices, k) for place, indices in names.items() for k in range(lanes)}
    return Array(_Pointer(_Memory(buffer.name, element, names)), element, shape, layout)


def _cells(array: Array) -> np.ndarray:
    memory: _Memory = array.pointer.memory
    assert memory.names is not None and array.shape is not None
    last = max([len(indices) for indices in memory.names.values()], default=len(array.shape))
    shape = array.shape
    if last > len(shape):
        shape = (*shape, 1 + max([indices[-1] for indices in memory.names.values()]))
    found = np.empty(shape, dtype=object)
    for place, indices in memory.names.items():
        found[indices] = as_term(memory.get(place), memory.dtype)
    return found


# --- memory -------------------------------------------------------------------------------------------------------


class _Memory:
    """Cells that hold numbers, terms or folds; those of an argument start as symbols, others without value."""

    def __init__(self, name: str, dtype: DataType, names: Mapping[int, tuple[int, ...]] | None, size: int = 0) -> None:
        self.name, self.dtype, self.names = name, dtype, names
        self.size = size
        self.cells: dict[int, Any] = {}

    def raw(self, place: int) -> Any:
        """What the cell holds, folds as they are; None without value. IndexError outside the memory."""
        found = self.cells.get(place)
        if found is None:
            if self.names is not None:
                if place not in self.names:
                    raise IndexError(place)
                return symbol(self.name, self.names[place], self.dtype)
            if not 0 <= place < self.size:
                raise IndexError(place)
        return found

    def get(self, place: int) -> Any:
        """The number or term in the cell."""
        found = self.raw(place)
        return found[0].term(found[1]) if type(found) is tuple else found

    def cell_name(self, place: int) -> str:
        indices = self.names.get(place) if self.names is not None else None
        return f"{self.name}[{', '.join([str(i) for i in indices]) if indices is not None else place}]"


class _Pointer:
    """A place in term memory, counted in elements."""

    def __init__(self, memory: _Memory, offset: int = 0) -> None:
        self.memory, self.offset = memory, offset

    def moved(self, count: int, dtype: DataType) -> _Pointer:
        return _Pointer(self.memory, self.offset + count)

    def view(self, dtype: DataType) -> _Pointer:
        own = self.memory.dtype
        if own is not dtype and not (own.nbytes == dtype.nbytes == 1):
            raise NotBuilt(f"evaluation on terms of {own} memory seen as {dtype}")
        return self

    def flags(self, dtype: DataType) -> None:
        return None


Cell = tuple[_Memory, int]


class _Fold:
    """The running reduction of one group of cells: start values, and the updates since."""

    def __init__(self, cells: list[Cell], bases: list[Term]) -> None:
        self.cells, self.bases = cells, bases
        self.updates: list[tuple[Term, ...]] = []
        self.known: tuple[int, list[Term]] = (-1, [])

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


class _Update:
    """One run of a reduction block: it loads holes, and its stores wait until the end."""

    def __init__(self) -> None:
        self.stores: dict[Cell, Any] = {}

    def load(self, cell: Cell) -> Any:
        return self.stores[cell] if cell in self.stores else hole(cell, cell[0].dtype)

    def commit(self, only_if: Callable[[Term, Any], bool] | None = None) -> None:
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
        ready: list[tuple[Cell, Any]] = []
        folds: list[tuple[list[Cell], tuple[Term, ...]]] = []
        for group in groups:
            if not any(cell in plain for cell in group):
                folds.append((group, self._of_group(group, old)))
            else:
                plain.update(group)
        for cell, value in self.stores.items():
            if cell in plain:
                ready.append((cell, fill(value, old) if type(value) is Term else value))
        states = [[cell[0].raw(cell[1]) for cell in group] for group, _ in folds]
        for (group, update), state in zip(folds, states, strict=True):
            fold = state[0][0] if type(state[0]) is tuple else None
            if fold is None or fold.cells != group or any(s != (fold, k) for k, s in enumerate(state)):
                fold = _Fold(group, [old(cell) for cell in group])
                for k, (memory, place) in enumerate(group):
                    memory.cells[place] = (fold, k)
            fold.updates.append(update)
        for (memory, place), value in ready:
            memory.cells[place] = value

    def _of_group(self, group: list[Cell], old: Callable[[Cell], Term]) -> tuple[Term, ...]:
        """The group's stores, with its own holes numbered by position and all others filled in."""
        positions = {cell: k for k, cell in enumerate(group)}

        def value_of(cell: Cell) -> Term:
            position = positions.get(cell)
            return old(cell) if position is None else hole(position, cell[0].dtype)

        return tuple([fill(self.stores[cell], value_of) for cell in group])


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


# --- races --------------------------------------------------------------------------------------------------------


class _Races:
    """The parallel loops that are running, each with who touched which cell."""

    def __init__(self) -> None:
        self.running: list[_ParallelLoop] = []

    def touch(self, memory: _Memory, place: int, writes: bool) -> None:
        for loop in self.running:
            loop.touch(memory, place, writes)


class _ParallelLoop:
    def __init__(self, stmt: For) -> None:
        self.stmt = stmt
        self.now = 0
        self.writer: dict[Cell, int] = {}
        self.readers: dict[Cell, list[int]] = {}  # at most two: enough to find another than any given one

    def touch(self, memory: _Memory, place: int, writes: bool) -> None:
        cell = (memory, place)
        writer = self.writer.get(cell)
        if writer is not None and writer != self.now:
            raise self._race(writer, cell, "both write it" if writes else "the first writes what the second reads")
        readers = self.readers.setdefault(cell, []) if not writes else self.readers.get(cell, [])
        if writes:
            for reader in readers:
                if reader != self.now:
                    raise self._race(reader, cell, "the second writes what the first reads")
            self.writer[cell] = self.now
        elif self.now not in readers and len(readers) < 2:
            readers.append(self.now)

    def _race(self, other: int, cell: Cell, what: str) -> Race:
        return Race(self.stmt.loop_var.name, other, self.now, what, cell[0].cell_name(cell[1]), self.stmt)


# --- the compiler -------------------------------------------------------------------------------------------------

# x = x op y: the updates commute whatever y is.
_UPDATES: Final = frozenset({"Add", "Mul", "Min", "Max", "And", "Or", "bitwise_and", "bitwise_or", "bitwise_xor"})


class _TermCompiler(LockstepCompiler):
    """Compiles a program to run on terms."""

    numeric = False

    def __init__(self, on_step: OnStep | None, races: _Races | None, all_reductions: bool) -> None:
        super().__init__(check=True, on_step=on_step)
        self.races, self.all_reductions = races, all_reductions
        self.updates: list[_Update] = []  # the run of a reduction block, or of a store taken as one
        self.reduces: set[Var] = set()  # at compile time: the pointers whose cells it updates

    def lift(
        self, name: str, function: Callable[..., Any], operands: Sequence[Expr], result: DataType
    ) -> Callable[..., Any]:
        dtypes = [operand.dtype.element for operand in operands]
        chooses = name in ("Select", "if_then_else")

        def apply(*values: Any) -> Any:
            if not any(type(value) is Term for value in values) or (chooses and type(values[0]) is not Term):
                return function(*values)
            return make(name, result, [as_term(value, dtype) for value, dtype in zip(values, dtypes, strict=True)])

        return apply

    def concrete(self, expr: Expr, run: Run) -> Run:
        if isinstance(expr, IntImm):
            return run
        scope = self.scope

        def known() -> Any:
            value = run()
            for item in value if type(value) is list else (value,):
                if type(item) is Term:
                    raise DataDependent(item, expr, self.loops(scope))
            return value

        return known

    def new_memory(self, name: str, dtype: DataType, sizes: Sequence[Any]) -> Run:
        def make_memory() -> _Pointer:
            count = prod([size if isinstance(size, int) else size() for size in sizes]) * dtype.lanes
            return _Pointer(_Memory(name, dtype.element, None, count))

        return make_memory

    def constant_memory(self, name: str, dtype: DataType, data: Any) -> Run:
        memory = _Memory(name, dtype.element, None)
        memory.cells = dict(enumerate(np.asarray(data).reshape(-1).tolist()))
        memory.size = len(memory.cells)
        return lambda: _Pointer(memory)

    def read(self, buffer: Buffer, place: Place, at: Node) -> Callable[[int], Any]:
        frame, scope, races, updates = self.frame, self.scope, self.races, self.updates
        view, _ = self.view_of(buffer)
        updated = buffer.data in self.reduces

        def one(k: int) -> Any:
            pointer = frame[view]
            memory, k = pointer.memory, k + pointer.offset
            if races is not None:
                races.touch(memory, k, False)
            if updated and updates and (memory, k) in updates[-1].stores:
                return updates[-1].stores[memory, k]
            try:
                value = memory.raw(k)
            except IndexError:
                raise place.outside() from None
            if value is None:
                raise UninitialisedRead(buffer, place.indices_of(k - pointer.offset), self.loops(scope), at)
            if updated and updates:
                return updates[-1].load((memory, k))
            return value[0].term(value[1]) if type(value) is tuple else value

        return one

    def write(self, buffer: Buffer, place: Place, at: Node) -> Callable[[int, Any], None]:
        frame, races, updates = self.frame, self.races, self.updates
        view, _ = self.view_of(buffer)
        updated = buffer.data in self.reduces

        def one(k: int, value: Any) -> None:
            pointer = frame[view]
            memory, k = pointer.memory, k + pointer.offset
            if races is not None:
                races.touch(memory, k, True)
            try:
                memory.raw(k)
            except IndexError:
                raise place.outside() from None
            if updated and updates:
                updates[-1].stores[memory, k] = value
            else:
                memory.cells[k] = value

        return one

    # --- reductions -----------------------------------------------------------------------------------------------

    def visit_BlockRealize(self, stmt: BlockRealize) -> Run:
        if not _is_reduction(stmt):
            return super().visit_BlockRealize(stmt)
        outside, self.reduces = self.reduces, _stored_pointers(stmt.block.body)
        run = super().visit_BlockRealize(stmt)
        self.reduces = outside
        return lambda: self._as_update(run)

    def lockstep_block(self, stmt: BlockRealize) -> InLockstep:
        if not _is_reduction(stmt):
            return super().lockstep_block(stmt)
        outside, self.reduces = self.reduces, _stored_pointers(stmt.block.body)
        run = super().lockstep_block(stmt)
        self.reduces = outside
        return lambda lanes: self._as_update(lambda: run(lanes))

    def visit_BufferStore(self, stmt: BufferStore) -> Run:
        if not self.all_reductions or self.reduces:
            return super().visit_BufferStore(stmt)
        self.reduces = {stmt.buffer.data}
        run = super().visit_BufferStore(stmt)
        self.reduces = set()
        return lambda: self._as_update(run, _is_plain_update)

    def lockstep_store(self, stmt: BufferStore) -> InLockstep:
        if not self.all_reductions or self.reduces:
            return super().lockstep_store(stmt)
        self.reduces = {stmt.buffer.data}
        run = super().lockstep_store(stmt)
        self.reduces = set()
        return lambda lanes: self._as_update(lambda: run(lanes), _is_plain_update)

    def _as_update(self, run: Run, only_if: Callable[[Term, Any], bool] | None = None) -> None:
        self.updates.append(_Update())
        run()
        self.updates.pop().commit(only_if)

    # --- parallel loops -------------------------------------------------------------------------------------------

    def loop(self, stmt: For, low: Run, extent: Run, slots: Sequence[int], body: Run) -> Run:
        races = self.races
        if races is None or stmt.kind not in (ForKind.PARALLEL, ForKind.THREAD_BINDING):
            return super().loop(stmt, low, extent, slots, body)
        frame = self.frame

        def run() -> None:
            state = _ParallelLoop(stmt)
            races.running.append(state)
            begin = low()
            for value in range(begin, begin + extent()):
                state.now = value
                for slot in slots:
                    frame[slot] = value
                body()
            races.running.pop()

        return run


def _is_plain_update(value: Any, cell: Any) -> bool:
    """Whether a value is `□ op y` (or fma(x, y, □)) with a y that does not depend on the cell."""
    if type(value) is not Term:
        return False
    if value.op in _UPDATES:
        mine = [arg for arg in value.args if arg.op == "hole" and arg.data == cell]
        return len(mine) == 1 and all(arg is mine[0] or not arg.is_open for arg in value.args)
    if value.op == "fma":
        x, y, z = value.args
        return z.op == "hole" and z.data == cell and not x.is_open and not y.is_open
    return False


def _is_reduction(stmt: BlockRealize) -> bool:
    """A block that runs over a reduction axis and holds no other block (those inside update for themselves)."""
    found = any(axis.iter_type == IterType.CommReduce for axis in stmt.block.iter_vars)

    def look(node: Node) -> None:
        nonlocal found
        if isinstance(node, BlockRealize):
            found = False

    pre_order_visit(stmt.block.body, look)
    return found


def _stored_pointers(body: Stmt) -> set[Var]:
    found: set[Var] = set()

    def look(node: Node) -> None:
        if isinstance(node, BufferStore):
            found.add(node.buffer.data)

    pre_order_visit(body, look)
    return found
