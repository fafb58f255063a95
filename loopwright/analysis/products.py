"""Products: a loop variable times a size that is known only when the program runs.

    for i_0 in range(4):                                       i_0 * q + i_1, where q = (n + 3) // 4
        for i_1 in range((n + 3) // 4):
            with T.block("B"):
                vi = T.axis.spatial(n, i_0 * ((n + 3) // 4) + i_1)

is what a split into a given number of parts makes of a loop over n. It is not affine, but i_0 has four values only: the
product is a variable p of its own, of which all is said case by case,

    i_0 = 0 and p = 0   or   i_0 = 1 and p = q   or   i_0 = 2 and p = 2q   or   i_0 = 3 and p = 3q

and isl decides the rest. p is no loop: it takes no time, and tells no instances apart that i_0 does not.

Where the loop is longer, or as long as it likes, the product is *loose*: only a lemma looks at it (`races.py`). Two
iterations of i_0 write different cells if what i_1 adds is less than q, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.analysis.instances import Loop
from loopwright.arith.affine import Condition, Form, Part
from loopwright.arith.affine_reader import Affine
from loopwright.ir import Var


class Symbols(NamedTuple):
    """The products of the loops around a statement: as variables, and what they are."""

    loops: tuple[Loop, ...]
    guards: tuple[Condition, ...]


def symbols_in(loops: Sequence[Loop], affine: Affine) -> Symbols:
    """The products that statements in these loops may name."""
    around = {loop.var for loop in loops}
    result: list[Loop] = []
    guards: list[Condition] = []
    for symbol, product in affine.products.items():
        cases = affine.cases(product) if factor_of(product) in around else None
        if cases is not None:
            result.append(Loop(symbol, None, None, symbol, product=product))
            guards.append(cases)
    return Symbols(tuple(result), tuple(guards))


def factor_of(product: Part) -> Var:
    """The loop variable of a product."""
    (var,) = product.args[0].terms
    assert isinstance(var, Var)
    return var


def coefficient_of(form: Form, var: Var) -> tuple[Form, Form] | None:
    """The form as `a * var + b`; None when it has the variable in other parts than products."""
    terms: dict[Var | Part, int] = {}
    rest = dict(form.terms)
    const = 0
    for term, k in form.terms.items():
        if term is var:
            const += k
        elif isinstance(term, Part) and term.op == "times" and factor_of(term) is var:
            for other, c in term.args[1].terms.items():
                terms[other] = terms.get(other, 0) + k * c
        elif isinstance(term, Part) and var in term.variables:
            return None
        else:
            continue
        del rest[term]
    return Form(terms, const), Form(rest, form.const)
