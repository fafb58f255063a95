"""loop_carried: whether two iterations of a loop reach one cell; what isl says is what trying every iteration says."""

from __future__ import annotations

import random

import pytest

from loopwright.analysis.loop_carried import Loop, _Query, carries
from loopwright.ir import And, Expr, Max, Min, Not, Or, Var, const
from tests.campaign import programs


def random_expr(rnd: random.Random, variables: list[Var], depth: int) -> Expr:
    if depth == 0 or rnd.random() < 0.2:
        return rnd.choice(variables) if rnd.random() < 0.8 else const(rnd.randint(-3, 9))
    a = random_expr(rnd, variables, depth - 1)
    kind = rnd.randrange(8)
    if kind == 0:
        return a * rnd.choice([1, 2, 3, 4, 8])
    if kind == 1:
        return a // rnd.choice([2, 3, 4])
    if kind == 2:
        return a % rnd.choice([2, 3, 4, 8])
    if kind == 3:
        return a.astype("int64").astype("int32")
    b = random_expr(rnd, variables, depth - 1)
    return [lambda: a + b, lambda: a - b, lambda: Min(a, b), lambda: Max(a, b)][kind - 4]()


def random_condition(rnd: random.Random, variables: list[Var]) -> Expr:
    first = random_expr(rnd, variables, 2) < random_expr(rnd, variables, 1)
    other = random_expr(rnd, variables, 1) >= rnd.randint(-2, 6)
    return rnd.choice([first, Not(first), And(first, other), Or(first, other), const(True), const(False)])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(programs(150, 1500)))
def test_isl_and_trying_agree(seed):
    rnd = random.Random(seed)
    variables = [Var(f"i{k}") for k in range(rnd.randint(1, 3))]
    loops = [Loop(var, const(rnd.choice([0, 0, 2])), const(rnd.randint(2, 5))) for var in variables]
    values = [random_expr(rnd, variables, 3) for _ in range(rnd.randint(1, 2))]
    conditions = [random_condition(rnd, variables) for _ in range(rnd.randint(0, 2))]
    query = _Query(loops, rnd.randrange(len(loops)), values, conditions)
    tried = query.by_trying()
    assert tried is not None
    assert query.by_isl() is tried


def test_arithmetic_that_wraps_is_no_matter_of_sums():
    i = Var("i", "uint8")
    twice = (i * const(2, "uint8")).astype("int32")  # of 0 and of 128 it is 0
    assert carries([Loop(i, const(0, "uint8"), const(200, "uint8"))], 0, [twice], [])
    assert not carries([Loop(i, const(0, "uint8"), const(200, "uint8"))], 0, [i.astype("int32") * 2], [])
