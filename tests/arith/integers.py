"""Integer expressions as Python functions on mathematical integers, to try every point of a small domain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

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
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
)

SIGNS = {
    Add: "({} + {})",
    Sub: "({} - {})",
    Mul: "({} * {})",
    FloorDiv: "({} // {})",
    FloorMod: "({} % {})",
    Div: "trunc({}, {})",
    Mod: "rem({}, {})",
    Min: "min({}, {})",
    Max: "max({}, {})",
    EQ: "({} == {})",
    NE: "({} != {})",
    LT: "({} < {})",
    LE: "({} <= {})",
    GT: "({} > {})",
    GE: "({} >= {})",
    And: "({} and {})",
    Or: "({} or {})",
}


def trunc(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def rem(a: int, b: int) -> int:
    return a - b * trunc(a, b)


def wrap(value: int, bits: int, unsigned: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if not unsigned and value >> (bits - 1) else value


def in_range(value: int, bits: int, unsigned: bool) -> int:
    if wrap(value, bits, unsigned) != value:
        raise ZeroDivisionError("the least integer divided by -1 has no result")
    return value


def as_python(e: Expr, variables: Sequence[Var], wraps: bool = False) -> Callable[..., int]:
    """A function of the variables, in order, on mathematical integers or with `wraps` on those of the types.

    Raises ZeroDivisionError where the expression has no value.
    """
    names = {var: f"v{place}" for place, var in enumerate(variables)}

    def text(e: Expr) -> str:
        if isinstance(e, Var):
            return names.setdefault(e, f"v{len(names)}")
        if isinstance(e, IntImm):
            return f"({e.value})"
        if isinstance(e, BinaryExpr):
            plain = SIGNS[type(e)].format(text(e.a), text(e.b))
            if wraps and type(e) in (Add, Sub, Mul, FloorDiv, Div):
                check = "wrap" if type(e) in (Add, Sub, Mul) else "in_range"
                return f"{check}({plain}, {e.dtype.bits}, {e.dtype.is_unsigned})"
            return plain
        if isinstance(e, Not):
            return f"(not {text(e.a)})"
        if isinstance(e, Select):
            return f"({text(e.true_value)} if {text(e.condition)} else {text(e.false_value)})"
        if isinstance(e, Cast):
            value = f"int({text(e.value)})"
            return f"wrap({value}, {e.dtype.bits}, {e.dtype.is_unsigned})" if wraps else value
        if isinstance(e, Let):
            return f"(lambda {text(e.var)}: {text(e.body)})({text(e.value)})"
        assert isinstance(e, Call), e
        args = [text(arg) for arg in e.args]
        shape = {
            "tir.if_then_else": "({1} if {0} else {2})",
            "tir.likely": "{0}",
            "tir.abs": "abs({0})",
            "tir.shift_left": "({0} << {1})",
            "tir.shift_right": "({0} >> {1})",
        }[e.op.name]
        return shape.format(*args)

    parameters = ", ".join(names.values())
    found: Callable[..., int] = eval(f"lambda {parameters}: {text(e)}", dict(globals()))
    return found


def evaluate(e: Expr, point: Mapping[Var, int]) -> int:
    """The value at one point."""
    return as_python(e, list(point))(*point.values())


def table(e: Expr, variables: Sequence[Var], where: Sequence[tuple[int, ...]], wraps: bool = False) -> list[int | None]:
    """The value at every point; None where there is none."""
    function, values = as_python(e, variables, wraps), list[int | None]()
    for point in where:
        try:
            values.append(function(*point))
        except ZeroDivisionError:
            values.append(None)
    return values


def points(*domains: range) -> Iterator[tuple[int, ...]]:
    """Every point of a box."""
    return itertools.product(*domains)
