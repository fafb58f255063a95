"""Calls out of a program in the evaluator: registered functions and C functions."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.evaluator.foreign_calls import UnknownSymbol, UnusableResult
from loopwright.ir import (
    Block,
    BlockRealize,
    BufferStore,
    Call,
    Evaluate,
    Op,
    PrimFunc,
    SeqStmt,
    StringImm,
    Var,
    const,
    decl_buffer,
    intrinsics,
)
from loopwright.runtime.registry import UnknownGlobalFunction, register_func
from loopwright.script import tir as T

_SEEN: list[object] = []


@pytest.fixture(scope="module", autouse=True)
def functions():
    def negate(a, b):
        b.copyfrom(-a.numpy())

    register_func("test.foreign.negate", negate, override=True)
    register_func("test.foreign.look", lambda *args: _SEEN.extend(args), override=True)
    register_func("test.foreign.give", lambda what: {0: 300, 1: 2.5, 2: True, 3: None}.get(what, "text"), override=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "float16", "bfloat16"])
def test_arrays_share_the_memory_of_the_program(dtype):
    A, B, C = [decl_buffer((2, 3), dtype, name=name) for name in "ABC"]
    calls = [intrinsics.call_packed("test.foreign.negate", A, C), intrinsics.call_packed("test.foreign.negate", C, B)]
    body = Block((), (), (), "root", SeqStmt(tuple(Evaluate(call) for call in calls)), alloc_buffers=(C,))
    number = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    a, b = np.arange(6).reshape(2, 3).astype(number), np.zeros((2, 3), number)
    evaluate(PrimFunc([A, B], BlockRealize((), True, body)), a, b)
    np.testing.assert_array_equal(a, b)


def test_what_a_call_wrote_has_a_value():
    @T.prim_func
    def main(A: T.Buffer((4,)), B: T.Buffer((4,))):
        with T.block("root"):
            C = T.alloc_buffer((4,))
            T.evaluate(T.call_packed("test.foreign.negate", A, C))
            for i in range(4):
                B[i] = C[i] * T.float32(2)

    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    evaluate(main, a, b)
    np.testing.assert_array_equal(b, a * -2)


def test_offsets_and_strides():
    data = decl_buffer((3, 4), name="A")
    column = decl_buffer((3,), name="column", data=data.data, strides=[4], elem_offset=1)
    _SEEN.clear()
    look = PrimFunc([data], Evaluate(intrinsics.call_packed("test.foreign.look", column)))
    evaluate(look, np.arange(12, dtype="float32").reshape(3, 4))
    assert _SEEN[0].numpy().tolist() == [1, 5, 9]
    _SEEN.clear()


def test_scalars_and_texts():
    _SEEN.clear()
    n, x = Var("n", "int64"), Var("x", "float32")
    call = intrinsics.call_packed("test.foreign.look", n, x, const(True), "text", const(-3, "int8"))
    evaluate(PrimFunc([n, x], Evaluate(call)), 1 << 40, 0.5)
    assert _SEEN == [1 << 40, 0.5, True, "text", -3]


@pytest.mark.parametrize(
    ("what", "dtype", "expected"),
    [(0, "int32", 300), (0, "int8", 44), (0, "float32", 300.0), (1, "float32", 2.5), (2, "int32", 1), (3, "int32", 0)],
)
def test_results(what, dtype, expected):
    B = decl_buffer((1,), dtype, name="B")
    call = Call(dtype, Op.get("tir.call_packed"), (StringImm("test.foreign.give"), const(what)))
    b = np.full(1, 9, dtype)
    evaluate(PrimFunc([B], BufferStore(B, call, [0])), b)
    assert b[0] == expected


def test_refusals():
    B = decl_buffer((1,), "int32", name="B")
    b = np.zeros(1, "int32")
    with pytest.raises(UnusableResult, match=r"'test\.foreign\.give' returned str 'text', where an int32 is needed"):
        evaluate(PrimFunc([B], BufferStore(B, intrinsics.call_packed("test.foreign.give", 7), [0])), b)
    with pytest.raises(UnusableResult, match=r"returned float 2\.5"):
        evaluate(PrimFunc([B], BufferStore(B, intrinsics.call_packed("test.foreign.give", 1), [0])), b)
    with pytest.raises(UnknownGlobalFunction, match=r"no function is registered as 'test\.foreign\.nobody'"):
        evaluate(PrimFunc([B], Evaluate(intrinsics.call_packed("test.foreign.nobody"))), b)
    with pytest.raises(UnknownSymbol, match=r"no library in this process has a function 'lw_no_such_function'"):
        evaluate(PrimFunc([B], Evaluate(intrinsics.call_extern("int32", "lw_no_such_function"))), b)


def test_an_exception_of_the_function_arrives():
    def fail():
        raise KeyError("mine")

    register_func("test.foreign.fail", fail, override=True)
    with pytest.raises(KeyError, match="mine"):
        evaluate(PrimFunc([], Evaluate(intrinsics.call_packed("test.foreign.fail"))))


def test_c_functions():
    A, B = decl_buffer((4,), name="A"), decl_buffer((4,), name="B")
    steps = [
        Evaluate(intrinsics.call_extern("handle", "memcpy", B.data, A.data, const(16, "int64"))),
        BufferStore(B, intrinsics.call_pure_extern("float32", "fabsf", A[0]), [0]),
        BufferStore(B, intrinsics.call_extern("int32", "abs", const(-7)).astype("float32"), [1]),
        BufferStore(B, intrinsics.call_extern("int64", "strlen", "four").astype("float32"), [2]),
    ]
    a, b = np.array([-1.5, 2, 3, 4], "float32"), np.zeros(4, "float32")
    evaluate(PrimFunc([A, B], SeqStmt(tuple(steps))), a, b)
    assert b.tolist() == [1.5, 7, 4, 4]


def test_a_pointer_for_a_packed_function():
    A = decl_buffer((4,), name="A")
    _SEEN.clear()
    a = np.arange(4, dtype="float32")
    evaluate(PrimFunc([A], Evaluate(intrinsics.call_packed("test.foreign.look", A.data))), a)
    (address,) = _SEEN
    assert ctypes.cast(address, ctypes.POINTER(ctypes.c_float))[2] == 2.0
    _SEEN.clear()
