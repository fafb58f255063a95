"""Affine forms and conditions: the part of index arithmetic that can be decided exactly.

    i * 4 + j % 8 - 1          ↔     {i: 4, (j mod 8): 1} - 1
    0 <= i and i < n           ↔     all of [i ≥ 0, n - i - 1 ≥ 0]

A form holds variables and parts, and a part holds forms again: nothing of the expression is left, so a form can be
evaluated, and written for isl (`isl_text.py`), as it is. `affine_reader.py` makes forms of expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from loopwright.arith.linear import Linear
from loopwright.ir import Var


class NoForm(Exception):
    """The expression has no such form: how a walk over it ends early. Never leaves the analysis."""


# The last three are only in loose forms: a product of parameters, and floor division by a form of parameters.
Op = Literal["floor", "trunc", "mod", "min", "max", "times", "product", "quotient", "remainder"]


class Part:
    """A term that is not a variable: `floor(x / d)`, `trunc(x / d)`, `x mod d`, `min(x, y)`, `max(x, y)` or `x * y`.

    Equal parts of one program are one object. Of a product, x is a loop variable, y a form of parameters, and `symbol`
    stands for it in isl text. With `is_loose`, it is for lemmas only: isl has no text for it, or for a part of it.
    """

    __slots__ = ("args", "divisor", "is_loose", "op", "size", "symbol", "variables")

    def __init__(self, op: Op, args: tuple[Form, ...], divisor: int, symbol: Var | None = None) -> None:
        self.op = op
        self.args = args
        self.divisor = divisor
        self.symbol = symbol
        self.variables: frozenset[Var] = frozenset().union(*[arg.variables() for arg in args])
        self.size: int = 1 + sum([arg.size() for arg in args])
        inner = [part.is_loose for arg in args for part in arg.parts()]
        self.is_loose: bool = op in ("product", "quotient", "remainder") or True in inner

    def at(self, values: Mapping[Var, int]) -> int:
        """The number this is when its variables have `values`."""
        numbers = [arg.at(values) for arg in self.args]
        x, d = numbers[0], self.divisor
        if self.op == "floor":
            return x // d
        if self.op == "mod":
            return x % d
        if self.op == "trunc":
            return x // d if x >= 0 else -(-x // d)
        if self.op in ("times", "product"):
            return x * numbers[1]
        if self.op in ("quotient", "remainder"):
            return x // numbers[1] if self.op == "quotient" else x % numbers[1]
        return min(numbers) if self.op == "min" else max(numbers)


class Form(Linear["Var | Part"]):
    """A sum over variables and parts."""

    __slots__ = ()

    def shifted(self, by: int) -> Form:
        """self + by."""
        return Form(self.terms, self.const + by)

    def negated(self) -> Form:
        """-self."""
        return self.times(-1)

    def variables(self) -> set[Var]:
        """Every variable, also those inside parts."""
        result: set[Var] = set()
        for term in self.terms:
            if isinstance(term, Part):
                result |= term.variables
            else:
                result.add(term)
        return result

    def parts(self) -> list[Part]:
        """The terms that are not variables."""
        return [term for term in self.terms if isinstance(term, Part)]

    def size(self) -> int:
        """How many parts the form has when it is written out: one that stands in two others counts twice."""
        return sum([term.size for term in self.terms if isinstance(term, Part)])

    def at(self, values: Mapping[Var, int]) -> int:
        """The number this is when its variables have `values`."""
        total = self.const
        for term, k in self.terms.items():
            total += k * (term.at(values) if isinstance(term, Part) else values[term])
        return total


def constant(value: int) -> Form:
    """The form of a number."""
    return Form({}, value)


class Ge(NamedTuple):
    """form ≥ 0."""

    form: Form


class Eq(NamedTuple):
    """form = 0."""

    form: Form


class AllOf(NamedTuple):
    """Every one of the conditions holds."""

    items: tuple[Condition, ...]


class AnyOf(NamedTuple):
    """At least one of the conditions holds."""

    items: tuple[Condition, ...]


Condition = Ge | Eq | AllOf | AnyOf
ALWAYS: Final = AllOf(())
NEVER: Final = AnyOf(())


def inequalities(conditions: Sequence[Condition]) -> list[Form]:
    """Forms that are not negative whenever all the conditions hold; what holds only in some case is left out."""
    result: list[Form] = []
    pending = list(reversed(conditions))
    while pending:
        item = pending.pop()
        if isinstance(item, Ge):
            result.append(item.form)
        elif isinstance(item, Eq):
            result += [item.form, item.form.negated()]
        elif isinstance(item, AllOf):
            pending += reversed(item.items)
    return result
