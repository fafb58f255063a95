from __future__ import annotations

from types import SimpleNamespace

import pytest

from loopwright import te, testing, tir


def test_equal_expressions():
    n, m = te.var("n"), te.var("m")
    testing.assert_prim_expr_equal(n * 2 + m, m + n + n)
    testing.assert_prim_expr_equal(3, 3)
    with pytest.raises(ValueError, match="n and m are not equal"):
        testing.assert_prim_expr_equal(n, m)


def test_a_claim_is_tried_on_every_value():
    x, y = te.var("x"), te.var("y")
    ranges = {x: tir.Range(-3, 4), y: tir.Range(0, 5)}
    testing.check_bool_expr_is_true(tir.floordiv(x, 2) * 2 + tir.floormod(x, 2) == x, {x: ranges[x]})
    testing.check_bool_expr_is_true(x + y < 8, ranges)
    testing.check_bool_expr_is_true(x * x >= x, ranges, cond=y > 10)
    with pytest.raises(AssertionError, match=r"x \* y < 12 does not hold at x = 3, y = 4"):
        testing.check_bool_expr_is_true(x * y < 12, ranges)
    with pytest.raises(AssertionError, match=r"x < 1 does not hold at x = 1, where x >= 0 does"):
        testing.check_bool_expr_is_true(x < 1, {x: ranges[x]}, cond=x >= 0)


def test_ranges_of_every_kind():
    x, y = te.var("x"), te.var("y")
    testing.check_bool_expr_is_true(x < 0, {x: tir.Range(0, 0)})  # nothing to try
    testing.check_bool_expr_is_true(x == 7, {x: tir.Range(7, 8)})
    testing.check_bool_expr_is_true(tir.IntImm("bool", 1), {})
    testing.check_bool_expr_is_true(x + y < 9, {x: tir.Range(0, 5), y: tir.Range(0, x + 1)})  # a box around it
    with pytest.raises(ValueError, match=r"2.15e\+09 points are too many to try"):
        testing.check_bool_expr_is_true(x < 1, {x: tir.Range(0, te.var("n"))})
    with pytest.raises(ValueError, match="points are too many to try"):
        testing.check_bool_expr_is_true(x < 1, {x: tir.Range(0, 1 << 30)})
    big = te.var("big", "int64")
    testing.check_bool_expr_is_true(big >= 1 << 40, {big: tir.Range(tir.IntImm("int64", 1 << 40), (1 << 40) + 3)})


def constraints(variables, ranges, relations):
    return SimpleNamespace(variables=variables, ranges=ranges, relations=relations)


def test_a_change_of_variables():
    x, y, z = te.var("x"), te.var("y"), te.var("z")
    src = constraints([x, y], {x: tir.Range(0, 10), y: tir.Range(0, 10)}, [x == y + 1])
    dst = constraints([z], {z: tir.Range(0, 9)}, [])
    good = SimpleNamespace(src=src, dst=dst, src_to_dst={x: z + 1, y: z}, dst_to_src={z: y})
    testing.check_int_constraints_trans_consistency(good)
    wrong = SimpleNamespace(src=src, dst=dst, src_to_dst={x: z, y: z}, dst_to_src={z: y})
    with pytest.raises(AssertionError, match="does not hold at x = 1, y = 0"):
        testing.check_int_constraints_trans_consistency(wrong)
    wide = SimpleNamespace(**{**vars(good), "dst": constraints([z], {z: tir.Range(0, 20)}, [])})
    with pytest.raises(AssertionError, match="does not hold at z = 9"):
        testing.check_int_constraints_trans_consistency(wide)
