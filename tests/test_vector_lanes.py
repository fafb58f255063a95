"""Vectorized loops written by hand: what is built computes in lockstep, as the evaluator does; the rest is refused."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import tir
from loopwright.analysis import check_program
from loopwright.analysis.races import LanesMayMeet, ParallelRace
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.runtime.description import UNPROVED
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.errors import NotProved, WouldRace
from loopwright.script import from_source
from tests.random_lanes import arguments, vector_program

pytestmark = pytest.mark.optimized

ARRAYS = ", ".join([f'{name}: T.Buffer((16,), "int32")' for name in "ABIS"])


def program(*lines: str) -> PrimFunc:
    text = "\n    ".join(lines)
    found = from_source(f"@T.prim_func\ndef main({ARRAYS}, n: T.int32):\n    {text}\n")
    assert isinstance(found, PrimFunc)
    return found


REFUSED = {
    "a guard by data": ("if S[0] > 0:", "    for i in T.vectorized(8):", "        B[(i + 1) % 8] = B[i] * 10"),
    "a guard by lane and data": ("for i in T.vectorized(8):", "    if S[i] > 0:", "        B[i] = B[(i + 1) % 8]"),
    "a load by data": ("for i in T.vectorized(8):", "    B[i] = B[I[i]] * 10"),
    "a store by data": ("for i in T.vectorized(8):", "    B[I[i]] = B[I[i]] + 1"),
    "a scatter, then a load": ("for i in T.vectorized(8):", "    B[I[i]] = A[i]", "    A[i + 8] = B[i]"),
    "a loop by data": ("for i in T.vectorized(8):", "    for k in range(S[i]):", "        B[(i + 1) % 8] = B[i] + k"),
    "a loop by lane": ("for i in T.vectorized(8):", "    for k in range(i % 3):", "        B[I[k]] = B[i] + k"),
    "a while": ("for i in T.vectorized(8):", "    while B[i] < 9:", "        B[I[i] % 8] = B[I[i] % 8] + 1"),
    "a let": ("for i in T.vectorized(8):", "    with T.LetStmt(B[I[i]]) as x:", "        B[i] = x"),
    "a product of lanes": ("for i in T.vectorized(8):", "    B[i * i % 8] = B[i] + 1"),
    "a scalar": ("for i in T.vectorized(8):", "    B[(i + n) % 8] = B[i] + 1"),
    "data that wraps": (
        "with T.LetStmt(S[0]) as x:", "    if x + 1 < x:", "        for i in T.vectorized(8):",
        "            B[(i + 1) % 8] = B[i] * 10",
    ),
    "two calls": (
        "for i in T.vectorized(8):",
        '    T.evaluate(T.call_packed("one", i))',
        '    T.evaluate(T.call_packed("two", i))',
    ),
}  # fmt: skip

BUILT = {
    "a guard by data": ("if S[0] > 0:", "    for i in T.vectorized(8):", "        B[i] = B[i] * 10"),
    "a guard by lane": ("for i in T.vectorized(8):", "    if A[i] > S[i]:", "        B[i] = A[15 - i]"),
    "a gather": ("for i in T.vectorized(8):", "    B[i] = A[I[i]]"),
    "a scatter": ("for i in T.vectorized(8):", "    B[I[i]] = A[i]"),  # the last lane wins
    "a guarded scatter": ("for i in T.vectorized(8):", "    if S[i] > 0:", "        B[I[i]] = A[i]"),
    "one cell": ("for i in T.vectorized(8):", "    B[3] = A[i]"),
    "cells in pairs": ("for i in T.vectorized(8):", "    B[i // 2] = A[i]"),
    "a loop by data": ("for i in T.vectorized(8):", "    for k in range(S[i]):", "        B[i] = B[i] + A[k]"),
    "a while": ("for i in T.vectorized(8):", "    while B[i] < 9:", "        B[i] = B[i] + 1 + S[i] * S[i]"),
    "a let": ("for i in T.vectorized(8):", "    with T.LetStmt(A[I[i]]) as x:", "        B[i] = x + x"),
    "loads ahead": ("for i in T.vectorized(8):", "    B[i] = B[i + 1] + B[i + 8]"),
    "memory of its own": (
        "for i in T.vectorized(8):", '    t = T.decl_buffer((4,), "int32")', "    t[I[i] % 4] = B[i]",
        "    B[i] = t[I[i] % 4] * 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_lanes_that_may_meet_are_refused(name):
    func = program(*REFUSED[name])
    with pytest.raises((LanesMayMeet, ParallelRace)):
        check_program(func)
    with pytest.raises((LanesMayMeet, ParallelRace)):
        lw.build(func)
    with pytest.raises((NotProved, WouldRace)):
        tir.Schedule(func)


def test_the_message_says_which_and_why():
    with pytest.raises(LanesMayMeet, match="the lanes of the vectorized loop i are not proved independent") as caught:
        lw.build(program(*REFUSED["a guard by data"]))
    assert "which cell of B the statement" in caught.value.why and "depends on data" in caught.value.why
    assert "make the loop i serial" in caught.value.hint


def test_who_gave_up_the_proof_gets_no_question():
    check_program(program(*REFUSED["a load by data"]).with_attr(UNPROVED, True))


def same_results(func: PrimFunc, calls: int = 6) -> None:
    for target in ("llvm", "c"):
        module = lw.build(func, target=target)
        for seed in range(calls):
            given = np.random.default_rng(seed)
            arrays = [given.integers(0, 8, 16).astype("int32") for _ in "ABI"]
            arrays.append(given.integers(-1, 3, 16).astype("int32"))
            copies = [array.copy() for array in arrays]
            evaluate(func, *arrays, 2)
            module(*copies, 2)
            for one, other in zip(arrays, copies, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", BUILT)
def test_lanes_that_keep_apart_are_built(name):
    func = program(*BUILT[name])
    tir.Schedule(func)
    same_results(func)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(60))
def test_random_loops_run_in_lockstep_or_are_refused(seed):
    func = from_source(vector_program(seed))
    try:
        module = lw.build(func)
    except (LanesMayMeet, ParallelRace):
        with pytest.raises((NotProved, WouldRace)):
            tir.Schedule(func)
        return
    tir.Schedule(func)
    for case in range(4):
        given = arguments(seed * 10 + case)
        copies = [item.copy() if isinstance(item, np.ndarray) else item for item in given]
        try:
            evaluate(func, *given)
        except LoopwrightError:  # an index by data that leads outside
            continue
        module(*copies)
        for one, other in zip(given[:-1], copies[:-1], strict=True):
            np.testing.assert_array_equal(one, other)
