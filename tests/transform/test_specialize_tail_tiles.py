"""A tile in registers has a constant length: partition_loops writes what is done to it once for each."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.arith import Analyzer
from loopwright.build import build
from loopwright.evaluator import evaluate
from loopwright.ir import For, IntImm, PrimFunc, assert_structural_equal, pre_order_visit
from loopwright.ir.verifier import verify
from loopwright.script import tir as T
from loopwright.transform import partition_loops
from loopwright.transform.parts.guards import Conditions
from loopwright.transform.parts.specialize_tail_tiles import specialize_tail_tiles
from tests.transform.before_after import PLAIN, same_at_every_stage


@T.prim_func
def sums(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (n,))
    for i in range((n + 3) // 4):
        S = T.decl_buffer((4,), scope="local")
        for j in T.unroll(4):
            if i * 4 + j < n:
                S[j] = T.float32(0)
        for k in range(8):
            for j in T.unroll(4):
                if i * 4 + j < n:
                    S[j] = S[j] + A[i * 4 + j, k]
        for j in T.unroll(4):
            if i * 4 + j < n:
                B[i * 4 + j] = S[j]


def lengths(func: PrimFunc) -> list[object]:
    """How long the unrolled loops of the function are."""
    found: list[object] = []

    def look(node: object) -> None:
        if isinstance(node, For) and node.kind.name == "UNROLLED":
            found.append(node.extent)

    pre_order_visit(func.body, look)
    return found


def test_each_length_has_its_own_kernel() -> None:
    with PLAIN:
        got = partition_loops(sums)
    verify(got)
    assert all(isinstance(length, IntImm) for length in lengths(got))
    # Whole tiles, then a last one of 2 or 3; that of 1 has no loops at all.
    assert sorted({int(length) for length in lengths(got)}) == [2, 3, 4]
    text = got.script()
    assert text.count("for k in range(8)") == 4 and "if i * 4 + j < n" not in text
    assert "n - i * 4 - n // 4 * 4 == 1" in text and "else:" in text


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 30])
def test_every_length_is_right(n: int) -> None:
    a = np.random.default_rng(n).integers(0, 9, (n, 8)).astype("float32")
    one, other = np.full(n, -1, "float32"), np.full(n, -1, "float32")
    evaluate(partition_loops(sums), a, one)
    build(sums)(a, other)
    assert np.array_equal(one, a.sum(1)) and np.array_equal(other, a.sum(1))
    same_at_every_stage(sums)


def test_memory_has_addresses() -> None:
    """A loop over memory may be of any length, so nothing is written more than twice."""

    @T.prim_func
    def func(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range((n + 3) // 4):
            S = T.decl_buffer((4,))
            for j in T.unroll(4):
                if i * 4 + j < n:
                    S[j] = A[i * 4 + j]
            for j in T.unroll(4):
                if i * 4 + j < n:
                    B[i * 4 + j] = S[j]

    assert partition_loops(func).script().count("B[") == 2
    same_at_every_stage(func)


def test_only_what_works_on_the_tile_is_written_again() -> None:
    @T.prim_func
    def func(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 8))
        B = T.match_buffer(b, (n,))
        C = T.match_buffer(c, (64,))
        for i in range((n + 3) // 4):
            for k in range(64):
                C[k] = C[k] + T.float32(1)
            S = T.decl_buffer((4,), scope="local")
            for j in T.unroll(4):
                if i * 4 + j < n:
                    S[j] = A[i * 4 + j, 0]
            for j in T.unroll(4):
                if i * 4 + j < n:
                    B[i * 4 + j] = S[j]

    text = partition_loops(func).script()
    assert text.count("for k in range(64)") == 2  # for whole tiles, and for the last one
    same_at_every_stage(func)


def test_a_length_that_may_be_anything_has_a_case_for_none_and_for_all() -> None:
    @T.prim_func
    def func(B: T.Buffer((4,)), n: T.int32):
        S = T.decl_buffer((4,), scope="local")
        for j in T.unroll(4):
            if j < n:
                S[j] = T.float32(1)
        for j in T.unroll(4):
            if j < n:
                B[j] = S[j]

    got = func.with_(body=specialize_tail_tiles(func.body, Analyzer(), Conditions()))
    text = got.script()
    assert "if n >= 4" in text and "elif n == 3" in text and "if j < 0" in text
    for n in range(-1, 7):
        b = np.zeros(4, "float32")
        evaluate(got, b, n)
        assert b.tolist() == [1.0] * max(0, min(n, 4)) + [0.0] * (4 - max(0, min(n, 4)))


def test_nothing_to_decide_is_left_alone() -> None:
    @T.prim_func
    def func(B: T.Buffer((4,))):
        S = T.decl_buffer((4,), scope="local")
        for j in T.unroll(4):
            S[j] = T.float32(1)
        for j in T.unroll(4):
            B[j] = S[j]

    assert specialize_tail_tiles(func.body, Analyzer(), Conditions()) is func.body
    assert_structural_equal(partition_loops(func), func)
