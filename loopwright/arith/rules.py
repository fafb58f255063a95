"""Rewrite rules: rows of mathematics, compiled to one function per root class.

A row is a pair of ordinary expressions. `x y z` stand for any integer expression, `p q` for any condition, `c0 c1` for
literals; where all variables of a part of the result are literals, it is computed. Interpreting the table would cost
10 to 25 µs a node; the compiled test of a root class is a few type checks. Every row is tried on numbers by a test.

Sums, products, divisions and comparisons of indices are not here: linear forms do them (`divide.py`, `compare.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from loopwright.arith.data import is_data
from loopwright.arith.engine import Engine
from loopwright.arith.linear import imm, is_index
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Expr,
    FloorDiv,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Var,
    const,
)


class Rule(NamedTuple):
    """`left` may be written as `right` when `when` holds; `unbounded`: only on mathematical integers."""

    left: Expr
    right: Expr
    when: Expr | None
    unbounded: bool


x, y, z, c0, c1 = (Var(name) for name in ("x", "y", "z", "c0", "c1"))
p, q = Var("p", "bool"), Var("q", "bool")
TRUE, FALSE = const(True), const(False)
LITERALS: Final = frozenset((c0, c1))


def rule(left: Expr, right: Expr, when: Expr | None = None, index: bool = False) -> Rule:
    """One row of the table."""
    return Rule(left, right, when, index)


RULES: Final = [
    # the same operand twice
    rule(Min(x, x), x),
    rule(Max(x, x), x),
    rule(Min(Min(x, y), x), Min(x, y)),
    rule(Min(Min(x, y), y), Min(x, y)),
    rule(Min(x, Min(x, y)), Min(x, y)),
    rule(Min(y, Min(x, y)), Min(x, y)),
    rule(Max(Max(x, y), x), Max(x, y)),
    rule(Max(Max(x, y), y), Max(x, y)),
    rule(Max(x, Max(x, y)), Max(x, y)),
    rule(Max(y, Max(x, y)), Max(x, y)),
    rule(Min(Max(x, y), x), x),
    rule(Min(Max(x, y), y), y),
    rule(Min(x, Max(x, y)), x),
    rule(Min(y, Max(x, y)), y),
    rule(Max(Min(x, y), x), x),
    rule(Max(Min(x, y), y), y),
    rule(Max(x, Min(x, y)), x),
    rule(Max(y, Min(x, y)), y),
    # literals go right and meet
    rule(Min(c0, x), Min(x, c0)),
    rule(Max(c0, x), Max(x, c0)),
    rule(Min(Min(x, c0), c1), Min(x, Min(c0, c1))),
    rule(Max(Max(x, c0), c1), Max(x, Max(c0, c1))),
    # a common part goes out
    rule(Min(x // c0, y // c0), Min(x, y) // c0, c0 > 0, index=True),
    rule(Max(x // c0, y // c0), Max(x, y) // c0, c0 > 0, index=True),
    rule(Min(x * c0, y * c0), Min(x, y) * c0, c0 > 0, index=True),
    rule(Max(x * c0, y * c0), Max(x, y) * c0, c0 > 0, index=True),
    rule(Min(x * c0, y * c0), Max(x, y) * c0, c0 < 0, index=True),
    rule(Max(x * c0, y * c0), Min(x, y) * c0, c0 < 0, index=True),
    rule(Min(x + y, x + z), x + Min(y, z), index=True),
    rule(Max(x + y, x + z), x + Max(y, z), index=True),
    rule(Min(y + x, z + x), Min(y, z) + x, index=True),
    rule(Max(y + x, z + x), Max(y, z) + x, index=True),
    # one side of a minimum decides
    rule(LT(Min(x, c0), c1), LT(x, c1), c0 >= c1),
    rule(LE(Min(x, c0), c1), LE(x, c1), c0 > c1),
    rule(GT(Min(x, c0), c1), GT(x, c1), c0 > c1),
    rule(GE(Min(x, c0), c1), GE(x, c1), c0 >= c1),
    rule(LT(Max(x, c0), c1), LT(x, c1), c0 < c1),
    rule(LE(Max(x, c0), c1), LE(x, c1), c0 <= c1),
    rule(GT(Max(x, c0), c1), GT(x, c1), c0 <= c1),
    rule(GE(Max(x, c0), c1), GE(x, c1), c0 < c1),
    rule(EQ(Min(x, c0), c1), EQ(x, c1), c0 > c1),
    rule(NE(Min(x, c0), c1), NE(x, c1), c0 > c1),
    rule(EQ(Max(x, c0), c1), EQ(x, c1), c0 < c1),
    rule(NE(Max(x, c0), c1), NE(x, c1), c0 < c1),
    rule(LE(Min(x, y), x), TRUE),
    rule(LE(Min(x, y), y), TRUE),
    rule(GE(Max(x, y), x), TRUE),
    rule(GE(Max(x, y), y), TRUE),
    # conditions
    rule(EQ(p, p), TRUE),
    rule(NE(p, p), FALSE),
    rule(EQ(p, TRUE), p),
    rule(EQ(p, FALSE), Not(p)),
    rule(NE(p, TRUE), Not(p)),
    rule(NE(p, FALSE), p),
    rule(Not(TRUE), FALSE),
    rule(Not(FALSE), TRUE),
    rule(Not(Not(p)), p),
    rule(Not(LT(x, y)), GE(x, y)),
    rule(Not(LE(x, y)), GT(x, y)),
    rule(Not(GT(x, y)), LE(x, y)),
    rule(Not(GE(x, y)), LT(x, y)),
    rule(Not(EQ(x, y)), NE(x, y)),
    rule(Not(NE(x, y)), EQ(x, y)),
    rule(And(p, p), p),
    rule(Or(p, p), p),
    rule(And(p, Not(p)), FALSE),
    rule(And(Not(p), p), FALSE),
    rule(Or(p, Not(p)), TRUE),
    rule(Or(Not(p), p), TRUE),
    rule(And(p, Or(p, q)), p),
    rule(Or(p, And(p, q)), p),
    rule(And(LT(x, c0), LT(x, c1)), LT(x, Min(c0, c1))),
    rule(And(LE(x, c0), LE(x, c1)), LE(x, Min(c0, c1))),
    rule(And(GT(x, c0), GT(x, c1)), GT(x, Max(c0, c1))),
    rule(And(GE(x, c0), GE(x, c1)), GE(x, Max(c0, c1))),
    rule(Or(LT(x, c0), LT(x, c1)), LT(x, Max(c0, c1))),
    rule(Or(LE(x, c0), LE(x, c1)), LE(x, Max(c0, c1))),
    rule(Or(GT(x, c0), GT(x, c1)), GT(x, Min(c0, c1))),
    rule(Or(GE(x, c0), GE(x, c1)), GE(x, Min(c0, c1))),
    rule(And(GE(x, c0), EQ(x, c1)), EQ(x, c1), c1 >= c0),
    rule(And(LE(x, c0), EQ(x, c1)), EQ(x, c1), c1 <= c0),
    # choices
    rule(Select(Not(p), x, y), Select(p, y, x)),
    rule(Select(p, TRUE, FALSE), p),
    rule(Select(p, FALSE, TRUE), Not(p)),
    rule(Select(LT(x, y), x, y), Min(x, y)),
    rule(Select(LE(x, y), x, y), Min(x, y)),
    rule(Select(GT(x, y), x, y), Max(x, y)),
    rule(Select(GE(x, y), x, y), Max(x, y)),
]

Rewrite = Callable[[Engine, Any], Expr | None]

# How a computed part of a row reads in Python.
_PYTHON: Final[dict[type[Expr], str]] = {
    Min: "min({}, {})",
    Max: "max({}, {})",
    Add: "({} + {})",
    Mul: "({} * {})",
    FloorDiv: "({} // {})",
    LT: "{} < {}",
    LE: "{} <= {}",
    GT: "{} > {}",
    GE: "{} >= {}",
}


class _Row:
    """One row as nested `if` statements."""

    def __init__(self, row: Rule) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.names: set[str] = set()
        self._match(row.left, "e")
        for name in sorted(self.names - {var.name for var in LITERALS}):
            if name in ("p", "q"):
                self._test(f"{name}.dtype.is_bool")
            else:
                index = f"is_index({name}.dtype) and not is_data(s, {name})"
                self._test(index if row.unbounded else f"{name}.dtype.is_int")
        if row.when is not None:
            self._test(_computed(row.when))
        self._line(f"return {self._build(row.right)}")

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _test(self, text: str) -> None:
        self._line(f"if {text}:")
        self.depth += 1

    def _match(self, pattern: Expr, path: str) -> None:
        if isinstance(pattern, Var):
            name = pattern.name
            if pattern in LITERALS:
                self._test(f"type({path}) is IntImm")
                if name in self.names:
                    self._test(f"{name} == {path}.value")
                else:
                    self._line(f"{name}, {name}_type = {path}.value, {path}.dtype")
            elif name in self.names:
                self._test(f"s.same({name}, {path})")
            else:
                self._line(f"{name} = {path}")
            self.names.add(name)
        elif isinstance(pattern, IntImm):
            self._test(f"type({path}) is IntImm and {path}.dtype.is_bool and {path}.value == {pattern.value}")
        else:
            if path != "e":
                self._test(f"type({path}) is {type(pattern).__name__}")
            for field in pattern.node_fields:
                self._match(getattr(pattern, field.name), f"{path}.{field.name}")

    def _build(self, result: Expr) -> str:
        if isinstance(result, IntImm):
            return "TRUE" if result.value else "FALSE"
        if _is_literal(result):
            return f"imm({_computed(result)}, c0_type)"
        if isinstance(result, Var):
            return result.name
        parts = [self._build(getattr(result, field.name)) for field in result.node_fields]
        return f"{type(result).__name__}({', '.join(parts)})"


def _is_literal(e: Expr) -> bool:
    return e in LITERALS if isinstance(e, Var) else isinstance(e, BinaryExpr) and _is_literal(e.a) and _is_literal(e.b)


def _computed(e: Expr) -> str:
    if isinstance(e, Var):
        return e.name
    if isinstance(e, IntImm):
        return str(e.value)
    assert isinstance(e, BinaryExpr), e
    return _PYTHON[type(e)].format(_computed(e.a), _computed(e.b))


def _compile(rows: list[Rule]) -> dict[type[Expr], Rewrite]:
    roots: dict[type[Expr], list[Rule]] = {}
    for row in rows:
        roots.setdefault(type(row.left), []).append(row)
    rewrites: dict[type[Expr], Rewrite] = {}
    for root, group in roots.items():
        lines = ["def rewrite(s, e):", "    if e.dtype.lanes != 1: return None"]
        for row in group:
            lines += _Row(row).lines
        lines.append("    return None")
        scope: dict[str, Any] = {**globals(), "imm": imm, "is_index": is_index, "is_data": is_data}
        exec(compile("\n".join(lines), f"<loopwright rules {root.__name__}>", "exec"), scope)
        rewrites[root] = scope["rewrite"]
    return rewrites


REWRITES: Final = _compile(RULES)
