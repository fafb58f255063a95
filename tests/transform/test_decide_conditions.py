"""decide_conditions: some comparisons of a statement are decided, and what follows from that is folded."""

from __future__ import annotations

import pytest

from loopwright.ir import CompareExpr, PrimFunc, is_no_op, pre_order_visit
from loopwright.script import tir as T
from loopwright.transform.parts.decide_conditions import decide_conditions
from tests.transform.before_after import same_program


def first_comparison(func: PrimFunc) -> CompareExpr:
    found: list[CompareExpr] = []
    pre_order_visit(func.body, lambda node: found.append(node) if isinstance(node, CompareExpr) else None)
    return found[0]


@T.prim_func
def both(A: T.Buffer(8), B: T.Buffer(8), n: T.int32, m: T.int32):
    for i in range(8):
        if i < n and i < m:
            B[i] = A[i]


@T.prim_func
def value(A: T.Buffer(8), B: T.Buffer(8), n: T.int32):
    for i in range(8):
        B[i] = T.if_then_else(i < n, A[i], T.float32(0))


@T.prim_func
def either(A: T.Buffer(8), B: T.Buffer(8), n: T.int32, m: T.int32):
    for i in range(8):
        if i < n or not (i < m):
            B[i] = A[i]
        else:
            B[i] = T.float32(2)


def test_a_comparison_that_holds():
    @T.prim_func
    def one(A: T.Buffer(8), B: T.Buffer(8), n: T.int32, m: T.int32):
        for i in range(8):
            if i < m:
                B[i] = A[i]

    @T.prim_func
    def chosen(A: T.Buffer(8), B: T.Buffer(8), n: T.int32):
        for i in range(8):
            B[i] = A[i]

    for before, after in ((both, one), (value, chosen)):
        got = decide_conditions(before.body, {first_comparison(before): True})
        same_program(before.with_(body=got), after)


def test_a_comparison_that_fails():
    @T.prim_func
    def zeros(A: T.Buffer(8), B: T.Buffer(8), n: T.int32):
        for i in range(8):
            B[i] = T.float32(0)

    @T.prim_func
    def nothing(A: T.Buffer(8), B: T.Buffer(8), n: T.int32, m: T.int32):
        T.evaluate(0)

    @T.prim_func
    def other(A: T.Buffer(8), B: T.Buffer(8), n: T.int32, m: T.int32):
        for i in range(8):
            if not (i < m):
                B[i] = A[i]
            else:
                B[i] = T.float32(2)

    for before, after in ((value, zeros), (both, nothing), (either, other)):
        got = decide_conditions(before.body, {first_comparison(before): False})
        same_program(before.with_(body=got), after)


@pytest.mark.parametrize("func", [value, either])
def test_where_nothing_is_decided_nothing_changes(func):
    assert decide_conditions(func.body, {}) is func.body
    assert decide_conditions(func.body, {first_comparison(both): True}) is func.body  # of another program


def test_what_changes_no_integer_is_not_done():
    @T.prim_func
    def sums(A: T.Buffer(8, "int8"), B: T.Buffer(8, "int8"), n: T.int32):
        for i in range(8):
            B[i] = B[i] + T.if_then_else(i < n, A[i], T.int8(0))

    @T.prim_func
    def extrema(A: T.Buffer(8, "uint8"), B: T.Buffer(8, "uint8"), n: T.int32):
        for i in range(8):
            B[i] = T.max(B[i], T.if_then_else(i < n, A[i], T.uint8(0)))

    @T.prim_func
    def more(A: T.Buffer(8, "int32"), B: T.Buffer(8, "int32"), n: T.int32):
        for i in range(8):
            B[i] = B[i] + T.if_then_else(i < n, A[i], 1)

    for func, is_nothing in ((sums, True), (extrema, True), (more, False)):
        assert is_no_op(decide_conditions(func.body, {first_comparison(func): False})) == is_nothing


def test_what_changes_no_bit_is_not_done():
    """A member that is none: -0 added, -inf in a maximum, a factor of 1. 0 added changes -0, and stays."""

    def updated(combine, unit):
        @T.prim_func
        def func(A: T.Buffer(8), B: T.Buffer(8), n: T.int32):
            for i in range(8):
                B[i] = combine(B[i], T.if_then_else(i < n, A[i], unit))

        return decide_conditions(func.body, {first_comparison(func): False})

    for combine, unit in (
        (lambda a, b: a + b, T.float32(-0.0)),
        (lambda a, b: a * b, T.float32(1)),
        (T.max, T.float32("-inf")),
        (T.min, T.float32("inf")),
    ):
        assert is_no_op(updated(combine, unit))
    for combine, unit in (
        (lambda a, b: a + b, T.float32(0.0)),
        (lambda a, b: a * b, T.float32(-1)),
        (T.max, T.float32("inf")),
        (T.min, T.float32(0)),
        (lambda a, b: a + b, T.float32("nan")),
    ):
        assert not is_no_op(updated(combine, unit))
