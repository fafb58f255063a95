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
from loopwright.transform.parts.inner_partition_points import decided_inside, has_serial_loop
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
