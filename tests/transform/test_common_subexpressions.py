"""common_subexpressions: what a statement computes twice is computed once."""

from __future__ import annotations

import pytest

from loopwright.script import tir as T
from loopwright.transform import PassContext, common_subexpressions
from tests.agreement import evaluated
from tests.random_programs import random_arguments, random_function
from tests.transform.before_after import check_all, same_native, same_results, unchanged


def test_an_index_and_a_load():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i, j in T.grid(8, 8):
            B[i * 8 + j] = A[i * 8 + j] * A[i * 8 + j]

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i, j in T.grid(8, 8):
            with T.LetStmt(i * 8 + j) as s:
                with T.LetStmt(A[s]) as s_1:
                    B[s] = s_1 * s_1

    check_all(common_subexpressions, before, after)


def test_neighbours_share_arithmetic_but_no_loads():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,)), x: T.float32):
        for i in range(32):
            B[i * 2] = A[i * 2] + T.exp(x)
            A[i * 2] = A[i * 2] + T.exp(x)

    got = common_subexpressions(before)
    assert got.script().count("T.exp") == 1 and got.script().count("A[s") == 3
    same_results(before, got)
    same_native(before, got)


def test_a_guarded_load_stays_guarded():
    @T.prim_func
    def func(A: T.Buffer((8,)), B: T.Buffer((16,)), n: T.int32):
        for i in range(16):
            B[i] = T.if_then_else(i < 8, A[i], T.float32(0)) + T.if_then_else(i < n, A[i], T.float32(1))

    unchanged(common_subexpressions, func)


def test_calls_with_effects_are_made_as_often():
    @T.prim_func
    def func(B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = T.call_extern("int32", "next") + T.call_extern("int32", "next")

    unchanged(common_subexpressions, func)


def test_the_setting():
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i in range(8):
            B[i] = A[i * 2] * A[i * 2]

    with PassContext(config={"tir.disable_cse_tir": True}):
        unchanged(common_subexpressions, func)


@pytest.mark.parametrize("seed", range(0, 24, 2))
def test_random_programs(seed):
    from tests.agreement import assert_same

    func = random_function(seed)
    given = random_arguments(func, seed)
    from loopwright.transform import canonicalize_loops, lower_blocks, write_allocations, write_inits

    plain = func
    for each in (canonicalize_loops, write_inits, write_allocations, lower_blocks):
        plain = each(plain)
    assert_same(func, evaluated(common_subexpressions(plain), given), evaluated(func, given), "shared", "plain")
