"""Integer sets, deduction and clip bounds, held against every point of small domains."""

from __future__ import annotations

import itertools

import pytest

from loopwright import tir
from loopwright.arith import (
    Analyzer,
    IntervalSet,
    IntSet,
    deduce_bound,
    detect_clip_bound,
    detect_common_subexpr,
    neg_inf,
    pos_inf,
)
from loopwright.arith.int_set import NotASet
from loopwright.ir import Range, Var, structural_equal
from tests.arith.integers import as_python

x, y, z, n = Var("x"), Var("y"), Var("z"), Var("n")


def ends(interval: IntervalSet) -> tuple[int, int]:
    return interval.min_value.value, interval.max_value.value


EXPRESSIONS = [
    x + y,
    x - y,
    x * 3 - y * 2,
    x - x,
    x * y,
    x // 3,
    (x * 4 + y) // 5,
    x % 3,
    (x + y) % 4,
    tir.truncdiv(x, 3),
    tir.truncmod(x, 3),
    tir.min(x, y),
    tir.max(x * 2, y) + x,
    tir.Select(x > y, x, -y),
    tir.if_then_else(x > 0, x * 2, y),
    tir.Let(z, x + 1, z * 2),
    tir.min(x, 3) // 2 * 2 + y % 2,
]


@pytest.mark.parametrize("e", EXPRESSIONS, ids=repr)
@pytest.mark.parametrize("domain", [((0, 3), (1, 4)), ((-3, 2), (-2, 2)), ((5, 5), (0, 0)), ((-7, -4), (3, 6))])
def test_every_value_is_in_the_set(e, domain):
    found = Analyzer().int_set(e, {x: IntervalSet(*domain[0]), y: IntervalSet(*domain[1])})
    value = as_python(e, [x, y])
    points = itertools.product(*(range(low, high + 1) for low, high in domain))
    values = [value(*point) for point in points]
    if found.is_everything():
        return
    low, high = found
    assert low is neg_inf() or low.value <= min(values)
    assert high is pos_inf() or high.value >= max(values)


@pytest.mark.parametrize(
    ("e", "domains", "wanted"),
    [
        (x + y, {x: (0, 10), y: (1, 11)}, (1, 21)),
        (x - y, {x: (0, 10), y: (1, 11)}, (-11, 9)),
        (x // 2 + x - x // 2, {x: (0, 9)}, (0, 9)),
        (x % 10, {x: (3, 5)}, (3, 5)),
        (x % 10, {x: (13, 15)}, (3, 5)),
        (x % 10, {x: (3, 15)}, (0, 9)),
        (x + y, {x: (0, y), y: (0, 5)}, (0, 10)),
        (tir.Ramp(x, 2, 4), {x: (0, 1)}, (0, 7)),
        (tir.Broadcast(x, 4), {x: Range(2, 5)}, (2, 4)),
    ],
)
def test_exact_ends(e, domains, wanted):
    assert ends(Analyzer().int_set(e, domains)) == wanted


def test_symbols_and_infinities_stay():
    analyzer = Analyzer()
    found = analyzer.int_set(x + n, {x: IntervalSet(0, n)})
    assert structural_equal(found.min_value, n) and analyzer.can_prove_equal(found.max_value, n * 2)
    below = analyzer.int_set(x * -2 + 1, {x: IntervalSet(neg_inf(), 5)})
    assert below.min_value.value == -9 and below.max_value is pos_inf()
    assert analyzer.int_set(y, {x: (0, 9)}).is_single_point()
    assert analyzer.int_set(tir.call_extern("int32", "f", x), {x: (0, 9)}).is_everything()


def test_sets():
    a, b = IntervalSet(0, 10), IntervalSet(5, 20)
    assert ends(a.intersect(b)) == (5, 10) and ends(a.union(b)) == (0, 20)
    assert a.intersect(IntervalSet(11, 12)).is_nothing() and IntSet.everything().is_everything()
    assert IntSet.single_point(3).is_single_point() and not a.is_nothing()
    assert ends(IntSet.vector(tir.Ramp(0, 2, 4))) == (0, 6)
    assert ends(IntSet.nothing().union(a)) == (0, 10)
    with pytest.raises(NotASet, match="is no set of integers"):
        Analyzer().int_set(x, {x: "0..4"})


CONDITIONS = [
    x * 2 + y >= 3,
    x * 2 + y < 3,
    -x * 3 + y > 1,
    (x + 1) // 3 >= y,
    (x * 2 - 1) // 4 <= y + 1,
    x == y + 1,
    tir.all(x > y, x * 2 <= 9),
    x // 2 < 3,
    -(x // 2) * 2 + y >= 0,
]


@pytest.mark.parametrize("cond", CONDITIONS, ids=repr)
@pytest.mark.parametrize("domain", [(0, 0), (-2, 3), (4, 6)])
def test_deduced_bounds_hold_for_every_relaxed_value(cond, domain):
    found = deduce_bound(x, cond, {}, {y: IntervalSet(*domain)})
    holds = as_python(cond, [x, y])
    true = [v for v in range(-12, 13) if all(holds(v, w) for w in range(domain[0], domain[1] + 1))]
    low = -99 if found.min_value is neg_inf() else 99 if found.min_value is pos_inf() else found.min_value.value
    high = 99 if found.max_value is pos_inf() else -99 if found.max_value is neg_inf() else found.max_value.value
    assert [v for v in range(-12, 13) if low <= v <= high] == true  # all of them, and nothing else


def test_deduction_with_symbols():
    b, c, d = Var("b"), Var("c"), Var("d")
    hints = {b: IntervalSet(2, 3), c: IntervalSet(10, 15), d: IntervalSet(-3, -1)}
    found = deduce_bound(x, (-b) * x + c - d >= 0, hints, {})
    assert found.min_value is neg_inf() and repr(found.max_value) == "(c - d) // b"
    relaxed = deduce_bound(x, (-b) * x + c - d >= 0, hints, hints)
    assert relaxed.max_value.value == 3
    assert deduce_bound(x, x * b >= 10).is_nothing()  # the sign of b is unknown
    assert deduce_bound(x, x % 4 >= 2).is_nothing() and deduce_bound(x, y > 3).is_nothing()


def test_clip_bounds():
    assert repr(detect_clip_bound(tir.all(x * 1 < n * 6, x - 1 > 0), [x])) == "[2, n * 6 - 1]"
    found = detect_clip_bound(tir.all(x < 4, y > 2, x * 2 >= 3), [x, y])
    assert [end and end.value for end in found] == [2, 3, 3, None]
    assert detect_clip_bound(x + y < 3, [x, y]) == [] and detect_clip_bound(tir.any(x < 1, x > 4), [x]) == []


def test_common_subexpressions():
    found = detect_common_subexpr((x + y) * (x + y) + (x + y) * 3 + (x + y) * (x + y), 2)
    assert {repr(e): count for e, count in found.items()} == {"(x + y) * (x + y)": 2, "x + y": 3}
    assert detect_common_subexpr(x + y, 2) == {}


def test_a_factor_that_is_infinite_bounds_nothing() -> None:
    endless = IntervalSet(pos_inf(), pos_inf())
    assert Analyzer().int_set(x * y, {x: IntervalSet(0, 4), y: endless}).is_everything()
    assert Analyzer().int_set(y * x, {x: IntervalSet(0, 4), y: endless}).is_everything()
