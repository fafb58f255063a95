"""Rows of the rewrite tables: how they are written, matched and built.

A row is a pair of ordinary expressions, `rule(v * y + v * z, v * (y + z))`. `x y z w` stand for any index expression,
`v` for one that is no literal, `p q r` for any condition, `c0 c1 c2` for literals; a part of the result whose variables
are all literals is computed. `o(...)` marks an operation that matches in either order. The conditions after the result
are computed where they hold only literals; the others must be proved from the facts.

These tables serve `Analyzer.rewrite_simplify`, whose normal form scripts expect; our own passes use `simplify`. They
are interpreted, and found by the classes of a node and its operands, so that importing them costs nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, Final, NamedTuple

from loopwright.arith.linear import imm
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BinaryExpr,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Sub,
    Var,
    const,
)
from loopwright.runtime.dtype import DataType

x, y, z, w, v = (Var(name) for name in "xyzwv")
p, q, r = (Var(name, "bool") for name in "pqr")
c0, c1, c2 = (Var(name) for name in ("c0", "c1", "c2"))
LITERALS: Final = frozenset((c0, c1, c2))
TRUE, FALSE = const(True), const(False)

Env = dict[Expr, Any]


class Rule(NamedTuple):
    """`left` may be written as `right` when every condition of `when` holds, on mathematical integers."""

    left: Expr
    right: Expr
    when: tuple[Expr, ...]


_either_order: set[Expr] = set()


def o(e: Expr) -> Expr:
    """This operation of a pattern matches with its operands in either order."""
    _either_order.add(e)
    return e


def rule(left: Expr, right: Expr | int, *when: Expr) -> Rule:
    """One row."""
    return Rule(left, right if isinstance(right, Expr) else const(right), when)


def tdiv(a: Expr, b: Expr | int) -> Expr:
    """a / b, rounded towards zero."""
    return Div(a, b if isinstance(b, Expr) else const(b))


def tmod(a: Expr, b: Expr | int) -> Expr:
    """The remainder of `tdiv`: its sign is that of `a`."""
    return Mod(a, b if isinstance(b, Expr) else const(b))


def orders(pattern: Expr) -> Iterator[Expr]:
    """The pattern with the operands of its `o` operations in every order."""
    if not pattern.node_fields or isinstance(pattern, (Var, IntImm)):
        yield pattern
        return
    names = [field.name for field in pattern.node_fields]
    for parts in product(*[list(orders(getattr(pattern, name))) for name in names]):
        yield pattern.with_(**dict(zip(names, parts, strict=True)))
        if pattern in _either_order:
            yield pattern.with_(a=parts[1], b=parts[0])


class Table:
    """Rows by the class of their left side and of its operands."""

    def __init__(self, rows: Iterable[Rule]) -> None:
        self._roots: dict[type[Expr], list[Rule]] = {}
        for row in rows:
            for left in orders(row.left):
                self._roots.setdefault(type(left), []).append(row._replace(left=left))
        self._found: dict[tuple[type[Any], ...], list[Rule]] = {}

    def candidates(self, e: Expr) -> list[Rule]:
        """The rows that may match `e`."""
        names = [field.name for field in e.node_fields[:2]]
        key = (type(e), *[type(getattr(e, name)) for name in names])
        rows = self._found.get(key)
        if rows is None:
            rows = [
                row
                for row in self._roots.get(type(e), ())
                if all(_may_be(getattr(row.left, name), cls) for name, cls in zip(names, key[1:], strict=True))
            ]
            self._found[key] = rows
        return rows


def _may_be(pattern: Expr, cls: type[Any]) -> bool:
    if isinstance(pattern, Var):
        return pattern not in LITERALS or cls is IntImm
    return type(pattern) is cls


def match(pattern: Expr, e: Any, env: Env, same: Callable[[Expr, Expr], bool]) -> bool:
    """Whether `e` is an instance of the pattern; `env` then says what its variables stand for (literals: numbers)."""
    cls = type(pattern)
    if cls is Var:
        bound = env.get(pattern)
        if pattern in LITERALS:
            if type(e) is not IntImm or (bound is not None and bound != e.value):
                return False
            env[pattern] = e.value
            return True
        if bound is not None:
            return same(bound, e)
        if pattern is v and type(e) is IntImm:
            return False
        env[pattern] = e
        return True
    if cls is not type(e):
        return False
    if cls is IntImm:
        return bool(pattern.value == e.value)  # type: ignore[attr-defined]
    return all(match(getattr(pattern, field.name), getattr(e, field.name), env, same) for field in pattern.node_fields)


def build(result: Expr, env: Env, dtype: DataType) -> Expr:
    """The right side of a row; raises TooWide when a literal does not fit the type of the indices."""
    if isinstance(result, IntImm):
        return result if result.dtype.is_bool else imm(result.value, dtype)
    if is_literal(result):
        return imm(computed(result, env), dtype)
    if isinstance(result, Var):
        found: Expr = env[result]
        return found
    cls: Any = type(result)
    return cls(*[build(getattr(result, field.name), env, dtype) for field in result.node_fields])


def is_literal(e: Expr) -> bool:
    """Whether only literals take part."""
    if isinstance(e, BinaryExpr):
        return is_literal(e.a) and is_literal(e.b)
    return isinstance(e, IntImm) or e in LITERALS


def computed(e: Expr, env: Env) -> int:
    """The value of an expression of literals; raises ZeroDivisionError."""
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Var):
        number: int = env[e]
        return number
    assert isinstance(e, BinaryExpr), e
    return int(_PYTHON[type(e)](computed(e.a, env), computed(e.b, env)))


def truncated(a: int, b: int) -> int:
    """a / b, rounded towards zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


_PYTHON: Final[dict[type[Expr], Callable[[int, int], int]]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    FloorDiv: operator.floordiv,
    FloorMod: operator.mod,
    Div: truncated,
    Mod: lambda a, b: a - truncated(a, b) * b,
    Min: min,
    Max: max,
    EQ: operator.eq,
    NE: operator.ne,
    LT: operator.lt,
    LE: operator.le,
    GT: operator.gt,
    GE: operator.ge,
}
