"""The plain C entry, called through ctypes in this process: every kind of argument, sizes, offsets and results."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

import loopwright
from loopwright import ir
from loopwright.codegen.llvm.load_object import load
from loopwright.runtime import ffi, thread_pool
from loopwright.script import tir as T


def entry(function: ir.PrimFunc, *types: type):
    module = loopwright.build(function)
    loaded = load(module.compiled, {**ffi.symbols(), **thread_pool.symbols()})
    (described,) = module.description.functions
    made = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(loaded.address(described.c_name))
    made.keep = loaded
    return made


def pointer(array: np.ndarray) -> int:
    return array.ctypes.data


def test_sizes_follow_the_arguments():
    @T.prim_func
    def main(a: T.handle, x: T.int8, b: T.handle):
        n, m = T.int32(), T.int64()
        A = T.match_buffer(a, (n, m), "int32")
        B = T.match_buffer(b, (m,), "int32")
        for i, j in T.grid(n, m):
            B[j] = B[j] + A[i, j] + T.cast(x, "int32")

    call = entry(main, ctypes.c_void_p, ctypes.c_int8, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64)
    a, b = np.arange(6, dtype="int32").reshape(2, 3), np.zeros(3, "int32")
    assert call(pointer(a), -5, pointer(b), 2, 3) == 0
    assert b.tolist() == (a.sum(0) - 10).tolist()


def test_a_parameter_that_is_also_a_length_is_passed_once():
    @T.prim_func
    def main(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = T.float32(1)

    a = np.zeros(4, "float32")
    assert entry(main, ctypes.c_void_p, ctypes.c_int32)(pointer(a), 3) == 0
    assert a.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("offset", [0, 3])
def test_a_pointer_is_that_of_the_first_element(offset):
    @T.prim_func
    def main(a: T.handle):
        A = T.match_buffer(a, (4,), "float32", elem_offset=offset)
        for i in range(4):
            A[i] = T.cast(i + 1, "float32")

    a = np.zeros(12, "float32")
    assert entry(main, ctypes.c_void_p)(pointer(a[4:])) == 0
    assert a.tolist() == [0] * 4 + [1, 2, 3, 4] + [0] * 4


def test_symbolic_strides_are_passed_and_offsets_are_not():
    @T.prim_func
    def main(a: T.handle):
        stride, offset = T.int32(), T.int32()
        A = T.match_buffer(a, (3,), "float32", strides=[stride], elem_offset=offset)
        for i in range(3):
            A[i] = T.float32(7)

    a = np.zeros(9, "float32")
    assert entry(main, ctypes.c_void_p, ctypes.c_int32)(pointer(a), 4) == 0
    assert a.tolist() == [7, 0, 0, 0, 7, 0, 0, 0, 7]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "e4m3_float8"])
def test_small_floats_come_as_float(dtype):
    @T.prim_func
    def main(A: T.Buffer((1,), dtype), x: T.float32):
        A[0] = T.cast(x, dtype)

    numpy_type = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "e4m3_float8": ml_dtypes.float8_e4m3fn}[dtype]
    a = np.zeros(1, numpy_type)
    assert entry(main, ctypes.c_void_p, ctypes.c_float)(pointer(a.view("u1")), 1.5) == 0
    assert float(a[0]) == 1.5


@pytest.mark.parametrize(("dtype", "value", "slot"), [("int32", -7, ctypes.c_int64), ("float32", 2.5, ctypes.c_double)])
def test_results_come_through_a_pointer(dtype, value, slot):
    @T.prim_func
    def main(flag: T.bool):
        if flag:
            T.evaluate(T.ret(ir.const(value, dtype)))
        T.evaluate(T.ret(ir.const(0, dtype)))

    call, result = entry(main, ctypes.c_bool, ctypes.c_void_p), slot(99)
    assert call(True, ctypes.addressof(result)) == 0 and result.value == value
    assert call(False, ctypes.addressof(result)) == 0 and result.value == 0
    assert call(True, None) == 0


def test_a_failing_assertion_gives_a_status():
    @T.prim_func
    def main(n: T.int32):
        assert n > 0, "n is positive"
        T.evaluate(0)

    call = entry(main, ctypes.c_int32)
    assert call(1) == 0
    assert call(0) == -1


def test_odd_names_become_identifiers():
    function = ir.PrimFunc([], ir.Evaluate(0), attrs={"global_symbol": "my-func.1 ü"})
    module = loopwright.build(function)
    assert module.description.functions[0].c_name == "loopwright_my_func_1__"
    assert "loopwright_my_func_1__" in module.compiled.symbols.defined
