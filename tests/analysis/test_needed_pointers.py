"""A pointer that is read or written through may not be null; one that is passed on, or asked about, may."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.evaluator import evaluate
from loopwright.runtime.call_errors import NullArgument
from loopwright.script import from_source

HEAD = """
@I.ir_module
class Module:
    @T.prim_func
    def main(p: T.handle("float32"), O: T.Buffer((4,), "float32")):
"""
READS = """
        A = T.Buffer((4,), "float32", data=p)
        for i in range(4):
            O[i] = A[i]
"""
WRITES = """
        A = T.Buffer((4,), "float32", data=p)
        for i in T.parallel(4):
            A[i] = O[i]
"""
BY_ANOTHER_NAME = """
        A = T.Buffer((4,), "float32", data=p)
        q: T.handle("float32") = T.address_of(A[1])
        B = T.Buffer((3,), "float32", data=q)
        O[0] = B[0]
"""
ASKS_FOR_ANOTHER = """
        A = T.Buffer((4,), "float32", data=p)
        if not T.isnullptr(O.data):
            O[0] = A[0]
"""
ASKS_THE_WRONG_WAY = """
        A = T.Buffer((4,), "float32", data=p)
        if T.isnullptr(p):
            O[0] = A[0]
"""
BY_A_CALL = """
        Module.f(p, O.data, 3)

    @T.prim_func(private=True)
    def f(A: T.Buffer((4,), "float32"), O: T.Buffer((4,), "float32"), n: T.int32):
        if n > 0:
            Module.g(A.data, O.data, n - 1)

    @T.prim_func(private=True)
    def g(q: T.handle("float32"), O: T.Buffer((4,), "float32"), n: T.int32):
        A = T.Buffer((4,), "float32", data=q)
        if n > 5:
            Module.f(q, O.data, n)
        O[n] = A[n]
"""
ASKS = """
        A = T.Buffer((4,), "float32", data=p)
        if not T.isnullptr(p):
            O[0] = A[0]
        else:
            O[0] = T.float32(5)
"""
ASKS_AND = """
        A = T.Buffer((4,), "float32", data=p)
        if not T.isnullptr(p) and A[0] > T.float32(0):
            O[0] = T.float32(1)
        else:
            O[0] = T.float32(5)
"""
LEAVES = """
        A = T.Buffer((4,), "float32", data=p)
        if T.isnullptr(p):
            O[0] = T.float32(5)
            T.ret(0)
        O[0] = A[0]
"""


def module(body: str):
    return from_source(HEAD + body)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "body", [READS, WRITES, BY_ANOTHER_NAME, ASKS_FOR_ANOTHER, ASKS_THE_WRONG_WAY, BY_A_CALL], ids=range(6)
)
def test_a_null_pointer_is_refused(body):
    message = "main: argument p .*is a null pointer"
    with pytest.raises(NullArgument, match=message):
        lw.build(module(body))["main"](None, np.zeros(4, "float32"))
    with pytest.raises(NullArgument, match=message):
        evaluate(module(body), None, np.zeros(4, "float32"))


@pytest.mark.parametrize("body", [ASKS, ASKS_AND, LEAVES], ids=range(3))
def test_a_null_pointer_that_is_asked_about(body):
    for run in (lw.build(module(body))["main"], lambda *args: evaluate(module(body), *args)):
        result = np.zeros(4, "float32")
        run(None, result)
        assert result[0] == 5


def test_a_null_pointer_that_is_passed_on():
    f = from_source("""
@T.prim_func
def main(p: T.handle, O: T.Buffer((4,), "int32")):
    O[0] = T.Cast("int32", T.isnullptr(p))
    T.evaluate(T.call_extern("int32", "free", p))
""")
    result = np.zeros(4, "int32")
    lw.build(f)(None, result)
    assert result[0] == 1
