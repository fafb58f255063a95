"""The least and greatest value of an affine expression while variables run over domains; users ask `loop_bounds.py`."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.arith.bounds import at_least, at_most
from loopwright.arith.divide import floordiv
from loopwright.arith.linear import LinearForm, TooWide, is_index
from loopwright.arith.simplify import Simplifier
from loopwright.ir import Expr, FloorDiv, FloorMod, Max, Min, Range, Var, as_expr, deep, uses_var
from loopwright.runtime.dtype import DataType


@deep
def affine_bounds(
    e: Expr, domains: Mapping[Var, Range | tuple[Expr | int, Expr | int]], engine: Simplifier
) -> tuple[Expr, Expr] | None:
    """The least and greatest value of `e`, in terms of what the domains leave fixed; None when it cannot be said."""
    if not is_index(e.dtype):
        return None
    walk = _Interval(engine, domains, e.dtype)
    try:
        ends = walk.of(engine.form(e))
        if ends is None:
            return None
        return engine.write(ends[0], e.dtype), engine.write(ends[1], e.dtype)
    except TooWide:
        return None


def form_uses(form: LinearForm, variables: set[Var]) -> bool:
    """Whether an atom of the form is one of the variables, or uses one."""
    return any(atom_uses(atom, variables) for atom in form.terms)


def atom_uses(atom: Expr, variables: set[Var]) -> bool:
    """Whether the atom is one of the variables, or uses one."""
    return atom in variables if isinstance(atom, Var) else uses_var(atom, variables.__contains__)


Ends = tuple[LinearForm, LinearForm]


class _Interval:
    def __init__(
        self, engine: Simplifier, domains: Mapping[Var, Range | tuple[Expr | int, Expr | int]], dtype: DataType
    ) -> None:
        self.engine = engine
        self.dtype = dtype
        self.ends: dict[Var, Ends] = {}
        for var, domain in domains.items():
            if isinstance(domain, Range):
                low = self.engine.form(domain.min)
                high = low.plus(self.engine.form(domain.extent)).plus(LinearForm({}, -1))
            else:
                low, high = self.engine.form(as_expr(domain[0])), self.engine.form(as_expr(domain[1]))
            self.ends[var] = low, high
        self.variables = set(self.ends)
        self.inner_first = list(reversed(self.ends))

    def of(self, form: LinearForm) -> Ends | None:
        """Replace variables, innermost first, by the end of their domain that makes the form least or greatest."""
        low = self._end(form, least=True)
        high = self._end(form, least=False)
        return None if low is None or high is None else (low, high)

    def _end(self, form: LinearForm, least: bool) -> LinearForm | None:
        # Innermost first: the ends of an inner domain may use outer variables, and may cancel against them.
        for var in self.inner_first:
            form_or_none = self._replace(form, var, least)
            if form_or_none is None:
                return None
            form = form_or_none
        return form

    def _replace(self, form: LinearForm, var: Var, least: bool) -> LinearForm | None:
        total = LinearForm({}, form.const)
        for atom, k in form.terms.items():
            if not atom_uses(atom, {var}):
                total = total.plus(LinearForm({atom: 1}, 0), k)
                continue
            end = self._atom_end(atom, var, least == (k > 0))
            if end is None:
                return None
            total = total.plus(end, k)
        return total

    def _atom_end(self, atom: Expr, var: Var, least: bool) -> LinearForm | None:
        if atom is var:
            return self.ends[var][0 if least else 1]
        engine = self.engine
        cofactor = engine.without_factor(atom, var)
        if cofactor is not None:
            return self._scaled(var, cofactor, least)
        parts = engine.parts.get(atom)
        if parts is None:
            return None
        x, y = parts
        if isinstance(atom, (Min, Max)):
            ends = self._replace(x, var, least), self._replace(y, var, least)
            if ends[0] is None or ends[1] is None:
                return None
            a, b = engine.write(ends[0], self.dtype), engine.write(ends[1], self.dtype)
            return engine.form(type(atom)(a, b))
        if y.terms or y.const <= 0:
            return None
        if isinstance(atom, FloorDiv):
            end = self._replace(x, var, least)
            return None if end is None else floordiv(engine, end, y, self.dtype)
        if isinstance(atom, FloorMod):
            return self._remainder(x, y.const, var, least)
        return None

    def _remainder(self, x: LinearForm, c: int, var: Var, least: bool) -> LinearForm:
        """x % c: x itself shifted by whole blocks when x stays in one; else anything from 0 to c - 1."""
        low, high = self._replace(x, var, True), self._replace(x, var, False)
        if low is not None and high is not None and not low.terms and not high.terms:
            if low.const // c == high.const // c:
                return LinearForm({}, (low if least else high).const % c)
        return LinearForm({}, 0 if least else c - 1)

    def _scaled(self, var: Var, cofactor: LinearForm, least: bool) -> LinearForm | None:
        """var * cofactor, whose sign must be known."""
        engine = self.engine
        if form_uses(cofactor, self.variables):
            return None
        if not at_least(engine, cofactor, 0):
            if not at_most(engine, cofactor, 0):
                return None
            least = not least
        return engine.product(self.ends[var][0 if least else 1], cofactor, self.dtype)
