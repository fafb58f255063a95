"""auto_unroll: loops that stay short when written out are marked unrolled."""

from __future__ import annotations

import pytest

from loopwright.script import tir as T
from loopwright.transform import BadAnnotation, PassContext, auto_unroll, lower, unroll_loops
from tests.transform.before_after import PLAIN, check_all, same_at_every_stage, unchanged


def test_a_pragma_on_a_loop():
    @T.prim_func
    def before(A: T.Buffer((8, 4)), B: T.Buffer((8, 4))):
        for i in T.serial(8, annotations={"pragma_auto_unroll_max_step": 16, "pragma_unroll_explicit": 1}):
            for j in range(4):
                B[i, j] = A[i, j]
        for i, j in T.grid(8, 4):
            B[i, j] = B[i, j] + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8, 4)), B: T.Buffer((8, 4))):
        for i in range(8):
            for j in T.unroll(4):
                B[i, j] = A[i, j]
        for i, j in T.grid(8, 4):
            B[i, j] = B[i, j] + T.float32(1)

    check_all(auto_unroll, before, after)


def test_a_pragma_on_a_block_reaches_the_loops_inside():
    @T.prim_func
    def func(A: T.Buffer((8, 4)), B: T.Buffer((8, 4))):
        for i in range(8):
            with T.block("row"):
                vi = T.axis.spatial(8, i)
                T.block_attr({"pragma_auto_unroll_max_step": 8})
                for j in range(4):
                    with T.block("B"):
                        vj = T.axis.spatial(4, j)
                        B[vi, vj] = A[vi, vj]

    text = lower(func, PLAIN, stop_after="auto_unroll")["func"].script()
    assert "for j in T.unroll(4)" in text and "for i in range(8)" in text and "pragma" not in text
    same_at_every_stage(func)


def test_the_setting_counts_steps_depth_and_length():
    @T.prim_func
    def func(A: T.Buffer((4, 4, 4)), B: T.Buffer((4, 4, 4))):
        for i, j, k in T.grid(4, 4, 4):
            B[i, j, k] = A[i, j, k]

    def kinds(**options: int) -> list[bool]:
        with PassContext(config={"tir.UnrollLoop": options}):
            text = auto_unroll(func).script()
        return [f"for {name} in T.unroll" in text for name in "ijk"]

    unchanged(auto_unroll, func)
    assert kinds(auto_max_step=4) == [False, False, True]
    assert kinds(auto_max_step=16) == [False, True, True]
    assert kinds(auto_max_step=63) == [False, True, True]
    assert kinds(auto_max_step=64) == [True, True, True]
    assert kinds(auto_max_step=64, auto_max_depth=2) == [False, True, True]
    assert kinds(auto_max_extent=4) == [True, True, True]
    assert kinds(auto_max_extent=3) == [False, False, False]


def test_a_loop_that_stays_keeps_those_around_it():
    @T.prim_func
    def func(A: T.Buffer((4, 100)), B: T.Buffer((4, 100))):
        for i in T.serial(4, annotations={"pragma_auto_unroll_max_step": 16}):
            for j in range(100):
                B[i, j] = A[i, j]

    assert "unroll" not in auto_unroll(func).script()


def test_unroll_loops_writes_them_out():
    @T.prim_func
    def before(B: T.Buffer((4,))):
        for i in T.serial(2, annotations={"pragma_auto_unroll_max_step": 2}):
            B[i] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((4,))):
        B[0] = T.float32(1)
        B[1] = T.float32(1)

    check_all(unroll_loops, before, after)


@pytest.mark.parametrize("value", [-1, "many", True])
def test_a_pragma_that_is_no_number(value):
    @T.prim_func
    def func(B: T.Buffer((4,))):
        for i in T.serial(2, annotations={"pragma_auto_unroll_max_step": value}):
            B[i] = T.float32(1)

    with pytest.raises(BadAnnotation, match="the annotation pragma_auto_unroll_max_step is"):
        auto_unroll(func)
