"""Linear forms: an integer expression as `{atom: coefficient} + constant`.

    i * 4 + j - 4 + 2 * (n // 8)     ↔     {i: 4, j: 1, n // 8: 2} - 4

Atoms are what linear arithmetic does not look into: variables, floor divisions and remainders, products of variables,
minima, loads, calls. The simplifier keeps one node per atom, so atoms compare by identity. Terms stay in the order of
first appearance: a written form depends on the expression alone and reads like what the user wrote.

`Linear` is the arithmetic of all such sums. Beside the simplifier's `LinearForm` there is `Form` (`affine.py`), whose
terms hold forms instead of expressions: what is asked of isl, and the same whatever facts are known.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, Generic, Self, TypeVar

from loopwright.ir import Add, Expr, IntImm, Mul, Sub
from loopwright.runtime.dtype import INT32, INT64, DataType
from loopwright.runtime.errors import LoopwrightError

Terms = dict[Expr, int]
T = TypeVar("T", bound=Hashable)


class TooWide(LoopwrightError, OverflowError):
    """A number that index arithmetic came to does not fit the type it must be written in.

    Simplification leaves such an expression as it is. Solving equations, and reading an index as iterators, cannot.

    For example:

        from loopwright import arith, te

        x, y = te.var("x"), te.var("y")
        arith.solve_linear_inequalities([x * 100003 + y * 100019 <= 5, x * -100043 + y * 99991 <= 7], [x, y], {})
    """

    code = "LW0911"

    # Raised inside at every other turn, so it looks for nobody's line.
    def __init__(self) -> None:
        Exception.__init__(self)
        self._problem = "a number in this index arithmetic is beyond the type of its expression"
        self._why, self._hint = None, "use int64 for the variables, or smaller factors"
        self.asked, self.at, self.user_line, self.fields = None, None, None, {}


class Linear(Generic[T]):
    """The sum of `coefficient * term` over `terms`, plus `const`; no coefficient is 0. Treat it as immutable."""

    __slots__ = ("const", "terms")

    def __init__(self, terms: dict[T, int], const: int) -> None:
        self.terms = terms
        self.const = const

    @property
    def key(self) -> Hashable:
        """Equal for equal sums."""
        return frozenset(self.terms.items()), self.const

    def equals(self, other: Self) -> bool:
        """Whether both are the same sum."""
        return self.const == other.const and self.terms == other.terms

    def plus(self, other: Self, scale: int = 1) -> Self:
        """self + scale * other."""
        terms = dict(self.terms)
        add_into(terms, other.terms, scale)
        return self.__class__(terms, self.const + scale * other.const)

    def times(self, scale: int) -> Self:
        """scale * self."""
        if scale == 0:
            return self.__class__({}, 0)
        return self.__class__({term: scale * k for term, k in self.terms.items()}, scale * self.const)


class LinearForm(Linear[Expr]):
    """A sum over atoms that the simplifier keeps: the normal form of an expression, under the facts it knows."""

    __slots__ = ()

    @property
    def key(self) -> Hashable:
        """Equal for equal forms; the atom itself when the form is just that atom."""
        terms = self.terms
        if not terms:
            return self.const
        if len(terms) == 1 and self.const == 0:
            ((atom, coefficient),) = terms.items()
            return atom if coefficient == 1 else (atom, coefficient)
        return frozenset(terms.items()), self.const

    def atom(self) -> Expr | None:
        """The atom this form is, when it is just one."""
        if len(self.terms) == 1 and self.const == 0:
            ((atom, coefficient),) = self.terms.items()
            if coefficient == 1:
                return atom
        return None

    def __repr__(self) -> str:
        return " + ".join([f"{k}*({atom!r})" for atom, k in self.terms.items()] + [str(self.const)])


def add_term(terms: dict[T, int], term: T, k: int) -> None:
    """terms += k * term, keeping no zero."""
    total = terms.get(term, 0) + k
    if total:
        terms[term] = total
    else:
        terms.pop(term, None)


def add_into(terms: dict[T, int], other: Mapping[T, int], scale: int) -> None:
    """terms += scale * other, keeping no zero, in the order of first appearance."""
    for term, k in other.items():
        total = terms.get(term, 0) + scale * k
        if total:
            terms[term] = total
        else:
            terms.pop(term, None)


def add_terms(a: Terms, b: Terms, scale: int = 1) -> Terms:
    """a + scale * b."""
    terms = dict(a)
    add_into(terms, b, scale)
    return terms


_INTS: Final[dict[tuple[DataType, int], IntImm]] = {}


def imm(value: int, dtype: DataType) -> IntImm:
    """An integer literal; small ones are shared. Raises TooWide when the type cannot hold it."""
    result = _INTS.get((dtype, value))
    if result is None:
        if not dtype.min_value() <= value <= dtype.max_value():
            raise TooWide
        result = IntImm(dtype, value)
        if -1024 <= value <= 65536:
            _INTS[dtype, value] = result
    return result


def writing_order(form: LinearForm) -> tuple[list[tuple[Expr, int]], bool]:
    """The terms as they are written, and whether the constant comes first: `n - i`, `4 - i`, never `i * -1 + n`."""
    order = list(form.terms.items())
    if order and order[0][1] < 0:
        for index, (_, k) in enumerate(order):
            if k > 0:
                order.insert(0, order.pop(index))
                break
        else:
            return order, form.const > 0
    return order, False


def write_terms(order: list[tuple[Expr, int]], const: int, const_first: bool, dtype: DataType) -> Expr:
    """The expression `t0 + t1 - t2 + const` for terms in that order."""
    written: Expr | None = imm(const, dtype) if const_first else None
    for atom, k in order:
        if written is None:
            written = atom if k == 1 else Mul(atom, imm(k, dtype))
        elif k > 0:
            written = Add(written, atom if k == 1 else Mul(atom, imm(k, dtype)))
        else:
            written = Sub(written, atom if k == -1 else Mul(atom, imm(-k, dtype)))
    if written is None:
        return imm(const, dtype)
    if const and not const_first:
        return Add(written, imm(const, dtype)) if const > 0 else Sub(written, imm(-const, dtype))
    return written


def is_index(dtype: DataType) -> bool:
    """Whether arithmetic of this type counts as that of mathematical integers: scalar int32 and int64."""
    return dtype is INT32 or dtype is INT64
