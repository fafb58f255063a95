"""Natural numbers as data, z and s(n): small programs of lists and loops are tried on them.

    p = relay.Prelude()
    p.mod.import_from_std("nat.rly")
    make_nat_expr(p, 3)              s(s(s(z())))
"""

from __future__ import annotations

from loopwright.relay.adt import ConstructorValue
from loopwright.relay.expr import Expr
from loopwright.relay.prelude import Prelude


def count(prelude: Prelude, n: object) -> int:
    """The number that a value of the data type nat is."""
    _, z, s = prelude.mod.get_type("nat")
    result = 0
    while isinstance(n, ConstructorValue) and n.constructor.name_hint == s.name_hint:
        result += 1
        n = n.fields[0]
    if not isinstance(n, ConstructorValue) or n.constructor.name_hint != z.name_hint:
        raise TypeError(f"{n!r} is no natural number: those are {z.name_hint} and {s.name_hint} of another")
    return result


def make_nat_value(prelude: Prelude, n: int) -> ConstructorValue:
    """The value that the number `n` is."""
    _, z, s = prelude.mod.get_type("nat")
    result = ConstructorValue(z, [])
    for _ in range(n):
        result = ConstructorValue(s, [result])
    return result


def make_nat_expr(prelude: Prelude, n: int) -> Expr:
    """The expression that makes the number `n`."""
    if n < 0:
        raise ValueError(f"a natural number is not negative: {n}")
    _, z, s = prelude.mod.get_type("nat")
    result = z()
    for _ in range(n):
        result = s(result)
    return result
