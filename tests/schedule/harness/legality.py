"""The truth about a step: does the program after it compute what the program before computed?

The evaluator on terms decides, for all inputs at once: every cell the caller can see holds the same term, nothing is
read before it is written or outside its buffer, no two iterations of a parallel or bound loop touch one cell with a
write among them, and a vectorized loop runs in lockstep.

Terms know a reduction by its block. A step that takes the cell out of the block (staging what a sum reads of itself)
leaves the same sum as nested additions: such a result is *regrouped*, equal as a sum of the same members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopwright.evaluator import difference, evaluate, evaluate_terms
from loopwright.evaluator.errors import (
    AxisOutsideDomain,
    DataDependent,
    IntegerDivisionByZero,
    OutOfBounds,
    Race,
    UninitialisedRead,
)
from loopwright.evaluator.term import Term
from loopwright.ir import PrimFunc

Terms = Mapping[str, np.ndarray]

# What a program that means nothing raises while it runs; anything else is a bug of the harness or the evaluator.
_WRONG = (AxisOutsideDomain, IntegerDivisionByZero, OutOfBounds, Race, UninitialisedRead)


@dataclass(frozen=True)
class Truth:
    """Whether the step keeps every value; `why` is the witness when it does not."""

    legal: bool
    why: str = ""
    is_race: bool = False
    is_regrouped: bool = False  # not the same terms, but the same members of the same sums


def terms_of(function: PrimFunc) -> Terms:
    """What the function computes, symbolically."""
    return evaluate_terms(function, check_races=True)


def truth(before: Terms, after: PrimFunc) -> Truth | None:
    """The truth about going to `after` from what computed `before`; None when data steers the program."""
    try:
        found = evaluate_terms(after, check_races=True)
    except DataDependent:
        return None
    except _WRONG as error:
        return Truth(False, str(error).split("\n")[0], isinstance(error, Race))
    why = difference(before, found)
    if why is None:
        return Truth(True)
    return Truth(False, why, is_regrouped=_regrouped(before, found))


# --- sums of the same members -------------------------------------------------------------------------------------

_FOLDS = frozenset({"Add", "Mul", "Min", "Max"})
_SYMMETRIC = frozenset({"EQ", "NE", "bitwise_and", "bitwise_or", "bitwise_xor"})


def _regrouped(before: Terms, after: Terms) -> bool:
    if list(before) != list(after):
        return False
    known: dict[int, tuple[object, ...]] = {}
    for name in before:
        if before[name].shape != after[name].shape:
            return False
        for a, b in zip(before[name].flat, after[name].flat, strict=True):
            if _members(a, known) != _members(b, known):
                return False
    return True


def _members(term: Term, known: dict[int, tuple[object, ...]]) -> tuple[object, ...]:
    """A key that is the same for two terms when nested folds of one operation have the same members."""
    found = known.get(term.number)
    if found is not None:
        return found
    op = _fold_of(term)
    if op is not None:
        parts: list[tuple[object, ...]] = []
        for arg in _folded(term):
            key = _members(arg, known)
            parts += key[1] if key[0] == ("fold", op) else [key]  # type: ignore[arg-type, operator]
        found = (("fold", op), sorted(parts, key=repr))
    else:
        parts = [_members(arg, known) for arg in term.args]
        if term.op in _SYMMETRIC:
            parts.sort(key=repr)
        found = (term.op, str(term.dtype), repr(term.data), *parts)
    known[term.number] = found
    return found


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


def numbers_of(function: PrimFunc, arguments: Sequence[np.ndarray]) -> list[np.ndarray] | str:
    """What the arguments hold after the function ran in the evaluator, or what went wrong."""
    copies = [np.array(array) for array in arguments]
    try:
        evaluate(function, *copies)
    except _WRONG as error:
        return str(error).split("\n")[0]
    return copies


def first_difference(function: PrimFunc, got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str | None:
    """The first cell where two results differ, in words."""
    for buffer, a, b in zip(function.argument_buffers(), got, wanted, strict=True):
        wrong = np.argwhere(a != b)
        if len(wrong):
            where = tuple(wrong[0].tolist())
            cell = ", ".join([str(index) for index in where])
            return f"{buffer.name}[{cell}] is {a[where]} instead of {b[where]} ({len(wrong)} of {a.size} cells)"
    return None
