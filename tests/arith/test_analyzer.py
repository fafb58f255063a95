from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

import loopwright.ir.intrinsics as T
from loopwright.arith import AlreadyBound, Analyzer, ConstIntBound, ModularSet, ProofStrength, bounds, const_bounds
from loopwright.arith.bounds import form_range
from loopwright.ir import (
    Broadcast,
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
    Not,
    Ramp,
    Range,
    Select,
    SizeVar,
    Var,
    const,
    decl_buffer,
    logical_and,
    logical_or,
    substitute,
)

I, J, K, N, M = Var("i"), Var("j"), Var("k"), SizeVar("n"), SizeVar("m")


@pytest.fixture
def analyzer() -> Analyzer:
    found = Analyzer()
    found.bind(I, Range(0, 16))
    found.bind(J, Range(0, 8))
    found.bind(K, Range(0, N))
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (I + 1 - 1, "i"),
        (I - I, "0"),
        (I * 4 + I, "i * 5"),
        (J - I + 3 - J, "3 - i"),
        ((I + J) * 2 - I, "i + j * 2"),
        ((I * 8 + J) // 8, "i"),
        ((I * 8 + J) % 8, "j"),
        ((I * 8 + J) // 32, "i // 4"),
        ((I * 8 + J + 3) // 16, "(i * 8 + j + 3) // 16"),
        (I // 16, "0"),
        (I % 16, "i"),
        (I // 4 // 2, "i // 8"),
        (I % 8 % 4, "i % 4"),
        (I % 8 // 4, "i // 4 % 2"),
        (I // 4 * 4 + I % 4, "i"),
        (M // 12 * 12 + M // 4 % 3 * 4 + M % 4, "m"),
        ((M // 4 % 3) * 4 + M % 4, "m % 12"),
        ((K * N + K) // N, "k"),
        ((J * N + K) % N, "k"),
        (FloorMod(I, const(-4)), "i * -1 % 4 * -1"),
        (Div(I, const(4)), "i // 4"),
        (Mod(I, const(4)), "i % 4"),
        (Div(I - 8, const(4)), "T.Div(i - 8, 4)"),
        (I * 4 < 3, "i < 1"),
        (I + 3 < 10, "i < 7"),
        (I * 2 + 3 == 8, "T.bool(False)"),
        (I // 4 < 2, "i < 8"),
        (I < 16, "T.bool(True)"),
        (M < M + 1, "T.bool(True)"),
        (K * 4 + J % 4 < N * 4, "T.bool(True)"),
        (Min(I, const(20)), "i"),
        (Max(I - 20, const(0)), "0"),
        (Min(M, N) <= N, "T.bool(True)"),
        (M // 4 * 4 <= M, "T.bool(True)"),
        ((M + 3) // 4 * 4 >= M, "T.bool(True)"),
        (Not(M < 3), "m >= 3"),
        (logical_and(M < 5, M < 3), "m < 3"),
        (logical_or(M < 5, M < 3), "m < 5"),
        (logical_and(M < 3, M < 5), "m < 3"),
        (Select(M < 3, M % 3, const(7)), None),
        (T.if_then_else(I < 4, I // 4, I), None),
        (Let(K, const(4), K + I), "i + 4"),
        (I << 2, "i * 4"),
        (I >> 2, "i // 4"),
        (T.abs(I - 20), "20 - i"),
        (T.likely(I < 16), "T.bool(True)"),
    ],
)
def test_simplify(analyzer: Analyzer, before: Expr, after: str | None) -> None:
    found = analyzer.simplify(before)
    if after is not None:
        assert _same_text(found, after), f"{found!r}"
    assert analyzer.simplify(found) is found


def _same_text(e: Expr, text: str) -> bool:
    if text.startswith("T.bool"):
        return isinstance(e, IntImm) and bool(e.value) == ("True" in text)
    return repr(e) == text


def test_branches_know_their_condition(analyzer: Analyzer) -> None:
    found = analyzer.simplify(Select(M < 3, M % 3, M))
    assert repr(found) == "m"  # m % 3 is m there, and then both branches agree
    assert repr(analyzer.simplify(T.if_then_else(I < 4, I // 4, I))).replace(" ", "").endswith("i<4,0,i)")


def test_simple_expressions_come_back_as_the_same_object(analyzer: Analyzer) -> None:
    buffer = decl_buffer((16, 8), "float32", "A")
    load = buffer[I, J]
    for e in (I, I * 4 + J + 1, I // 4 * 3 - J, N - I, load, load + 1.0, I // 3, Select(I < J, load, load * 2.0)):
        assert analyzer.simplify(e) is e
    changed = analyzer.simplify(buffer[I + 0 * J, (J * 2) // 2] * 2.0)
    assert repr(changed) == repr(load * 2.0)


def test_equal_atoms_built_twice_cancel(analyzer: Analyzer) -> None:
    buffer = decl_buffer((16,), "int32", "A")
    assert repr(analyzer.simplify(buffer[I + J] - buffer[J + I])) == "0"
    assert repr(analyzer.simplify((I + J) // 3 - (J + I) // 3)) == "0"
    assert repr(analyzer.simplify(I * N - N * I)) == "0"


def test_vectors(analyzer: Analyzer) -> None:
    ramp = Ramp(I * 4, const(1), 4)
    found = analyzer.simplify(ramp + Broadcast(J, 4))
    assert isinstance(found, Ramp) and repr(found.base) == "i * 4 + j"
    assert isinstance(analyzer.simplify(ramp * 2), Ramp)


def test_casts(analyzer: Analyzer) -> None:
    assert analyzer.const_int_bound(I.astype("int64") * 2) == ConstIntBound(0, 30)
    assert analyzer.simplify(Cast("int32", I)) is I
    assert analyzer.const_int_bound(Var("u", "uint8").astype("int32")) == ConstIntBound(0, 255)


def test_products_too_wide_to_write_stay() -> None:
    e = I * 100000 * 100000
    assert Analyzer().simplify(e) is e


def test_bounds(analyzer: Analyzer) -> None:
    assert analyzer.const_int_bound(I * 2 - J) == ConstIntBound(-7, 30)
    assert analyzer.const_int_bound(M // 8 * 0 + I % 3) == ConstIntBound(0, 2)
    assert analyzer.const_int_bound(Var("x", "int64")) == ConstIntBound(ConstIntBound.NEG_INF, ConstIntBound.POS_INF)
    assert analyzer.const_int_bound(SizeVar("s")).min_value == 0
    assert const_bounds(I * 4 + J, {I: Range(0, 4), J: (1, 3)}) == (1, 15)


def test_remainders(analyzer: Analyzer) -> None:
    assert analyzer.modular_set(I * 4 + 6) == ModularSet(4, 2)
    assert analyzer.modular_set(const(7)) == ModularSet(0, 7)
    with analyzer.constraint_scope(M % 8 == 3):
        assert analyzer.modular_set(M * 2) == ModularSet(16, 6)
        assert repr(analyzer.simplify((M + 1) % 4)) == "0"
    assert analyzer.modular_set(M) == ModularSet(1, 0)


def test_binding_twice_is_an_error() -> None:
    analyzer = Analyzer()
    analyzer.bind(I, Range(0, 4))
    analyzer.bind(I, Range(0, 4))
    with pytest.raises(AlreadyBound, match=r"bind: i is bound to .* already and cannot be bound to"):
        analyzer.bind(I, Range(0, 5))
    analyzer.bind(I, Range(0, 5), allow_override=True)
    assert analyzer.const_int_bound(I) == ConstIntBound(0, 4)


def test_bind_to_an_expression_replaces_the_variable() -> None:
    analyzer = Analyzer()
    analyzer.bind(I, J * 4)
    assert repr(analyzer.simplify(I // 4)) == "j"
    with analyzer.bound(K, J * 4, inline=False):
        assert analyzer.modular_set(K) == ModularSet(4, 0)
        assert analyzer.simplify(K) is K


def test_update() -> None:
    analyzer = Analyzer()
    analyzer.update(I, ConstIntBound(0, 10))
    analyzer.update(I, ConstIntBound(5, 20))
    assert analyzer.const_int_bound(I) == ConstIntBound(5, 10)
    analyzer.update(I, ConstIntBound(0, 3), override=True)
    assert analyzer.const_int_bound(I) == ConstIntBound(0, 3)


def test_scopes_end() -> None:
    analyzer = Analyzer()
    assert not analyzer.can_prove(I < 8)
    with analyzer.bound(I, Range(0, 8)), analyzer.constraint_scope(J < I):
        assert analyzer.can_prove(I < 8) and analyzer.can_prove(J < 7)
        with analyzer.bound(I, Range(0, 4)):
            assert analyzer.can_prove(I < 4)
        assert not analyzer.can_prove(I < 4) and analyzer.can_prove(I < 8)
    assert not analyzer.can_prove(I < 8) and not analyzer.can_prove(J < 7)


def test_conditions_of_unknown_kind_are_remembered() -> None:
    analyzer, flag, x = Analyzer(), Var("flag", "bool"), Var("x", "float32")
    with analyzer.constraint_scope(logical_and(flag, x < 1.0)):
        assert analyzer.can_prove(flag) and analyzer.can_prove(x < 1.0)
        assert not analyzer.can_prove(x < 2.0)
    assert not analyzer.can_prove(flag)


def test_conditions_that_read_memory_teach_nothing() -> None:
    analyzer, load = Analyzer(), decl_buffer((4,), "int32", "A")[I]
    with analyzer.constraint_scope(load < 3):
        assert not analyzer.can_prove(load < 3)  # a store in the branch may change it


def test_loops_of_one_iteration_disappear() -> None:
    analyzer = Analyzer()
    with analyzer.bound(I, Range.from_min_extent(N, 1)):
        assert repr(analyzer.simplify(I * 2 + J)) == "n * 2 + j"


def test_can_prove_equal(analyzer: Analyzer) -> None:
    assert analyzer.can_prove_equal(M % 4, M - M // 4 * 4)
    assert analyzer.can_prove_equal((M + 4) // 4, M // 4 + 1)
    assert not analyzer.can_prove_equal(M, N)
    x = Var("x", "float32")
    assert analyzer.can_prove_equal(x * 1.0, x) and not analyzer.can_prove_equal(x, I)


def test_division_by_what_may_be_zero_is_left() -> None:
    z = Var("z")
    for e in (z // z, FloorMod(z, z), (I * z) // z):
        assert Analyzer().simplify(e) is e


def test_deep_expressions() -> None:
    analyzer = Analyzer()
    chain: Expr = I
    names = [Var(f"v{k}") for k in range(10_000)]
    for var in names:
        chain = chain + var
    assert analyzer.simplify(chain) is chain
    nest: Expr = I
    for _ in range(10_000):
        nest = (nest + 1) // 3
    assert analyzer.simplify(nest).dtype == "int32"
    choice: Expr = I
    for k in range(2_000):
        choice = T.if_then_else(J < k, choice + 1, K)
    assert analyzer.simplify(choice).dtype == "int32"
    text: Expr = Var("x", "float32")
    for _ in range(10_000):
        text = text * 2.0 + 1.0
    assert analyzer.simplify(text) is text


def test_shared_subtrees_are_walked_once() -> None:
    e: Expr = I + J
    for _ in range(60):
        e = e + e
    assert Analyzer().simplify(e) is e  # 2**60 does not fit the type
    e = (I + J) // 3
    for _ in range(25):
        e = FloorDiv(e + e, const(2)) + e
    Analyzer().simplify(e)
    e = I
    for k in range(40):
        e = Select(J < k, e, e + 1)
    Analyzer().simplify(e)


def test_questions_by_the_names_scripts_know() -> None:
    i, n = Var("i"), Var("n")
    analyzer = Analyzer()
    assert not analyzer.const_int_bound_is_bound(i)
    analyzer.bind(i, Range(2, 16))
    assert analyzer.const_int_bound_is_bound(i) and not analyzer.const_int_bound_is_bound(n)
    assert analyzer.can_prove_greater_equal(i, 2) and not analyzer.can_prove_greater_equal(i, 3)
    assert analyzer.can_prove_less(i * 2, 31) and not analyzer.can_prove_less(i * 2, 30)


def test_over_knows_every_domain() -> None:
    i, j = Var("i"), Var("j")
    analyzer = Analyzer.over({i: Range(0, 4), j: Range(0, i)})
    assert analyzer.can_prove(j < 4) and analyzer.can_prove(j < i)
    assert Analyzer.over({}).const_int_bound(i) == Analyzer().const_int_bound(i)


def test_the_work_of_simplifying_is_counted() -> None:
    p = Var("p", "bool")
    analyzer = Analyzer()
    assert analyzer.rewrite_simplify_stats == (0, 0, 0, 0)
    analyzer.simplify(Not(Not(p)))
    first = analyzer.rewrite_simplify_stats
    assert first.nodes_visited > 0 and first.rewrites_attempted >= first.rewrites_performed > 0
    with analyzer.constraint_scope(p):
        pass
    assert analyzer.rewrite_simplify_stats.constraints_entered == first.constraints_entered + 1
    analyzer.reset_rewrite_simplify_stats()
    assert analyzer.rewrite_simplify_stats == (0, 0, 0, 0)


def test_a_loop_bound_that_was_read_from_memory_says_nothing_of_what_lies_there_now():
    t = decl_buffer((4,), "int32", "t")
    i = Var("i")
    analyzer = Analyzer()
    analyzer.bind(i, Range(0, t[0]))
    assert not analyzer.can_prove(i < t[0])
    assert not analyzer.can_prove(i < t[0], ProofStrength.SYMBOLIC_BOUND)
    assert analyzer.can_prove(i >= 0)
    j = Var("j")
    analyzer.bind(j, Range.from_min_extent(t[1], 1))
    assert analyzer.simplify(j) is j


def test_a_long_sum_times_a_variable_is_not_multiplied_out():
    terms = [Var(name) for name in "abcdefghi"]
    total, n = sum(terms[1:], start=terms[0]), Var("n")
    for product in (total * n, n * total):
        simple = Analyzer().simplify(product)
        values = {var: const(k + 2) for k, var in enumerate([*terms, n])}
        assert Analyzer().simplify(substitute(simple, values)).value == sum(range(2, 11)) * 11


def test_a_proof_tries_each_multiple_of_an_inequality_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # A concatenation of k symbolic sizes: each condition is a sum, all atoms of which the same fact cancels.
    sizes = [SizeVar(f"n{index}") for index in range(12)]
    ends = [sum(sizes[: count + 1], const(0, "int32")) for count in range(len(sizes))]
    analyzer, tried = Analyzer(), 0

    def counted(*arguments: Any) -> tuple[int, int]:
        nonlocal tried
        tried += 1
        return form_range(*arguments)

    with ExitStack() as scopes:
        for end in ends[:-1]:
            scopes.enter_context(analyzer.constraint_scope(I >= end))
        monkeypatch.setattr(bounds, "form_range", counted)
        assert not analyzer.can_prove(I < ends[-1])
        assert analyzer.can_prove(I >= ends[-2])
    assert tried < 2000
