"""A loop is not cut for a guard that a loop inside decides as well, when that copies the work of others."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.build import build
from loopwright.evaluator import evaluate
from loopwright.ir import For, ForKind, PrimFunc
from loopwright.script import tir as T
from loopwright.transform import partition_loops
from loopwright.transform.parts.guards import find_guards
from loopwright.transform.parts.inner_partition_points import (
    decided_cheaply_inside,
    decided_inside,
    has_serial_loop,
    statements_run,
)
from loopwright.transform.parts.size_facts import size_facts
from tests.transform.before_after import same_at_every_stage


@T.prim_func
def beside_others(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    C = T.match_buffer(c, (32,))
    for i in range((n + 7) // 8):
        for k in range(32):
            C[k] = C[k] + T.float32(1)
        for j in range(8):
            if i * 8 + j < n:
                B[i * 8 + j] = A[i * 8 + j]


@T.prim_func
def alone(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range((n + 7) // 8):
        for j in range(8):
            if i * 8 + j < n:
                B[i * 8 + j] = A[i * 8 + j]


def decided(func: PrimFunc, kind: ForKind = ForKind.SERIAL) -> int:
    loop = func.body
    assert isinstance(loop, For)
    loop = loop.with_(kind=kind)
    return len(decided_inside(loop, [guard.node for guard in find_guards(loop, size_facts(func))]))


def test_which_guards_are_left_to_loops_inside() -> None:
    assert decided(beside_others) == 1
    assert decided(alone) == 0
    assert decided(alone, ForKind.PARALLEL) == 1  # else all of its body would be there twice


def test_the_work_of_others_is_written_once() -> None:
    text = partition_loops(beside_others).script()
    assert text.count("for k in range(32)") == 1 and "if i * 8" not in text
    text = partition_loops(alone).script()
    assert text.count("B[") == 2 and "for i, j in T.grid(n // 8, 8)" in text


@pytest.mark.one_in(2)
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31])
def test_both_are_right(n: int) -> None:
    a = np.arange(n, dtype="float32")
    for func in (beside_others, alone):
        for run in (lambda *given, func=func: evaluate(partition_loops(func), *given), build(func)):
            b, c = np.zeros(n, "float32"), np.zeros(32, "float32")
            run(a, b, *([c] if func is beside_others else []))
            assert np.array_equal(a, b)
            assert func is alone or np.all(c == (n + 7) // 8)
        same_at_every_stage(func)


def test_loops_that_count() -> None:
    assert has_serial_loop(alone.body)

    @T.prim_func
    def lanes(B: T.Buffer((8,))):
        for i in T.unroll(2):
            for j in T.vectorized(4):
                B[i * 4 + j] = T.float32(0)

    assert not has_serial_loop(lanes.body)


def bands(rows: int = 5, sums: int = 40) -> PrimFunc:
    """A band of a padded image at a time, each followed by `sums` times as many steps as it has elements."""

    @T.prim_func
    def func(A: T.Buffer((12, 4)), C: T.Buffer((4,))):
        P = T.decl_buffer((rows * 4,))
        for i in range(4):
            for y in range(rows):
                for x in range(4):
                    P[y * 4 + x] = T.if_then_else(1 <= i * 3 + y and i * 3 + y < 13, A[i * 3 + y - 1, x], T.float32(0))
            for k in range(rows * sums):
                for x in range(4):
                    C[x] = C[x] + P[k % rows * 4 + x]

    return func


def cheap(func: PrimFunc) -> int:
    loop = next_loop(func)
    return len(decided_cheaply_inside(loop, [guard.node for guard in find_guards(loop, size_facts(func))]))


def next_loop(func: PrimFunc) -> For:
    statement = func.body
    while not isinstance(statement, For):
        statement = statement.body  # type: ignore[attr-defined]
    return statement


def test_small_copies_decide_their_own_borders() -> None:
    assert statements_run(next_loop(bands()).body) == 20 + 800
    assert cheap(bands()) == 2
    assert cheap(bands(sums=6)) == 0  # the copy is a seventh of the work
    text = partition_loops(bands()).script()
    assert text.count("for k, x in T.grid(200, 4)") == 1 and "if_then_else" not in text
    text = partition_loops(bands(sums=6)).script()
    assert text.count("for k, x in T.grid(30, 4)") == 3 and "if_then_else" not in text


def test_what_lanes_decide_is_cut_outside() -> None:
    @T.prim_func
    def func(A: T.Buffer((12,)), C: T.Buffer((4,))):
        P = T.decl_buffer((4,))
        for i in range(4):
            for j in range(1):
                for x in T.vectorized(4):
                    P[x] = T.if_then_else(1 <= i * 3 + x + j and i * 3 + x + j < 13, A[i * 3 + x + j - 1], T.float32(0))
            for k in range(100):
                C[k % 4] = C[k % 4] + P[k % 4]

    assert cheap(func) == 0


def test_a_guard_that_other_statements_ask_too_is_cut_outside() -> None:
    @T.prim_func
    def func(A: T.Buffer((12,)), C: T.Buffer((4,))):
        P = T.decl_buffer((4,))
        for i in range(4):
            for j in range(2):
                P[j] = T.if_then_else(i * 3 + j < 7, A[i * 3 + j], T.float32(0))
            for j in range(2):
                for k in range(100):
                    C[j] = C[j] + T.if_then_else(i * 3 + j < 7, A[i * 3 + j + k % 3], P[j])

    assert cheap(func) == 1  # comparisons count one by one: the second one stays a point


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_bands_are_right(rows: int) -> None:
    func = bands(rows)
    a, plain, got, built = (np.zeros(shape, "float32") for shape in ((12, 4), (4,), (4,), (4,)))
    a[:] = np.arange(48).reshape(12, 4)
    evaluate(func, a, plain)
    evaluate(partition_loops(func), a, got)
    build(func)(a, built)
    assert np.array_equal(plain, got) and np.array_equal(plain, built)
