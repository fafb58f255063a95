"""What scripts ask of arith besides: narrowed predicates, touched domains, canonical order, solved conditions."""

from __future__ import annotations

import itertools

import loopwright.arith.int_set as int_set
from loopwright import te, tir
from loopwright.arith import Analyzer, ConstIntBound, IntervalSet, _ffi_api
from loopwright.ir import Range, structural_equal, substitute
from loopwright.script import tir as T

i, n, x, y, z = (tir.Var(name) for name in "inxyz")


def _holds(condition: tir.PrimExpr, **values: int) -> bool:
    found = substitute(condition, {i: tir.const(values["i"]), n: tir.const(values.get("n", 0))})
    return bool(Analyzer().simplify(found).value)  # type: ignore[attr-defined]


def test_a_narrowed_predicate_implies_the_given_one() -> None:
    narrow = _ffi_api.NarrowPredicateExpression
    equal, other = tir.EQ(i, n), tir.NE(n, i)
    for given in (i < n, i >= n * 2, equal, other, tir.Not(i < n), (i + n) // 3 > 1, i - n < 2, n % 2 < i):
        narrowed = narrow(given, {n: Range(0, 5)})
        for value, parameter in itertools.product(range(-3, 14), range(5)):
            assert not _holds(narrowed, i=value) or _holds(given, i=value, n=parameter)
    assert structural_equal(narrow(i < n, {n: Range(2, 5)}), i < 2)
    assert structural_equal(narrow(i > n, {n: Range(2, 5)}), i > 4)
    assert structural_equal(narrow(i % 8 < n, {n: Range(0, 8)}), tir.const(False))
    assert structural_equal(narrow(i > 3, {n: Range(0, 8)}), i > 3)


def test_the_domain_that_a_loop_touches() -> None:
    @T.prim_func
    def shift(A: T.Buffer((40, 9), "float32"), B: T.Buffer((40,), "float32")):
        for i in range(1, 31):
            A[i + 2, 3] = A[i - 1, 5] + B[i]

    a, b = (shift.buffer_map[param] for param in shift.params)

    def touched(buffer: tir.Buffer, loads: bool, stores: bool) -> list[tuple[int, int]]:
        return [
            (int(part.min), int(part.extent)) for part in _ffi_api.DomainTouched(shift.body, buffer, loads, stores)
        ]

    assert touched(a, True, False) == [(0, 30), (5, 1)]
    assert touched(a, False, True) == [(3, 30), (3, 1)]
    assert touched(a, True, True) == [(0, 33), (3, 3)]
    assert touched(b, False, True) == []


def test_canonical_order() -> None:
    canonical = Analyzer().canonical_simplify
    for before, after in (
        (3 + (2 * x + z + y) * 4 - x, x * 7 + z * 4 + y * 4 + 3),
        (x * 2 - 5 * x + y + 1, y + 1 - x * 3),
        (x - 3, tir.Sub(x, 3)),
        ((x * 3 + 4 * y + x) // 4, y + x),
        (tir.truncdiv(x * 3 + 6 * y + 9, 3), y * 2 + x + 3),
        (x - 2 < 3, x < 5),
        ((x * y * 12) // (y * 8), x // 2 + x),
        ((x * y * 4) % (y * x), tir.const(0)),
        (tir.truncmod(x * y * 4, y * 6), tir.truncmod(x * 2, 3) * y * 2),
    ):
        assert structural_equal(canonical(before), after), (before, canonical(before))


def test_a_reduction_is_simplified_where_its_axes_run() -> None:
    k = te.reduce_axis((0, 10), name="k")
    canonical = Analyzer().canonical_simplify
    assert structural_equal(canonical(te.sum(tir.Select(k < 10, k + 1, 0), k)), te.sum(k + 1, k))
    assert structural_equal(canonical(te.sum(k.var, k, where=k > 12)), 0)


def test_inequalities_as_conditions() -> None:
    solved = _ffi_api.SolveInequalitiesAsCondition([x, y], {y: Range(0, 50)}, [x + y <= 8, x >= y, x >= 0])
    assert [repr(one) for one in solved] == ["x >= y", "x <= 8 - y", "y >= 0", "y <= 4"]
    assert [repr(one) for one in _ffi_api.SolveInequalitiesAsCondition([x], {}, [x > 3, x < 2])] == ["T.bool(False)"]


def test_bounds_of_quotients_shifts_and_types() -> None:
    facts = Analyzer()
    facts.update(x, ConstIntBound(-9, 4))
    facts.update(y, ConstIntBound(-2, 0))
    bound = facts.const_int_bound
    assert bound(x // y) == ConstIntBound(-4, 9)  # x // 0 has no value
    facts.update(z, ConstIntBound(1, 3))
    assert bound(x >> z) == ConstIntBound(-5, 2)
    assert bound(te.size_var("m") * 2) == ConstIntBound(0, ConstIntBound.POS_INF)
    assert bound(n - 1).min_value == ConstIntBound.NEG_INF


def test_remainders_that_conditions_say() -> None:
    facts = Analyzer()
    with facts.constraint_scope(tir.EQ(tir.truncmod(x, 4), 1)), facts.constraint_scope(tir.EQ(x % 9, 5)):
        assert facts.modular_set(x) == (36, 5)
        assert facts.modular_set(x * 2 + y * 8) == (8, 2)
    with facts.constraint_scope(tir.EQ((x + 2) % 5, 1)), facts.constraint_scope(tir.EQ(x % 3, 2)):
        assert facts.modular_set(x) == (15, 14)
    assert facts.modular_set(x) == (1, 0)
    assert facts.modular_set((x * 8 + 4) >> 2) == (2, 1)
    assert facts.modular_set((x * 8 + 4) & 23) == (8, 4)
    assert facts.modular_set(x & 48) == (16, 0)
    assert facts.modular_set(tir.Let(x, y * 6, x + 1)) == (6, 1)


def test_intervals_that_touch_are_joined() -> None:
    join, interval = int_set.union_lower_bound, IntervalSet
    assert [int(end) for end in join([interval(0, 4), interval(5, 9)])] == [0, 9]
    assert [int(end) for end in join([interval(0, 4), interval(6, 9)])] == [0, 4]
    assert join([interval(int_set.neg_inf(), 3), interval(2, int_set.pos_inf())]).is_everything()
    facts = Analyzer()
    facts.bind(x, Range(0, 2))
    found = facts.int_set(y % 8, {y: interval(z * 8 + x * 4, z * 8 + x * 4 + 3)})
    assert structural_equal(found.min_value, x * 4) and structural_equal(found.max_value, x * 4 + 3)
