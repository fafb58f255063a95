"""`tir.transform.Simplify`: statements stay, and settings say how much is tried."""

from __future__ import annotations

from loopwright import tir
from loopwright.ir import IntImm, assert_structural_equal
from loopwright.ir.pass_context import PassContext
from loopwright.script import tir as T


def simplified(func, **settings):
    with PassContext(config={"tir.Simplify": settings}):
        return tir.transform.Simplify()(func)


def test_statements_stay():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,))):
        for i in range(1):
            if i < 4:
                T.evaluate(A[i * 4 // 2])

    @T.prim_func(private=True)
    def expected(A: T.Buffer((16,))):
        for _ in range(1):
            T.evaluate(A[0])

    assert_structural_equal(simplified(before), expected)


def test_comparisons_chain_where_that_is_asked_for():
    @T.prim_func(private=True)
    def before(A: T.Buffer((1,), "bool"), i: T.int32, j: T.int32, k: T.int32, m: T.int32):
        if i < j + 5 and j < k + 7 and k <= m:
            A[0] = i < m + 11

    value = simplified(before, transitively_prove_inequalities=True).body.then_case.value
    assert isinstance(value, IntImm) and value.value


def test_a_comparison_is_no_fact_after_a_store():
    @T.prim_func(private=True)
    def before(A: T.Buffer((1,), "int32"), n: T.int32):
        if A[0] < n:
            A[0] = A[0] + 1
            if A[0] < n:
                A[0] = 0

    assert_structural_equal(simplified(before, transitively_prove_inequalities=True), before)


def test_one_side_of_a_condition_simplifies_the_other():
    @T.prim_func(private=True)
    def before(A: T.Buffer((1,), "bool"), n: T.int32, m: T.int32):
        A[0] = n < m + 5 and n < m + 9

    value = simplified(before, apply_constraints_to_boolean_branches=True).body.value
    assert str(value) == "n < m + 5"


def test_and_of_ors():
    @T.prim_func(private=True)
    def before(A: T.Buffer((1,), "bool"), i: T.int32, j: T.int32, k: T.int32):
        A[0] = (k == 20) and ((i == 0 or j == 10) and k != 30)

    value = simplified(before, convert_boolean_to_and_of_ors=True).body.value
    assert str(value) == "(i == 0 or j == 10) and k == 20"


def test_both_branches_of_a_choice_know_the_condition():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            A[i] = T.if_then_else(i < n, T.if_then_else(i < n, 1, 2), T.if_then_else(i < n, 3, 4))

    assert "T.if_then_else(i < n, 1, 4)" in str(simplified(before))


def test_contents_of_cells_are_followed_through_straight_code():
    @T.prim_func(private=True)
    def before(A: T.Buffer((4,), "int32"), n: T.int32):
        A[0] = 5
        A[0] = A[0] + 7
        if A[0] == 12:
            A[1] = 1
        for i in range(n):
            A[0] = i
        if A[0] == 12:
            A[2] = 1

    settings = {"propagate_knowns_to_prove_conditional": True, "propagate_knowns_to_simplify_expressions": True}
    text = str(simplified(before, **settings))
    assert "A[0] = 12" in text and text.count("if A[0] == 12") == 1
    assert str(simplified(before)).count("if A[0] == 12") == 2


def test_another_view_of_memory_changes_what_a_cell_holds():
    @T.prim_func(private=True)
    def before(A: T.Buffer((2, 2), "int32")):
        flat = T.decl_buffer((4,), "int32", data=A.data)
        A[1, 0] = 5
        flat[2] = 6
        if A[1, 0] == 5:
            A[0, 0] = 1

    assert "if A[1, 0] == 5" in str(simplified(before, propagate_knowns_to_prove_conditional=True))
