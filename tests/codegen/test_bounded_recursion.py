"""Functions that call themselves without end raise an error; those that end compute as ever."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import loopwright as lw
from loopwright.evaluator import evaluate
from loopwright.runtime.call_errors import RecursionTooDeep
from loopwright.script import from_source

ITSELF = """
@I.ir_module
class Module:
    @T.prim_func
    def main(n: T.int32) -> T.int32:
        if n <= 1:
            T.ret(1)
        T.ret(n + Module.main(n - 1) * 2)
"""
EACH_OTHER = """
@I.ir_module
class Module:
    @T.prim_func
    def main(n: T.int32, A: T.Buffer((4,), "int32")) -> T.int32:
        T.ret(Module.even(n, A.data))
    @T.prim_func
    def even(n: T.int32, A: T.Buffer((4,), "int32")) -> T.int32:
        A[0] = A[0] + 1
        if n == 0:
            T.ret(1)
        T.ret(Module.odd(n - 1, A.data))
    @T.prim_func(private=True)
    def odd(n: T.int32, A: T.Buffer((4,), "int32")) -> T.int32:
        if n == 0:
            T.ret(0)
        T.ret(Module.even(n - 1, A.data))
"""
LARGE = """
@I.ir_module
class Module:
    @T.prim_func
    def main(n: T.int32, A: T.Buffer((4000,), "float32")):
        B = T.alloc_buffer((4000,), "float32")
        for i in range(4000):
            B[i] = A[i] + T.float32(1)
        if n > 0:
            Module.main(n - 1, A.data)
        for i in range(4000):
            A[i] = A[i] + B[i]
"""
TARGETS = ["llvm", pytest.param("c", marks=pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"))]


@pytest.mark.parametrize("target", TARGETS)
def test_itself(target):
    module = from_source(ITSELF)
    kernel = lw.build(module, target=target)["main"]
    assert kernel(1) == 1
    for n in (12, 4000):
        assert kernel(n) == evaluate(module, n)
    for n in (5000, 100_000_000):
        with pytest.raises(RecursionTooDeep, match="main: calls itself more than 4096 calls deep"):
            kernel(n)
    assert kernel(4) == evaluate(module, 4)  # an error leaves nothing behind


@pytest.mark.parametrize("target", TARGETS)
def test_each_other(target):
    kernel = lw.build(from_source(EACH_OTHER), target=target)
    counts = np.zeros(4, "int32")
    assert kernel["main"](10, counts) == 1
    assert kernel["even"](11, counts) == 0
    assert counts[0] == 12
    for name in ("main", "even", "odd"):
        with pytest.raises(RecursionTooDeep, match="calls itself more than 4096 calls deep"):
            kernel[name](2_000_000_000, counts)


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_on_the_stack_count(target):
    kernel = lw.build(from_source(LARGE), target=target)["main"]
    given = np.zeros(4000, "float32")
    kernel(3, given)
    expected = np.zeros(4000, "float32")
    evaluate(from_source(LARGE), 3, expected)
    np.testing.assert_array_equal(given, expected)
    with pytest.raises(RecursionTooDeep, match=r"main: calls itself more than 2\d\d calls deep"):
        kernel(1_000_000, given)


def test_the_evaluator_stops_too():
    with pytest.raises(RecursionError, match="nests too deeply"):
        evaluate(from_source(ITSELF), 100_000_000)


def test_a_module_without_recursion_is_left_alone():
    module = from_source(ITSELF.replace("Module.main(n - 1)", "n"))
    assert "depth" not in lw.build(module, target="c").get_source()
