"""Constant memory (T.allocate_const): programs never store into it, and calls cannot crash by doing so."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.evaluator import evaluate
from loopwright.runtime import load_module, register_func
from loopwright.runtime.call_errors import ReadOnlyArgument
from loopwright.script import from_source

_PROGRAM = """
@T.prim_func
def main(I: T.Buffer((1,), "int32"), B: T.Buffer((64,), "int32")):
    p = T.allocate_const(list(range(64)), "int32", [64])
    K = T.decl_buffer((64,), "int32", data=p)
    {}
    for i in range(64):
        B[i] = K[i]
"""
_STORES = {
    "K[5] = 99": "K",
    "K[I[0] % 64] = 99": "K",
    "for j in range(64):\n        K[j] = K[j] + I[0]": "K",
    'L = T.decl_buffer((8, 8), "int32", data=p)\n    L[I[0] % 8, 2] = 99': "L",
    'with T.block("w"):\n        W = T.match_buffer(K[8:16], (8,), "int32", offset_factor=1)\n        W[2] = 99': "p",
    'q: T.handle("int32") = T.address_of(K[4])\n'
    '    L = T.decl_buffer((8,), "int32", data=q)\n'
    "    L[I[0] % 8] = 99": "p",
}


@pytest.mark.parametrize("store", _STORES)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_store_into_constant_memory_is_refused_at_build(store, target):
    program = from_source(_PROGRAM.format(store))
    message = rf"main writes {_STORES[store]}, whose memory is constant \(T.allocate_const\)"
    with pytest.raises(ReadOnlyArgument, match=message):
        lw.build(program, target=target)
    with pytest.raises(ReadOnlyArgument, match="is read-only"):
        evaluate(program, np.array([5], "int32"), np.zeros(64, "int32"))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_function_that_is_called_does_not_store_there_either(target):
    module = from_source("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def fill(A: T.Buffer((64,), "int32"), k: T.int32):
        for i in range(64):
            A[i] = k

    @T.prim_func(private=True)
    def first(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        B[0] = A[0]

    @T.prim_func
    def main(B: T.Buffer((64,), "int32")):
        p = T.allocate_const(list(range(64)), "int32", [64])
        K = T.decl_buffer((64,), "int32", data=p)
        M.first(K.data, B.data)
        M.fill(K.data, 3)
""")
    with pytest.raises(ReadOnlyArgument, match=r"main writes p, whose memory is constant"):
        lw.build(module, target=target)


@pytest.mark.parametrize("count", [64, 5000])  # large constants have their bytes outside the text
def test_a_packed_function_that_writes_constant_memory_crashes_nothing(count, tmp_path):
    program = from_source(f"""
@T.prim_func
def main(B: T.Buffer(({count},), "int32"), C: T.Buffer(({count},), "int32")):
    p = T.allocate_const(list(range({count})), "int32", [{count}])
    K = T.decl_buffer(({count},), "int32", data=p)
    q = T.allocate_const(list(range({count})), "int32", [{count}])
    L = T.decl_buffer(({count},), "int32", data=q)
    T.evaluate(T.call_packed("test.constant_memory.write", K))
    for i in range({count}):
        B[i] = K[i]
        C[i] = L[i]
""")
    seen = []

    @register_func("test.constant_memory.write", override=True)
    def write(x):
        values = np.asarray(x)
        seen.append(values.copy())
        values[...] = 7

    for load in (False, True):
        built = lw.build(program)
        if load:
            built = load_module(built.export_library(tmp_path / "library.so"))
        b, c = np.zeros((2, count), "int32")
        built(b, c)
        np.testing.assert_array_equal(seen.pop(), np.arange(count))
        np.testing.assert_array_equal(c, np.arange(count))  # equal constants that no call gets stay what they are


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    "pointer", ["K.data", "T.address_of(K[0])", 'K.access_ptr("w")', "q"], ids=["data", "address", "access", "let"]
)
def test_an_extern_function_that_writes_constant_memory_crashes_nothing(target, pointer):
    program = from_source(f"""
@T.prim_func
def main(B: T.Buffer((64,), "int32")):
    p = T.allocate_const(list(range(64)), "int32", [64])
    K = T.decl_buffer((64,), "int32", data=p)
    q: T.handle("int32") = T.address_of(K[0])
    T.evaluate(T.call_extern("handle", "memset", {pointer}, 0, T.uint64(256)))
    for i in range(64):
        B[i] = K[i]
""")
    b = np.ones(64, "int32")
    lw.build(program, target=target)(b)
    assert not b.any()


def test_a_constant_of_a_parallel_loop_that_a_call_writes_crashes_nothing():
    program = from_source("""
@T.prim_func
def main(B: T.Buffer((4, 64), "int32")):
    for k in T.parallel(4):
        p = T.allocate_const(list(range(64)), "int32", [64])
        K = T.decl_buffer((64,), "int32", data=p)
        T.evaluate(T.call_extern("handle", "memset", K.data, 0, T.uint64(256)))
        for i in range(64):
            B[k, i] = K[i]
""")
    b = np.ones((4, 64), "int32")
    lw.build(program)(b)
    assert not b.any()
