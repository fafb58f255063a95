"""Every row of the rule table holds on numbers, and does what it says when simplify meets it."""

from __future__ import annotations

import itertools
import operator

import pytest

from loopwright.arith import Analyzer
from loopwright.arith.rules import LITERALS, REWRITES, RULES, Rule
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Expr,
    FloorDiv,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
    const,
    decl_buffer,
    post_order_visit,
    substitute,
)
from loopwright.ir.intrinsics import call_extern
from tests.arith.integers import as_python


def _variables(*roots: Expr | None) -> list[Var]:
    found: dict[Var, None] = {}
    for root in roots:
        if root is not None:
            post_order_visit(root, lambda node: found.setdefault(node) if isinstance(node, Var) else None)
    return list(found)


def _show(row: Rule) -> str:
    return f"{type(row.left).__name__}-{RULES.index(row)}"


@pytest.mark.parametrize("row", RULES, ids=_show)
def test_row_holds_on_numbers(row: Rule) -> None:
    variables = _variables(row.left, row.right, row.when)
    left, right = as_python(row.left, variables), as_python(row.right, variables)
    when = as_python(row.when, variables) if row.when is not None else None
    tried = 0
    for point in itertools.product(*(range(2) if var.dtype.is_bool else range(-4, 5) for var in variables)):
        if when is None or when(*point):
            assert left(*point) == right(*point), dict(zip(variables, point, strict=True))
            tried += 1
    assert tried


@pytest.mark.parametrize("row", RULES, ids=_show)
def test_simplify_applies_the_row(row: Rule) -> None:
    """With literals that satisfy the row, its left side becomes something no longer than its right side."""
    literals = [var for var in _variables(row.left) if var in LITERALS]
    for values in itertools.product((-3, 2, 5), repeat=len(literals)):
        chosen = dict(zip(literals, values, strict=True))
        if row.when is not None and not as_python(row.when, literals)(*values):
            continue
        left = substitute(row.left, {var: const(value) for var, value in chosen.items()})
        right = substitute(row.right, {var: const(value) for var, value in chosen.items()})
        assert _size(Analyzer().simplify(left)) <= _size(Analyzer().simplify(right))
        return
    pytest.fail("no literals fit the row")


def _size(e: Expr) -> int:
    count = 0

    def look(_: object) -> None:
        nonlocal count
        count += 1

    post_order_visit(e, look)
    return count


def test_rows_about_integers_leave_floats_alone() -> None:
    a, b = Var("a", "float32"), Var("b", "float32")
    for e in (Not(a < b), Select(a < b, a, b), Min(Max(a, b), a)):
        assert Analyzer().simplify(e) is e  # NaN compares false, and both ways differ


def test_floats_keep_every_bit() -> None:
    a = Var("a", "float32")
    simplify = Analyzer().simplify
    for unchanged in (a + 0.0, a - (-0.0), a * 0.0, a - a, (a + 1.0) - 1.0, a * 2.0 / 2.0):
        assert simplify(unchanged) is unchanged
    for same in (a * 1.0, a / 1.0, a - 0.0, a + const(-0.0, "float32"), Min(a, a)):
        assert simplify(same) is a


def test_narrow_integers_wrap() -> None:
    a, b = Var("a", "int8"), Var("b", "int8")
    u = Var("u", "uint8")
    simplify = Analyzer().simplify
    for unchanged in ((a * 2) // 2, a + 1 > a, (a + b) - b, a + 100 < 0, u - 1 >= u):
        assert simplify(unchanged) is unchanged
    assert simplify(a - a).value == 0  # type: ignore[attr-defined]
    assert simplify(u >= 0).value == 1  # type: ignore[attr-defined]
    assert simplify(u.astype("int32") < 256).value == 1  # type: ignore[attr-defined]
    folded = simplify((a + 100) + 100)
    assert isinstance(folded, Add) and folded.b.value == -56  # type: ignore[attr-defined]


def test_calls_with_effects_stay_where_they_are() -> None:
    i = Var("i")
    f = call_extern("int32", "f", const(1) + i - 1 + 0)
    for e in (f * 0, f - f, Min(f, f), (f * 4) % 4):
        simple = Analyzer().simplify(e)
        assert type(simple) is type(e)
        assert _count_calls(simple, i) == _count_calls(e, None) > 0


def _count_calls(e: Expr, argument: Var | None) -> int:
    """How often calls are evaluated; their argument must be the given one."""
    if isinstance(e, Call):
        assert argument is None or e.args[1] is argument
        return 1
    return sum([_count_calls(child, argument) for child in e.children() if isinstance(child, Expr)])


def test_data_wraps_around_where_indices_do_not() -> None:
    analyzer, i = Analyzer(), Var("i")
    wide = decl_buffer((16,), "int32", "A")[i]
    byte = decl_buffer((16,), "uint8", "B")[i].astype("int32")
    for e in ((wide * 2) // 2, wide + 1 > wide, (wide + 1) % 2 - (wide + 1) % 2 + wide // 2, Min(wide + 1, wide)):
        assert repr(analyzer.simplify(e)) in (repr(e), "A[i] // 2")
    assert analyzer.const_int_bound(wide * 2) == analyzer.const_int_bound(wide)
    assert not analyzer.can_prove(wide + 1 > wide)
    assert analyzer.can_prove_equal(wide + i - wide, i)  # holds modulo 2**32 too
    for e, text in (((byte * 2) // 2, "T.Cast"), (byte + 1 > byte, "True"), ((i * 2) // 2, "i")):
        assert text in repr(analyzer.simplify(e)) and "2" not in repr(analyzer.simplify(e)).replace("32", "")
    x = Var("x")
    with analyzer.bound(x, wide, inline=False):
        assert not analyzer.can_prove(x + 1 > x)


def _wrapped(e: Expr, point: dict[Var, int], bits: int, signed: bool) -> int:
    """The value of `e` in integers of a few bits that wrap around."""
    if isinstance(e, Var):
        return point[e]
    if isinstance(e, IntImm):
        return e.value
    parts = [_wrapped(getattr(e, field.name), point, bits, signed) for field in e.node_fields]
    if isinstance(e, Select):
        return parts[1] if parts[0] else parts[2]
    if isinstance(e, Not):
        return 1 - parts[0]
    a, b = parts
    if isinstance(e, FloorDiv) and b == 0:
        raise ZeroDivisionError
    value = int(WRAPPED[type(e)](a, b))
    if e.dtype.is_bool or isinstance(e, (Min, Max)):
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


WRAPPED = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    FloorDiv: operator.floordiv,
    Min: min,
    Max: max,
    And: operator.and_,
    Or: operator.or_,
    EQ: operator.eq,
    NE: operator.ne,
    LT: operator.lt,
    LE: operator.le,
    GT: operator.gt,
    GE: operator.ge,
}
EVERY_TYPE = [row for row in RULES if not row.unbounded]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("bits", [1, 2, 3])
@pytest.mark.parametrize("row", EVERY_TYPE, ids=_show)
def test_rows_for_all_integers_hold_in_every_small_type(row: Rule, bits: int, signed: bool) -> None:
    """Rows that are not only for indices serve every integer type: tried on every value of the types of 1 to 3 bits."""
    low = -(1 << (bits - 1)) if signed else 0
    values = range(low, low + (1 << bits))
    variables = _variables(row.left, row.right, row.when)
    tried = 0
    for numbers in itertools.product(*(range(2) if var.dtype.is_bool else values for var in variables)):
        point = dict(zip(variables, numbers, strict=True))
        # Conditions and computed literals are computed on Python's integers, whatever the type.
        if row.when is not None and not as_python(row.when, variables)(*numbers):
            continue
        assert _wrapped(row.left, point, bits, signed) == _wrapped(row.right, point, bits, signed), point
        tried += 1
    assert tried or bits == 1


def test_the_rows_are_all_there() -> None:
    assert len(EVERY_TYPE) + len([row for row in RULES if row.unbounded]) == len(RULES) >= 70
    roots = {type(row.left) for row in RULES}
    assert roots == set(REWRITES)
