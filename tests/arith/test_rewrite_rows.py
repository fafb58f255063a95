"""Every row of the rewrite tables holds on numbers, and `rewrite_simplify` keeps the value of an expression."""

from __future__ import annotations

import random

import pytest

from loopwright import te, tir
from loopwright.arith import Analyzer
from loopwright.arith.rewrite import ROWS
from loopwright.arith.rewrite.pattern import LITERALS, Rule, v
from loopwright.ir import EQ, Expr, IntImm, Range, Var, any_node, post_order_visit, structural_equal
from tests.arith.integers import as_python

x, y, z = te.var("x"), te.var("y"), te.var("z")


def _variables(*roots: Expr) -> list[Var]:
    found: dict[Var, None] = {}
    for root in roots:
        post_order_visit(root, lambda node: found.setdefault(node) if isinstance(node, Var) else None)
    return list(found)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("start", range(0, len(ROWS), 40))
def test_rows_hold_on_numbers(start: int) -> None:
    for row in ROWS[start : start + 40]:
        _check(row)


def _check(row: Rule) -> None:
    variables = _variables(row.left, row.right, *row.when)
    left, right = as_python(row.left, variables), as_python(row.right, variables)
    when = [as_python(condition, variables) for condition in row.when]
    rng, tried = random.Random(1), 0
    for _ in range(6000):
        point = [rng.randrange(2) if var.dtype.is_bool else rng.randrange(-5, 7) for var in variables]
        try:
            if not all(condition(*point) for condition in when):
                continue
            expected = left(*point)
        except ZeroDivisionError:
            continue
        assert left(*point) == right(*point) == expected, (row, dict(zip(variables, point, strict=True)))
        tried += 1
        if tried == 60:
            return
    assert tried >= 3, row


def test_no_row_adds_a_variable() -> None:
    for row in ROWS:
        assert set(_variables(row.right, *row.when)) <= set(_variables(row.left)), row
    assert v not in LITERALS


def _random(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([x, y, z, IntImm("int32", rng.choice([-3, -1, 0, 1, 2, 4, 5]))])
    a = _random(rng, depth - 1)
    kind = rng.randrange(9)
    if kind < 4:
        cls = (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)[kind]
        return cls(a, IntImm("int32", rng.choice([1, 2, 3, 4, 6])))
    cls = rng.choice([tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max, tir.Add, tir.Sub])
    return cls(a, _random(rng, depth - 1))


@pytest.mark.parametrize("seed", range(4))
def test_rewriting_keeps_the_value(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        e = _random(rng, 3)
        if rng.random() < 0.5:
            e = rng.choice([tir.LT, tir.LE, EQ, tir.GT])(e, _random(rng, 2))
            if rng.random() < 0.5:
                e = rng.choice([tir.And, tir.Or])(e, tir.LT(_random(rng, 2), _random(rng, 2)))
        analyzer = Analyzer()
        lowest = rng.choice([-8, 0])
        for var in (x, y, z):
            analyzer.bind(var, Range(lowest, 9))
        after = rng.choice([analyzer.rewrite_simplify, analyzer.canonical_simplify])(e)
        before, function = as_python(e, [x, y, z]), as_python(after, [x, y, z])
        for _ in range(25):
            point = [rng.randrange(lowest, 9) for _ in range(3)]
            assert before(*point) == function(*point), (e, after, point)


def test_the_normal_form() -> None:
    rewrite = Analyzer().rewrite_simplify
    for before, after in (
        (y * x + 10 * x, x * (y + 10)),
        (3 + x + y, x + y + 3),
        (x - 10, x + (-10)),
        (x - 7 < y, x < y + 7),
        (x < y - 7, x + 7 < y),
        (x >= 3, tir.LE(3, x)),
        (x * 4 > y * 4, y < x),
        (tir.all(x // 9 == 2, x % 9 == 5), EQ(x, 23)),
        (tir.max(x, y) - x, tir.max(0, y - x)),
        (y - tir.truncdiv(y + z, 7) * 7, tir.truncmod(y + z, 7) - z),
        (tir.truncdiv(x, 3) >= 0, tir.LE(-2, x)),
        (tir.EQ(x * -2 + 6, 0), tir.EQ(x, 3)),
        (tir.Add(tir.FloatImm("float16", 0.5), tir.FloatImm("float16", 0.25)), tir.FloatImm("float16", 0.75)),
        (tir.Cast("int8", tir.FloatImm("float32", -2.5)), tir.IntImm("int8", -2)),
    ):
        assert structural_equal(rewrite(before), after), (before, rewrite(before))


def test_vectors() -> None:
    rewrite = Analyzer().rewrite_simplify
    ramp, broadcast = tir.Ramp, tir.Broadcast
    for before, after in (
        (ramp(x, 2, 8) + ramp(y, 3, 8), ramp(x + y, 5, 8)),
        (y - ramp(x, 1, 8), ramp(y - x, -1, 8)),
        (tir.floordiv(ramp(x * 16, 1, 8), 16), broadcast(x, 8)),
        (tir.floormod(ramp(x * 8, 1, 8), 32), ramp(x * 8 % 32, 1, 8)),
        (tir.floormod(ramp(x * 8 + 3, 5, 8), 8), tir.floormod(ramp(3, 5, 8), broadcast(8, 8))),
        (broadcast(x, 4) < broadcast(y, 4), broadcast(x < y, 4)),
    ):
        assert structural_equal(rewrite(before), after), (before, rewrite(before))
    halves = tir.truncdiv(ramp(x, 2, 4), 2)  # lanes on both sides of zero are rounded in different directions
    assert structural_equal(rewrite(halves), halves)


def test_effects_and_data_stay() -> None:
    rewrite = Analyzer().rewrite_simplify
    call = tir.call_extern("int32", "next")
    assert any_node(rewrite(call - call), lambda node: node is call)
    load = tir.decl_buffer((4,), "float32")[x]
    assert structural_equal(rewrite(load - load), load - load)  # not zero for infinities


def test_a_zero_divisor_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError, match="the divisor is the literal 0"):
        Analyzer().rewrite_simplify(tir.FloorDiv(tir.Ramp(1, 1, 2), tir.Broadcast(0, 2)))
