"""Values of the wrong kind are refused when a program is verified, not by LLVM."""

from __future__ import annotations

import warnings

import pytest

import loopwright as lw
from loopwright.ir.verifier import NotWellFormed, verify
from loopwright.script import from_source

HEAD = '@T.prim_func\ndef main(A: T.Buffer((4,), "float32"), p: T.handle, n: T.int32):\n    '
WRONG = {
    "A[0] = T.Shuffle([A[0]], [5])": "a Shuffle picks element 5 of 1",
    "A[0] = T.Shuffle([A[0]], [-1])": "a Shuffle picks element -1 of 1",
    "A[0] = T.Shuffle([A[0], A[1]], [n])": "a Shuffle picks element n",
    "A[0:2] = T.Shuffle([A[0:2], A[2]], [2, 5])": "a Shuffle picks element 5 of 3",
    "A[0:2] = T.Shuffle([A[0:2], T.Broadcast(1, 2)], [2, 1])": "a Shuffle joins float32 and int32",
    "A[0:2] = T.Shuffle([A[0:2]], [])": "a Shuffle picks nothing",
    'A[0] = T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 4, 1)': "a handle is made a float32",
    "A[0] = p": "a handle is made a float32",
    'A[0] = T.Cast("float32", p)': "a handle is made a float32",
    'A[0] = T.Cast("float32", T.isnullptr(n))': "isnullptr is asked about a int32",
    'A[0] = T.call_intrin("float32", "tir.sin", p)': "sin is given a handle",
    'A[0] = T.call_intrin("float32", "tir.bitwise_and", A[0], A[1])': "bitwise_and is given a float32",
    'A[0] = T.call_intrin("int32", "tir.clz", A[0])': "clz is given a float32",
    'A[0] = T.call_intrin("float32", "tir.fma", A[0], n, n)': "fma of type float32 is given a int32",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_operands(line):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = from_source(HEAD + line)
    with pytest.raises(NotWellFormed, match=WRONG[line]):
        verify(program)
    with pytest.raises(NotWellFormed, match=WRONG[line]):
        lw.build(program)


@pytest.mark.parametrize(
    "line",
    [
        "A[0:2] = T.Shuffle([A[0:2], A[2]], [2, 0])",
        "A[0] = T.Shuffle([A[0], A[1]], [1])",
        'A[0] = T.Cast("float32", T.isnullptr(p))',
        "A[0] = T.fma(A[0], A[1], A[2])",
    ],
)
def test_right_operands(line):
    lw.build(from_source(HEAD + line))
