"""Affine expressions over loops: their coefficients, and their bounds in terms of what the loops leave fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.arith.affine_bounds import affine_bounds, atom_uses, form_uses
from loopwright.arith.analyzer import Analyzer
from loopwright.arith.int_set import IntervalSet
from loopwright.arith.linear import LinearForm, TooWide, is_index
from loopwright.arith.simplify import Simplifier
from loopwright.ir import Expr, Range, Var, as_expr, deep


@deep
def linear_coefficients(
    expr: Expr | int, variables: Sequence[Var], analyzer: Analyzer | None = None
) -> tuple[list[Expr], Expr] | None:
    """(coefficients, base) with expr = sum(coefficients * variables) + base, neither using the variables.

    None when the expression is not linear in them. Coefficients may be symbolic: `i * n + j` in i is ([n], j).
    """
    e = as_expr(expr)
    if not is_index(e.dtype):
        return None
    engine = (analyzer or Analyzer()).engine
    split = _split(engine, engine.form(e), variables)
    if split is None:
        return None
    coefficients, base = split
    try:
        return [engine.write(form, e.dtype) for form in coefficients], engine.write(base, e.dtype)
    except TooWide:
        return None


def detect_linear_equation(expr: Expr, variables: Sequence[Var]) -> list[Expr]:
    """The coefficients of the variables and then the base; empty when the expression is not linear in them."""
    result = linear_coefficients(expr, variables)
    return [] if result is None else [*result[0], result[1]]


def _split(
    engine: Simplifier, form: LinearForm, variables: Sequence[Var]
) -> tuple[list[LinearForm], LinearForm] | None:
    """The form as a cofactor for each variable, and the rest; None where a variable stands inside something else."""
    wanted = set(variables)
    coefficients = [LinearForm({}, 0) for _ in variables]
    base = LinearForm({}, form.const)
    for atom, k in form.terms.items():
        factors = engine.factors.get(atom, (atom,))
        for index, var in enumerate(variables):
            cofactor = engine.without_factor(atom, var) if var in factors else None
            if cofactor is not None:
                if form_uses(cofactor, wanted):
                    return None
                coefficients[index] = coefficients[index].plus(cofactor, k)
                break
        else:
            if atom_uses(atom, wanted):
                return None
            base = base.plus(LinearForm({atom: 1}, 0), k)
    return coefficients, base


def interval_of(
    expr: Expr | int,
    domains: Mapping[Var, Range | tuple[Expr | int, Expr | int]],
    analyzer: Analyzer | None = None,
) -> IntervalSet | None:
    """The least and greatest value of `expr` while the variables run over their domains; None when it cannot be said.

    A domain is a Range or (least, greatest), and may use variables of domains before it (outer loops). The result uses
    no variable of a domain; both ends are reached when the expression is affine.
    """
    ends = affine_bounds(as_expr(expr), domains, (analyzer or Analyzer()).engine)
    return None if ends is None else IntervalSet(*ends)
