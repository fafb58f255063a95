"""double_buffer: while one half of a buffer is used, the other half is filled."""

from __future__ import annotations

import pytest

from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import BadAnnotation, PassContext, PipelineBreaksDependence, double_buffer, lower, simplify
from tests.transform.before_after import PLAIN, check_all, lowered, same_at_every_stage, same_native, same_results


def test_the_next_iteration_is_filled_in_advance():
    @T.prim_func
    def before(A: T.Buffer((8, 4)), C: T.Buffer((8, 4))):
        for i in range(8):
            B = T.decl_buffer((4,))
            with T.attr(B.data, "double_buffer_scope", 1):
                for j in range(4):
                    B[j] = A[i, j]
            for j in range(4):
                C[i, j] = B[3 - j] + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8, 4)), C: T.Buffer((8, 4))):
        B = T.decl_buffer((2, 4))
        for j in range(4):
            B[0, j] = A[0, j]
        for i in range(7):
            for j in range(4):
                B[(i + 1) % 2, j] = A[i + 1, j]
            for j in range(4):
                C[i, j] = B[i % 2, 3 - j] + T.float32(1)
        for j in range(4):
            C[7, j] = B[1, 3 - j] + T.float32(1)

    check_all(double_buffer, before, after)


SOURCE = """
@T.prim_func
def main(A: T.Buffer(({n}, 8)), C: T.Buffer(({n}, 8))):
    for i in range({n}):
        with T.block("o"):
            vi = T.axis.spatial({n}, i)
            B = T.alloc_buffer((8,))
            for k in range(8):
                with T.block("B"):
                    w = T.axis.spatial(8, k)
                    T.block_attr({{"double_buffer_scope": {which}}})
                    B[w] = A[vi, w]
            for k in range(8):
                with T.block("C"):
                    w = T.axis.spatial(8, k)
                    C[vi, w] = B[7 - w]
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [1, 2, 3, 16])
def test_a_block_names_the_buffer_it_writes(n):
    func = from_source(SOURCE.format(n=n, which=0))
    got = lowered(func, double_buffer)
    assert "double_buffer_scope" not in got.script()
    assert ("(2, 8)" in got.script()) == (n > 1)
    same_results(func, got)
    same_at_every_stage(func)
    same_native(func, got)


@pytest.mark.parametrize("n", [2, 3, 8, 9])
def test_split_loop_makes_the_halves_known(n):
    func = from_source(SOURCE.format(n=n, which=0))
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": 2}}):
        got = lowered(func, double_buffer, simplify)
    assert "%" not in got.script()
    same_results(func, got)
    same_native(func, got)


@pytest.mark.parametrize("split", [1, 2])
def test_other_annotations_of_the_loop_stay(split):
    @T.prim_func
    def before(A: T.Buffer((9, 4)), C: T.Buffer((9, 4))):
        for i in T.serial(9, annotations={"for_a_later_pass": 7}):
            B = T.decl_buffer((4,))
            with T.attr(B.data, "double_buffer_scope", 1):
                for j in range(4):
                    B[j] = A[i, j]
            for j in range(4):
                C[i, j] = B[3 - j] + T.float32(1)

    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split}}):
        got = lowered(before, double_buffer)
    assert got.script().count("for_a_later_pass") == 1
    same_results(before, got)


def test_no_loop_to_overlap_leaves_the_program():
    @T.prim_func
    def before(A: T.Buffer((4,)), C: T.Buffer((4,))):
        B = T.decl_buffer((4,))
        with T.attr(B.data, "double_buffer_scope", 1):
            for j in range(4):
                B[j] = A[j]
        for j in range(4):
            C[j] = B[3 - j]

    @T.prim_func
    def after(A: T.Buffer((4,)), C: T.Buffer((4,))):
        B = T.decl_buffer((4,))
        for j in range(4):
            B[j] = A[j]
        for j in range(4):
            C[j] = B[3 - j]

    check_all(double_buffer, before, after)


def test_a_filling_that_needs_the_last_result_is_refused():
    @T.prim_func
    def func(A: T.Buffer((9, 4))):
        for i in range(8):
            B = T.decl_buffer((4,))
            with T.attr(B.data, "double_buffer_scope", 1):
                for j in range(4):
                    B[j] = A[i, j]
            for j in range(4):
                A[i + 1, j] = B[3 - j]

    text = r"statement 0 needs A as statement 1 left it \(1 iteration later\)"
    with pytest.raises(PipelineBreaksDependence, match=text):
        double_buffer(func)


def test_a_position_that_is_none():
    with pytest.raises(BadAnnotation, match="the annotation double_buffer_scope is 3"):
        lower(from_source(SOURCE.format(n=4, which=3)), PLAIN)
