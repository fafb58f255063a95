"""specialize: known arguments go into the program."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import tir
from loopwright.ir.specialize import CannotSpecialize
from loopwright.script import tir as T


@T.prim_func
def copy(a: T.handle, b: T.handle, m: T.int32, n: T.int32):
    A = T.match_buffer(a, (m, n))
    B = T.match_buffer(b, (m, n))
    for i, j in T.grid(m, n * 2 - n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (16, 16)])
def test_a_buffer_sets_the_symbols_of_its_shape(shape):
    func = copy.specialize({copy.params[0]: tir.decl_buffer(shape)})
    assert [param.name for param in func.params] == ["a", "b"]
    text = func.script()
    assert f"T.Buffer({shape}" in text and f"T.grid({shape[0]}, {shape[1]})" in text
    a, b = np.random.rand(*shape).astype("float32"), np.empty(shape, "float32")
    lw.build(func)(a, b)
    np.testing.assert_array_equal(a, b)


def test_a_value_sets_a_scalar_and_removes_the_parameter():
    func = copy.specialize({copy.params[3]: 16})
    assert [param.name for param in func.params] == ["a", "b", "m"]
    assert "T.match_buffer(a, (m, 16))" in func.script() and "T.grid(m, 16)" in func.script()
    assert copy.specialize({}) is copy


def test_keys_may_be_the_buffers_themselves():
    A = copy.buffer_map[copy.params[0]]
    assert "T.grid(2, 3)" in copy.specialize({A: tir.decl_buffer((2, 3))}).script()


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (0, 5, "parameter a is the buffer A, and was given int 5"),
        (0, tir.decl_buffer((4,)), "buffer A has ndim 2, the buffer given for it has 1"),
        (0, tir.decl_buffer((4, 4), "float16"), "buffer A has dtype float32, the buffer given for it has float16"),
        (2, tir.decl_buffer((4, 4)), "parameter m is a int32, and was given the buffer buffer"),
        (2, tir.Var("q", "int64"), "m has type int32, and was given int64"),
    ],
)
def test_what_does_not_fit_is_refused(key, value, problem):
    with pytest.raises(CannotSpecialize, match=problem):
        copy.specialize({copy.params[key]: value})


def test_contradictions_and_strangers_are_refused():
    a, b = copy.params[:2]
    with pytest.raises(ValueError, match="dimension 1 of B is 4, and was given 5"):
        copy.specialize({a: tir.decl_buffer((4, 4)), b: tir.decl_buffer((4, 5))})
    with pytest.raises(CannotSpecialize, match="k is none of its parameters, which are a, b, m, n"):
        copy.specialize({tir.Var("k"): 3})
