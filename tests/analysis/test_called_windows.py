"""A function of a module is given at least the memory that its parameters take."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.analysis.windows import ParameterTooLarge
from loopwright.evaluator import evaluate
from loopwright.runtime.errors import LoopwrightError
from loopwright.script import from_source

TAKES = """
    @T.prim_func(private=True)
    def f(X: T.Buffer((100,), "float32")):
        for i in range(100):
            X[i] = T.float32(1)
"""
SEES = """
    @T.prim_func(private=True)
    def f(p: T.handle("float32")):
        X = T.Buffer((100,), "float32", data=p)
        for i in range(100):
            X[i] = T.float32(1)
"""
PASSES_ON = """
    @T.prim_func(private=True)
    def f(p: T.handle("float32")):
        Module.g(p)
    @T.prim_func(private=True)
    def g(X: T.Buffer((100,), "float32")):
        for i in range(100):
            X[i] = T.float32(1)
"""
CALLEES = [TAKES, SEES, PASSES_ON]


def module(size: object, call: str, callee: str):
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, ({size},), "float32")
        {call}
{callee}""")


@pytest.mark.parametrize("callee", CALLEES, ids=["takes", "sees", "passes on"])
@pytest.mark.parametrize(
    ("size", "call"),
    [
        (4, "Module.f(A.data)"),
        (99, "Module.f(A.data)"),
        ("n", "Module.f(A.data)"),
        (100, "Module.f(T.address_of(A[1]))"),
        (200, "for i in range(3):\n            Module.f(T.address_of(A[i * 60]))"),
        (200, "Module.f(A.access_ptr('rw', offset=150))"),
    ],
)
def test_less_memory_than_the_parameter_takes(size, call, callee):
    program = module(size, call, callee)
    with pytest.raises(ParameterTooLarge, match=r"[fg] is called with memory that its X does not fit into"):
        lw.build(program)
    with pytest.raises(LoopwrightError):
        evaluate(program, np.zeros(4 if size == "n" else size, "float32"))


@pytest.mark.parametrize("callee", CALLEES, ids=["takes", "sees", "passes on"])
@pytest.mark.parametrize(
    ("size", "call"),
    [
        (100, "Module.f(A.data)"),
        (200, "Module.f(A.data)"),
        (200, "for i in range(3):\n            Module.f(T.address_of(A[i * 50]))"),
        (200, "Module.f(A.access_ptr('rw', offset=50))"),
    ],
)
def test_enough_memory(size, call, callee):
    result = np.zeros(size, "float32")
    expected = np.zeros(size, "float32")
    lw.build(module(size, call, callee))["main"](result)
    evaluate(module(size, call, callee), expected)
    np.testing.assert_array_equal(result, expected)
    assert result.sum() >= 100


def test_an_open_size_that_is_asked_for():
    program = module("n", "if n >= 100:\n            Module.f(A.data)", TAKES)
    kernel = lw.build(program)["main"]
    for size, total in ((4, 0), (100, 100), (120, 100)):
        given = np.zeros(size, "float32")
        kernel(given)
        assert given.sum() == total
