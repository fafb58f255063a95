"""assumed_sizes: what operators assume of sizes that are known only when the program runs.

    with collected() as found:
        topi.add(te.placeholder((n, 4)), te.placeholder((m, 4)))
    found[0].condition          n == m or n == 1 or m == 1

An operator that compares two sizes refuses what is known to be wrong, and goes on where nobody knows yet: it *assumes*
that they fit. Each such place says so by one of `assume_equal`, `assume_broadcast`, `assume_repeated` and `assume`.
Whoever compiles the operators collects the assumptions, and makes each of them a check of the call
(`relay/size_checks.py`). Where nobody collects them, tensors that are repeated to one shape keep theirs (`ASSUMED` in
the attributes of the operation), and `create_prim_func` makes them checks of the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from loopwright.arith import Analyzer
from loopwright.ir import EQ, Expr, IntImm, Select, as_expr, is_one, logical_not, logical_or, structural_equal

EQUAL: Final = "them equal"
BROADCAST: Final = "them equal, or one of them 1"
ASSUMED: Final = "assumed_sizes"  # an attribute of an operation, for the function


@dataclass(frozen=True, eq=False)
class Assumption:
    """`condition` holds of the sizes of every call; `sizes` are those it is about, and `needs` says it in words.

    The words go on after "this operator needs". With `equal`, the first two sizes are one number.
    """

    condition: Expr
    sizes: tuple[Expr, ...]
    needs: str
    equal: bool = False


_collecting: ContextVar[list[Assumption] | None] = ContextVar("assumed_sizes", default=None)


@contextmanager
def collected() -> Iterator[list[Assumption]]:
    """The assumptions that operators make inside the block, in order; those that hold of all sizes are left out."""
    result: list[Assumption] = []
    token = _collecting.set(result)
    try:
        yield result
    finally:
        _collecting.reset(token)


@contextmanager
def kept() -> Iterator[list[Assumption]]:
    """The same for an operation that keeps them itself: none where somebody else collects them."""
    if _collecting.get() is not None:
        yield []
        return
    with collected() as result:
        yield result


def assume(condition: object, sizes: Sequence[object], needs: str) -> None:
    """Say that the result is right only where `condition` holds; `needs` is about `sizes`: "it at least 3"."""
    _add(condition, sizes, needs)


def assume_equal(one: object, other: object) -> None:
    """Say that two sizes are taken to be one number."""
    if one is not other and _is_wanted(one, other):
        _add(as_expr(one).equal(other), (one, other), EQUAL, equal=True)


def assume_broadcast(one: object, other: object) -> None:
    """Say that two sizes are repeated to one: they are equal, or one of them is 1."""
    one, other = as_expr(one), as_expr(other)
    if one is other or not _is_wanted(one, other) or is_one(one) or is_one(other) or _is_repeated(one, other):
        return
    _add(fit_together(one, other), (one, other), BROADCAST)


def fit_together(one: Expr, other: Expr) -> Expr:
    """The condition under which two sizes are repeated to one."""
    choices = [one.equal(other), *[size.equal(1) for size in (one, other) if not isinstance(size, IntImm)]]
    return logical_or(*choices)


def assume_repeated(own: object, wanted: object) -> None:
    """Say that a size is repeated to `wanted`: it is that, or 1."""
    own, wanted = as_expr(own), as_expr(wanted)
    if own is not wanted and _is_wanted(own, wanted) and not is_one(own):
        _add(logical_or(own.equal(wanted), own.equal(1)), (own, wanted), "the first to be 1, or equal to the second")


def _is_wanted(*sizes: object) -> bool:
    return _collecting.get() is not None and not all(isinstance(size, (int, IntImm)) for size in sizes)


def _add(condition: object, sizes: Sequence[object], needs: str, equal: bool = False) -> None:
    result = _collecting.get()
    if result is None:
        return
    known = Analyzer().simplify(as_expr(condition))
    if not (isinstance(known, IntImm) and known.value):
        result.append(Assumption(known, tuple(as_expr(size) for size in sizes), needs, equal))


def broadcast_size(one: Expr, other: Expr) -> Expr:
    """The size that two sizes are repeated to, where neither is known: the one that is not 1.

    `max(n, m)` would be wrong of 0 and 1, which give 0. Sizes that were repeated before are not asked again: the result
    for n and m, repeated with n, is itself.
    """
    result = _first_not_one([*_repeated(one), *_repeated(other)])
    if isinstance(result, Select) and not structural_equal(Analyzer().simplify(result), result):
        # Of n and k // n simplifying leaves Select(n == 1, k, n), as if n had been repeated with k: say it otherwise.
        return Select(logical_not(result.condition), result.false_value, result.true_value)
    return result


def _first_not_one(sizes: Sequence[Expr]) -> Expr:
    """The first of the sizes, in an order that is always the same, that is not 1; 1 where all are."""
    parts: list[Expr] = []
    for size in sorted(map(Analyzer().simplify, sizes), key=str):
        if not _is_among(size, parts):
            parts.append(size)
    result = parts[-1]
    for size in reversed(parts[:-1]):
        result = Select(_is_one(size), result, size)
    return result


def _repeated(size: Expr) -> list[Expr]:
    """The sizes that `broadcast_size` made one of."""
    parts = _apart(size)
    # `Select(n == 1, 0, n)` has a 0 that is no size which n was repeated with: others would be put into its place.
    return parts if len(parts) > 1 and structural_equal(_first_not_one(parts), size) else [size]


def _apart(size: Expr) -> list[Expr]:
    parts: list[Expr] = []
    while isinstance(size, Select) and structural_equal(size.condition, _is_one(size.false_value)):
        parts.append(size.false_value)
        size = size.true_value
    return [*parts, size]


def _is_repeated(one: Expr, other: Expr) -> bool:
    """Whether one of two sizes is what the other was repeated to: then they fit, for that was assumed before."""
    parts, others = _repeated(one), _repeated(other)
    return all(_is_among(size, parts) for size in others) or all(_is_among(size, others) for size in parts)


def _is_among(size: Expr, sizes: Sequence[Expr]) -> bool:
    return any(structural_equal(size, known) for known in sizes)


def _is_one(size: Expr) -> Expr:
    """`size == 1`, as simplifying leaves it."""
    return Analyzer().simplify(EQ(size, as_expr(1).astype(size.dtype)))
