"""The truth about a step: does the program after it compute what the program before computed?

The evaluator on terms decides, for all inputs at once: every cell the caller can see holds the same term, nothing is
read before it is written or outside its buffer, no two iterations of a parallel or bound loop touch one cell with a
write among them, and a vectorized loop runs in lockstep.

Where data steers the program there are terms only for given inputs: they may show that a step is wrong, never that it
is right.
Two things are right though the plain comparison says no. A copy may copy cells that hold nothing, as long as nobody
uses the copies: memory then starts with terms of its own, which must not reach the caller. And terms know a reduction
by its block. A step that takes the cell out of the block (staging what a sum reads of itself)
leaves the same sum as nested additions, and `rfactor` makes a sum of sums: such a result is *regrouped*, equal as a sum
of the same members (units of the operation left out).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from loopwright.analysis.races import privatised
from loopwright.analysis.reduction_init import write_inits
from loopwright.evaluator import difference, evaluate, evaluate_terms
from loopwright.evaluator.errors import (
    AxisOutsideDomain,
    DataDependent,
    IndexTooLarge,
    IntegerDivisionByZero,
    OutOfBounds,
    Race,
    ThreadRace,
    UninitialisedRead,
)
from loopwright.evaluator.evaluate import Program as EvaluatedProgram
from loopwright.evaluator.folds import TermMemory, TermPointer
from loopwright.evaluator.locations import Run
from loopwright.evaluator.races import Races
from loopwright.evaluator.term import Term
from loopwright.evaluator.terms import _argument, _cells, _TermCompiler, outside_memory
from loopwright.ir import (
    Add,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    ForKind,
    IntImm,
    IterType,
    Let,
    Max,
    Min,
    Mul,
    Node,
    PrimFunc,
    Rewriter,
    Select,
    Stmt,
    Var,
    const,
    deep,
    pre_order_visit,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.registry import register_func
from loopwright.transform.passes.write_allocations import allocate_around

Terms = Mapping[str, np.ndarray]

INPUTS = 4  # tried where data steers a program

# What a program that means nothing raises while it runs; anything else is a bug of the harness or the evaluator.
_WRONG = (AxisOutsideDomain, IntegerDivisionByZero, OutOfBounds, Race, ThreadRace, UninitialisedRead)


@dataclass(frozen=True)
class Truth:
    """Whether the step keeps every value; `why` is the witness when it does not."""

    legal: bool
    why: str = ""
    is_race: bool = False
    is_regrouped: bool = False  # not the same terms, but the same members of the same sums
    copies_undefined: bool = False  # reads cells that hold nothing, to no effect
    is_by_terms: bool = False  # the values are written otherwise, and nothing else is wrong

    @property
    def is_right(self) -> bool:
        """Whether the caller sees the same values, for whatever reason."""
        return self.legal or self.is_regrouped or self.copies_undefined


def terms_of(function: PrimFunc) -> Terms | None:
    """What the function computes, symbolically; None when data steers it.

    A term holds both values of a select: one that data never takes may leave 64 bits, and numbers decide there too.
    """
    try:
        return evaluate_terms(function, check_races=True)
    except (DataDependent, IndexTooLarge):
        return None


@deep
def truth(before: Terms, after: PrimFunc) -> Truth | None:
    """The truth about going to `after` from what computed `before`; None when data steers the program."""
    after = _with_private_memory(privatised(after))
    found: Terms
    undefined = ""
    try:
        try:
            _check_races_in_lanes(after)
            found = evaluate_terms(after, check_races=True)
        except UninitialisedRead as error:
            undefined = str(error).split("\n")[0]
            found = _terms_with_undefined(after)
    except DataDependent:
        return None
    except _WRONG as error:
        return Truth(False, str(error).split("\n")[0], isinstance(error, (Race, ThreadRace)))
    why = difference(before, found)
    if why is None:
        return Truth(not undefined, undefined, copies_undefined=bool(undefined))
    is_regrouped = _regrouped(before, found)
    if not undefined and not is_regrouped and _holds_unwrapped_literal(before):
        return None  # a store wraps the literals below a choice too, which terms do not show: numbers decide
    return Truth(False, undefined or why, is_regrouped=is_regrouped, is_by_terms=not undefined)


def _holds_unwrapped_literal(terms: Terms) -> bool:
    """Whether index arithmetic left a literal beyond its type somewhere in the terms."""
    pending = [term for array in terms.values() for term in array.flat]
    met: set[int] = set()
    while pending:
        term = pending.pop()
        if term.number in met:
            continue
        met.add(term.number)
        if term.op == "literal" and term.dtype.is_int and not term.dtype.lowest <= term.data <= term.dtype.highest:
            return True
        pending += term.args
    return False


def _check_races_in_lanes(function: PrimFunc) -> None:
    """Raise Race for parallel loops inside vectorized ones: in lockstep the evaluator does not look for races."""
    hidden = _OneLaneAtATime()
    serial = hidden.visit(function)
    if hidden.found:
        evaluate_terms(serial, check_races=True)


class _OneLaneAtATime(Rewriter):
    """Vectorized loops become serial ones; `found` says whether another concurrent loop is inside one."""

    def __init__(self) -> None:
        self.found = self.inside = False

    def visit_For(self, loop: For) -> Stmt:
        self.found |= self.inside and loop.kind in (ForKind.PARALLEL, ForKind.THREAD_BINDING)
        if loop.kind is not ForKind.VECTORIZED:
            return loop.with_(body=self.visit(loop.body))
        outside, self.inside = self.inside, True
        body = self.visit(loop.body)
        self.inside = outside
        return loop.with_(kind=ForKind.SERIAL, body=body)


def truth_about(before: PrimFunc, after: PrimFunc) -> Truth | None:
    """The truth by terms, or by numbers where data steers the program."""
    expected = terms_of(before)
    real = None if expected is None else truth(expected, after)
    return real or disproof(before, after)


class _UndefinedMemory(_TermCompiler):
    """Allocated memory starts with terms that no program writes, instead of nothing."""

    allocations = itertools.count()

    def new_memory(self, name: str, dtype: DataType, sizes: Sequence[Any]) -> Run:
        def make_memory() -> TermPointer:
            number = next(self.allocations)
            count = prod([size if isinstance(size, int) else size() for size in sizes]) * dtype.lanes
            names = {place: (number, place) for place in range(count)}
            return TermPointer(TermMemory(f"undefined {name}", dtype.element, names))

        return make_memory


def _terms_with_undefined(function: PrimFunc) -> Terms:
    """`evaluate_terms` in memory that starts with terms of its own."""
    outside = outside_memory()
    compiled = EvaluatedProgram(None, lambda: _UndefinedMemory(None, Races(), False, outside)).function(function)
    values = [_argument(function, param, None) for param in function.params]
    compiled.run(values)
    buffers = [function.buffer_map[param].name for param in function.params]
    found = {name: _cells(value) for name, value in zip(buffers, values, strict=True)}
    if outside.cells:
        found[outside.name] = np.array([outside.get(0)], dtype=object)
    return found


# --- memory that threads have for themselves -------------------------------------------------------------------------

_PRIVATE = ("local", "wmma", "warp")


def _with_private_memory(function: PrimFunc) -> PrimFunc:
    """The function with thread-private buffers allocated anew in each iteration of the bound loop that uses them.

    What flows between two threads then shows as a read before any write. A buffer that is also used outside the loop
    stays: what the threads do to it shows as a race. Starts of reductions are uses, and are written down first: where a
    buffer is allocated says where its sum starts.
    """
    function = function.with_(body=write_inits(function.body))
    root = function.body
    if not isinstance(root, BlockRealize):
        return function
    body = root.block.body
    kept = []
    for buffer in root.block.alloc_buffers:
        moved = _Privatise(buffer).visit(body) if buffer.scope().startswith(_PRIVATE) else body
        if moved is body or _uses(root.block.body, buffer) != _Privatise(buffer).uses_below(root.block.body):
            kept.append(buffer)
        else:
            body = moved
    block = root.block.with_(body=body, alloc_buffers=tuple(kept))
    return function.with_(body=root.with_(block=block))


class _Privatise(Rewriter):
    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def visit_For(self, loop: For) -> Stmt:
        if _is_bound(loop) and _uses(loop.body, self.buffer):
            return loop.with_(body=allocate_around(self.buffer, loop.body))
        return loop.with_(body=self.visit(loop.body))

    def uses_below(self, root: Stmt) -> int:
        """How many uses are inside one bound loop, the outermost; 0 when several loops share the buffer."""
        loops = []

        def look(node: Node) -> None:
            if isinstance(node, For) and _is_bound(node):
                loops.append(_uses(node.body, self.buffer))

        pre_order_visit(root, look)
        return max(loops, default=0)


def _is_bound(loop: For) -> bool:
    """Whether it is bound to threads that have memory of their own; virtual ones share what is allocated outside."""
    binding = loop.thread_binding
    return loop.kind is ForKind.THREAD_BINDING and binding is not None and not binding.thread_tag.startswith("vthread")


def _uses(root: Node, buffer: Buffer) -> int:
    found = 0

    def look(node: Node) -> None:
        nonlocal found
        found += isinstance(node, (BufferLoad, BufferStore)) and node.buffer is buffer

    pre_order_visit(root, look)
    return found


# --- sums of the same members -------------------------------------------------------------------------------------

_FOLDS = frozenset({"Add", "Mul", "Min", "Max"})
_SYMMETRIC = frozenset({"EQ", "NE", "bitwise_and", "bitwise_or", "bitwise_xor"})


def _regrouped(before: Terms, after: Terms) -> bool:
    if list(before) != list(after):
        return False
    members = _Members()
    for name in before:
        if before[name].shape != after[name].shape:
            return False
        for a, b in zip(before[name].flat, after[name].flat, strict=True):
            if members.number(a) != members.number(b):
                return False
    return True


# What partial results start with: combined with other members it changes nothing.
_UNITS = {"Add": ("0", "'0x0.0p+0'", "'-0x0.0p+0'"), "Mul": ("1", "'0x1.0000000000000p+0'")}


class _Members:
    """Numbers for terms: the same for two of them when nested folds of one operation have the same members.

    A chain of choices names the value before it several times, so its text doubles with each link; a number does not.
    """

    def __init__(self) -> None:
        self.known: dict[int, int] = {}  # by the number of the term
        self.numbers: dict[tuple[object, ...], int] = {}
        self.folds: dict[int, tuple[str, list[int]]] = {}
        self.literals: dict[int, str] = {}
        self.ends: dict[int, str] = {}  # the least and the greatest number of a type: of which fold it is the unit

    def number(self, term: Term) -> int:
        pending = [term]  # a chain of updates is as deep as its loop is long
        while pending:
            last = pending[-1]
            args = last.args if _fold_of(last) is None else _folded(last)
            missing = [arg for arg in args if arg.number not in self.known]
            if missing:
                pending += missing
                continue
            pending.pop()
            if last.number not in self.known:
                self.known[last.number] = self._new(last, [self.known[arg.number] for arg in args])
        return self.known[term.number]

    def _new(self, term: Term, args: list[int]) -> int:
        op = _fold_of(term)
        if op is not None:
            parts: list[int] = []
            for part in args:
                inner = self.folds.get(part)
                parts += inner[1] if inner is not None and inner[0] == op else [part]
            return self._fold(op, parts)
        parts = list(args)
        if term.op in _SYMMETRIC:
            parts.sort()
        found = self._numbered((term.op, str(term.dtype), repr(term.data), *parts))
        if term.op == "literal":
            self.literals[found] = repr(term.data)
            if term.dtype.is_int and term.data in (term.dtype.lowest, term.dtype.highest):
                self.ends[found] = "Max" if term.data == term.dtype.lowest else "Min"
        return found

    def _fold(self, op: str, parts: list[int]) -> int:
        if op in _UNITS:
            kept = [part for part in parts if self.literals.get(part) not in _UNITS[op]]
        else:
            kept = [part for part in set(parts) if self.ends.get(part) != op]  # the least of a and a is a
        parts = sorted(kept or parts[:1])
        if len(parts) == 1:
            return parts[0]
        found = self._numbered(("fold", op, *parts))
        self.folds[found] = (op, parts)
        return found

    def _numbered(self, key: tuple[object, ...]) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


def _fold_of(term: Term) -> str | None:
    if term.op in _FOLDS:
        return term.op
    if term.op == "reduce" and term.data[1] == 1:
        ops = {update.op for update in term.args[1:]}
        if len(ops) == 1 and ops <= _FOLDS and all(_added(update) is not None for update in term.args[1:]):
            return next(iter(ops))
    return None


def _folded(term: Term) -> list[Term]:
    if term.op != "reduce":
        return list(term.args)
    added = [_added(update) for update in term.args[1:]]
    return [term.args[0], *[item for item in added if item is not None]]


def _added(update: Term) -> Term | None:
    """x of the update □ op x."""
    others = [arg for arg in update.args if arg.op != "hole"]
    return others[0] if len(update.args) == 2 and len(others) == 1 and not others[0].is_open else None


# --- numbers ------------------------------------------------------------------------------------------------------


def disproof(before: PrimFunc, after: PrimFunc, inputs: int = INPUTS) -> Truth | None:
    """Inputs for which two programs differ or race; None when none were found, which proves nothing."""
    for seed in range(inputs):
        given, expected = computed_from(before, seed)
        if expected is None:
            return None
        real = truth(expected, _ForInputs(after, given).visit(after))
        if real is not None and not real.is_right:
            # An index that loads what the program writes is arithmetic in the terms, which a step may write otherwise.
            return None if real.is_by_terms and same_numbers(before, after) else real
    return None


@lru_cache(maxsize=16)  # one program is asked about many steps, one after the other
def computed_from(before: PrimFunc, seed: int) -> tuple[Mapping[str, Sequence[int]], Terms | None]:
    """Numbers for the integers that nobody writes, and what the program computes from them."""
    # Few different values: several iterations go to one cell.
    rng = np.random.default_rng(seed)
    stored = _stored(before)
    given: dict[str, list[int]] = {}
    for buffer in before.argument_buffers():
        size = prod([int(extent) for extent in buffer.shape])  # type: ignore[call-overload]
        if buffer not in stored and buffer.dtype.is_int:
            given[buffer.name] = rng.integers(-2, 3, size).tolist()
    return given, terms_of(_ForInputs(before, given).visit(before))


def compares_by_numbers(function: PrimFunc) -> bool:
    """Whether some block reduces several values together, or by something other than one sum, product, min or max.

    Outside of their own buffer such updates are a chain, which terms do not compare with a set. So are those that
    commute, but that no small values show to. And a reduction of nothing is a literal, which is folded into what uses
    it; a reduction of two such is not.
    """
    found = False

    def look(node: Node) -> None:
        nonlocal found
        if isinstance(node, Block):
            reduced = [axis.dom.extent for axis in node.iter_vars if axis.iter_type == IterType.CommReduce]
            found |= bool(reduced) and not _is_plain_fold(node.body)
            found |= any(isinstance(extent, IntImm) and extent.value == 0 for extent in reduced)

    pre_order_visit(function.body, look)
    return found


def _is_plain_fold(body: Stmt) -> bool:
    if not isinstance(body, BufferStore) or not isinstance(body.value, (Add, Mul, Min, Max)):
        return False
    operands = (body.value.a, body.value.b)
    own = [operand for operand in operands if isinstance(operand, BufferLoad) and operand.buffer is body.buffer]
    return len(own) == 1 and _uses(body.value, body.buffer) == 1


ROUNDED = 1e-9  # how far whole numbers may be off that `winograd` computes in float64: its bound is 1e-11 of theirs


def same_numbers(before: PrimFunc, after: PrimFunc, inputs: int = 16, within: float = 0.0) -> bool:
    """Whether two programs give the same numbers for several random inputs, few values or many."""
    for seed in range(inputs):
        rng = np.random.default_rng(seed)
        arguments = []
        for buffer in before.argument_buffers():
            shape = [int(extent) for extent in buffer.shape]  # type: ignore[call-overload]
            arguments.append(rng.integers(-2, 3 if seed % 2 else 100, shape).astype(buffer.dtype.numpy()))
        expected, told = numbers_of(before, arguments), _called.state
        got = numbers_of(after, arguments)
        if isinstance(expected, str) or isinstance(got, str) or told != _called.state:
            return False
        if first_difference(before, got, expected, within) is not None:
            return False
    return True


def _stored(function: PrimFunc) -> set[Buffer]:
    found: set[Buffer] = set()

    def look(node: Node) -> None:
        if isinstance(node, BufferStore):
            found.add(node.buffer)

    pre_order_visit(function.body, look)
    return found


class _ForInputs(Rewriter):
    """Loads of arguments that nobody writes become choices among the given numbers."""

    def __init__(self, function: PrimFunc, given: Mapping[str, Sequence[int]]) -> None:
        self.values = {buffer: given.get(buffer.name) for buffer in function.argument_buffers()}

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        values = self.values.get(load.buffer)
        if values is None:
            return load
        place: Expr = const(0)
        for index, extent in zip(load.indices, load.buffer.shape, strict=True):
            place = place * extent + index
        at = Var("at", place.dtype)  # the index is computed once, and not for every choice
        chosen: Expr = const(values[-1], load.dtype)
        for position, value in enumerate(values[:-1]):
            chosen = Select(at.equal(position), const(value, load.dtype), chosen)
        return Let(at, place, chosen)


class _Called:
    """What programs call: each call gives another number, which depends on those before it."""

    def __init__(self) -> None:
        self.state = 0

    def __call__(self, *values: int) -> int:
        for value in (7, *values):
            self.state = (self.state * 31 + int(value)) % 10_007
        return self.state


_called = _Called()
for _name in ("harness.next", "harness.tell"):
    register_func(_name, _called, override=True)


def numbers_of(function: PrimFunc, arguments: Sequence[np.ndarray | int]) -> list[np.ndarray] | str:
    """What the arrays hold after the function ran in the evaluator, or what went wrong."""
    _called.state = 0
    copies = [np.array(array) if isinstance(array, np.ndarray) else array for array in arguments]
    try:
        evaluate(function, *copies)
    except UninitialisedRead:  # a copy of what nobody uses: the terms say whether that is so
        copies = [np.array(array) if isinstance(array, np.ndarray) else array for array in arguments]
        _called.state = 0
        try:
            evaluate(function, *copies, check=False)
        except IndexError as error:
            return f"an index is what holds nothing: {error}"
    except _WRONG as error:
        return str(error).split("\n")[0]
    return [array for array in copies if isinstance(array, np.ndarray)]


def _rounding(buffer: Buffer) -> float:
    """Half of what one unit in the last place of a number near 1 is; 0 for integers."""
    return float(ml_dtypes.finfo(buffer.dtype.numpy()).eps) / 2 if buffer.dtype.is_float else 0.0


def first_difference(
    function: PrimFunc,
    got: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
    within: float = 0.0,
    roundings: int = 0,
) -> str | None:
    """The first cell where two results differ (by more than `within` of the largest; floats, by more `roundings`)."""
    for buffer, a, b in zip(function.argument_buffers(), got, wanted, strict=True):
        part = max(within, roundings * _rounding(buffer) if roundings else 0.0)
        room = part * max(1.0, float(np.abs(b).max())) if part and b.size else 0.0
        wrong = np.argwhere(~(np.abs(a - b) <= room) & (a != b) if room else a != b)  # inf - inf is no number
        if len(wrong):
            where = tuple(wrong[0].tolist())
            cell = ", ".join([str(index) for index in where])
            return f"{buffer.name}[{cell}] is {a[where]} instead of {b[where]} ({len(wrong)} of {a.size} cells)"
    return None
