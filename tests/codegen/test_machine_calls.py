"""Halves of vectors, typed pointers and hints: the evaluator and LLVM agree on each type."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.evaluator import evaluate
from loopwright.runtime.errors import NotBuilt
from loopwright.script import from_source


@pytest.mark.parametrize("dtype", "int8 int32 int64 float16 float32 float64 bfloat16".split())
@pytest.mark.parametrize("half", [1, 2, 4])
def test_halves_of_vectors(dtype, half):
    kind = dtype if half == 1 else f"{dtype}x{half}"
    func = from_source(
        f'@T.prim_func\ndef main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}")):\n'
        f'    B[0:{half}] = T.vectorhigh("{kind}", A[0:{2 * half}])\n'
        f'    B[{half}:{2 * half}] = T.vectorlow("{kind}", A[0:{2 * half}])\n'
        f'    B[8:{8 + 2 * half}] = T.vectorcombine("{dtype}x{2 * half}", A[4:{4 + half}], A[0:{half}])'
    )
    a = np.arange(16).astype(loopwright.DataType(dtype).numpy())
    expected, found = np.zeros_like(a), np.zeros_like(a)
    evaluate(func, a, expected)
    loopwright.build(func)(a, found)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[:half], a[half : 2 * half])


def test_typed_pointers_and_hints():
    func = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((16,)), B: T.Buffer((16,))):\n"
        "    T.start_profile_intrinsic(1)\n"
        '    p: T.handle("float32") = A.access_ptr("r", offset=4)\n'
        "    C = T.decl_buffer((4,), data=p)\n    B[0] = C[1]\n    T.end_profile_intrinsic(1)"
    )
    a, expected, found = np.arange(16, dtype="float32"), np.zeros(16, "float32"), np.zeros(16, "float32")
    evaluate(func, a, expected)
    loopwright.build(func)(a, found)
    assert found[0] == expected[0] == 5.0


def test_the_count_of_overloads_before_arguments_of_llvm_intrinsics():
    func = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((4,))):\n"
        '    root = T.meta_var(T.llvm_lookup_intrinsic_id("llvm.sqrt.f32"))\n'
        '    A[0] = T.call_llvm_pure_intrin("float32", root, T.uint32(1), A[0])\n'
        '    A[1] = T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", A[1])'
    )
    a = np.array([4, 9, 0, 0], "float32")
    loopwright.build(func)(a)
    assert a.tolist() == [2.0, 3.0, 0.0, 0.0]


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_pointer_to_vectors_counts_in_vectors(lanes, target):
    func = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((16,)), B: T.Buffer((4,))):\n"
        f'    p: T.handle("float32") = A.access_ptr("r", content_lanes={lanes}, offset=8)\n'
        "    C = T.decl_buffer((4,), data=p)\n    for i in range(4):\n        B[i] = C[i]"
    )
    a, expected, found = np.arange(16, dtype="float32"), np.zeros(4, "float32"), np.zeros(4, "float32")
    evaluate(func, a, expected)
    loopwright.build(func, target=target)(a, found)
    assert found.tolist() == expected.tolist() == [8.0, 9.0, 10.0, 11.0]


def test_a_call_of_a_function_whose_sizes_are_computed_says_so():
    func = from_source(
        "@I.ir_module\nclass Module:\n"
        "    @T.prim_func\n    def callee(a: T.handle):\n"
        "        n = T.int32()\n        A = T.match_buffer(a, (n + 1,))\n"
        "        for i in range(n + 1):\n            A[i] = T.float32(1)\n"
        "    @T.prim_func\n    def main(B: T.Buffer((4,))):\n        Module.callee(B.data)"
    )
    with pytest.raises(NotBuilt, match="calling callee, whose buffers have symbolic shapes"):
        loopwright.build(func)
