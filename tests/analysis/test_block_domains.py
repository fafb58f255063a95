"""check_domains: a block's axes stay inside the domains it declares, or the build shows the first that does not."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.analysis.block_domains import AxisLeavesDomain, check_domains
from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import AxisOutsideDomain
from loopwright.script import tir as T


@T.prim_func
def shifted(A: T.Buffer((16,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i + 1)
            A[vi] = T.float32(0)


@T.prim_func
def tail(A: T.Buffer((12,), "float32")):
    for i, j in T.grid(3, 4):
        with T.block("A"):
            vi = T.axis.spatial(10, i * 4 + j)
            A[vi] = T.float32(0)


@T.prim_func
def guarded(A: T.Buffer((10,), "float32")):
    for i, j in T.grid(3, 4):
        with T.block("A"):
            vi = T.axis.spatial(10, i * 4 + j)
            T.where(i * 4 + j < 10)
            A[vi] = T.float32(0)


@T.prim_func
def negative(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial((2, 8), i)
            A[vi] = T.float32(0)


@T.prim_func
def short_reduction(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def symbolic(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n + 1):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            if vi < n:
                A[vi] = T.float32(0)


@T.prim_func
def of_data(A: T.Buffer((8,), "float32"), K: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, K[i])
            A[vi] = T.float32(0)


def test_a_binding_that_runs_past_the_domain_is_refused_at_build():
    with pytest.raises(AxisLeavesDomain, match=r'block "A" runs with vi = 8, outside its domain 0 to 7 at i = 7') as e:
        loopwright.build(shifted)
    assert e.value.fields["iteration"] == {"i": 7}
    assert "vi is bound to i + 1" in str(e.value)
    with pytest.raises(AxisOutsideDomain, match="vi=8"):
        evaluate(shifted, np.zeros(16, "float32"))


def test_the_witness_is_the_first_iteration():
    with pytest.raises(AxisLeavesDomain, match=r"vi = 10, outside its domain 0 to 9 at i = 2, j = 2"):
        check_domains(tail)
    with pytest.raises(AxisLeavesDomain, match=r"vi = 0, outside its domain 2 to 7 at i = 0"):
        check_domains(negative)


def test_conditions_and_reductions_are_understood():
    check_domains(guarded)
    check_domains(short_reduction)


def test_symbolic_sizes():
    with pytest.raises(AxisLeavesDomain, match=r"vi = 0, outside its domain without any value at n = 0, i = 0"):
        check_domains(symbolic)


def test_what_depends_on_data_is_left_to_the_evaluator():
    check_domains(of_data)
    with pytest.raises(AxisOutsideDomain, match="vi=9"):
        evaluate(of_data, np.zeros(8, "float32"), np.full(8, 9, "int32"))
