"""Narrow integers, unsigned integers and data of index type wrap around; simplify must not notice."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.arith import Analyzer
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Not,
    Select,
    Var,
    const,
)
from tests.arith.integers import table


def _exprs(dtype: str, leaves: tuple[Var, ...]) -> st.SearchStrategy[Expr]:
    low, high = (0, 255) if dtype == "uint8" else (-100, 100)
    numbers = st.one_of(st.integers(0 if low == 0 else -3, 5), st.sampled_from([low, high]))
    literals = numbers.map(lambda value: const(value, dtype))
    divisors = st.sampled_from([1, 2, 3, 8] + ([-1, -2] if low else [])).map(lambda value: const(value, dtype))

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        condition = st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([LT, LE, GT, GE, EQ, NE]), inner, inner)
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a - b, inner, inner),
            st.builds(lambda a, b: a * b, inner, inner),
            st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([FloorDiv, FloorMod, Div, Mod]), inner, divisors),
            st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([Min, Max]), inner, inner),
            st.builds(Select, st.one_of(condition, condition.map(Not)), inner, inner),
        )

    return st.recursive(st.one_of(st.sampled_from(leaves), literals), grow, max_leaves=7)


CASES = {
    dtype: (tuple([Var(name, dtype) for name in "ab"]), points)
    for dtype, points in {
        "int8": (-128, -127, -64, -1, 0, 1, 2, 63, 127),
        "uint8": (0, 1, 2, 127, 128, 254, 255),
        "int32": (-(2**31), -(2**31) + 1, -(2**30), -7, -1, 0, 1, 5, 2**30, 2**31 - 1),
        "int64": (-(2**63), -(2**62), -3, -1, 0, 1, 2, 2**62, 2**63 - 1),
    }.items()
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", CASES)
def test_simplify_keeps_every_bit(dtype: str) -> None:
    variables, values = CASES[dtype]
    where = list(itertools.product(values, repeat=2))

    @settings(max_examples=150, deadline=None)
    @given(_exprs(dtype, variables))
    def check(e: Expr) -> None:
        analyzer = Analyzer()
        analyzer.engine.data_vars.update(variables)  # as if they had been read from memory
        simple, bound = analyzer.simplify(e), analyzer.interval(e)
        before, after = table(e, variables, where, wraps=True), table(simple, variables, where, wraps=True)
        for point, value, other in zip(where, before, after, strict=True):
            if value is not None:
                assert value == other, (point, simple)
                assert bound[0] <= value <= bound[1]

    check()
