"""bind_constants: parameters that are always the same become part of the function."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir import AllocateConst, BlockRealize, PrimFunc, bind_constants
from loopwright.ir.bind_constants import CannotBind
from loopwright.ir.specialize import CannotSpecialize
from loopwright.ir.verifier import verify
from loopwright.script import tir as T


def scaled(dtype: str = "float32", size: object = 8) -> PrimFunc:
    a = te.placeholder((size,), dtype, name="A")
    w = te.placeholder((size,), dtype, name="W")
    return te.create_prim_func([a, w, te.compute((size,), lambda i: a[i] + w[i], name="C")])


def test_the_name_means_the_function_also_after_its_module_was_imported() -> None:
    assert lw.ir.bind_constants is bind_constants and callable(bind_constants)


def test_the_parameter_is_gone_and_its_values_are_there() -> None:
    func = scaled()
    w = np.arange(8, dtype="float32")
    bound = tir.bind_constants(func, {"W": w})
    verify(bound)
    assert [buffer.name for buffer in bound.argument_buffers()] == ["A", "C"]
    assert isinstance(bound.body, BlockRealize) and isinstance(bound.body.block.body, AllocateConst)
    w[:] = -1  # a copy was taken
    c = np.zeros(8, "float32")
    lw.build(bound)(np.ones(8, "float32"), c)
    assert c.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [buffer.name for buffer in func.argument_buffers()] == ["A", "W", "C"]


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint32", "int64"])
def test_every_type(dtype: str) -> None:
    func = scaled(dtype)
    w = np.arange(8).astype(func.argument_buffers()[0].dtype.numpy())
    a, c = np.ones_like(w), np.zeros_like(w)
    lw.build(bind_constants(func, {"W": w}))(a, c)
    assert c.astype("float64").tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_truth_values() -> None:
    @T.prim_func
    def choose(A: T.Buffer(4), W: T.Buffer(4, "bool"), C: T.Buffer(4)):
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = T.if_then_else(W[v], A[v], T.float32(0))

    c = np.zeros(4, "float32")
    lw.build(bind_constants(choose, {"W": np.array([True, False, False, True])}))(np.ones(4, "float32"), c)
    assert c.tolist() == [1, 0, 0, 1]


def test_keys_are_names_parameters_buffers_and_tensors() -> None:
    a = te.placeholder((4,), name="A")
    w = te.placeholder((4,), name="W")
    func = te.create_prim_func([a, w, te.compute((4,), lambda i: a[i] + w[i], name="C")])
    for key in ("W", func.params[1].name, func.params[1], func.argument_buffers()[1], w):
        assert len(bind_constants(func, {key: np.zeros(4, "float32")}).params) == 2


def test_sizes_that_are_variables_take_the_values_of_the_array() -> None:
    n = te.var("n")
    func = scaled(size=n)
    bound = bind_constants(func, {"W": np.arange(5, dtype="float32")})
    assert [int(buffer.shape[0]) for buffer in bound.argument_buffers()] == [5, 5]
    c = np.zeros(5, "float32")
    lw.build(bound)(np.zeros(5, "float32"), c)
    assert c.tolist() == [0, 1, 2, 3, 4]


def test_several_at_once_and_scalars() -> None:
    @T.prim_func
    def shift(A: T.Buffer(4), W: T.Buffer(4), V: T.Buffer(4), by: T.float32, C: T.Buffer(4)):
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = A[v] * W[v] + V[v] + by

    ones = np.ones(4, "float32")
    bound = bind_constants(shift, {"W": ones * 2, "V": ones * 3, "by": 4.0})
    assert len(bound.params) == 2
    c = np.zeros(4, "float32")
    lw.build(bound)(ones, c)
    assert c.tolist() == [9] * 4


def test_two_arrays_that_disagree_about_a_size() -> None:
    n = te.var("n")
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    func = te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")])
    with pytest.raises(CannotSpecialize, match="dimension 0 of B is 4, and was given 5"):
        bind_constants(func, {"A": np.zeros(4, "float32"), "B": np.zeros(5, "float32")})


def test_empty_and_strided_arrays() -> None:
    bind_constants(scaled(size=0), {"W": np.zeros(0, "float32")})
    c = np.zeros(8, "float32")
    lw.build(bind_constants(scaled(), {"W": np.arange(16, dtype="float32")[::2]}))(c * 0, c)
    assert c.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"W": np.zeros(8)}, r"buffer W holds float32, and was given float64 \[LW0551\]"),
        ({"W": np.zeros(9, "float32")}, r"dimension 0 of buffer W is 8, and was given 9: \(9,\)"),
        ({"W": np.zeros((8, 1), "float32")}, r"buffer W has 1 dimensions, and was given shape \(8, 1\)"),
        ({"X": np.zeros(8, "float32")}, r"'X' is none of its parameters, which are A, W, C"),
        ({"C": np.zeros(8, "float32")}, r"buffer C is written, so it cannot be constant"),
    ],
)
def test_what_does_not_fit_is_named(values: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(CannotBind, match=message):
        bind_constants(scaled(), values)


def test_one_parameter_bound_twice() -> None:
    func, zeros = scaled(), np.zeros(8, "float32")
    with pytest.raises(CannotBind, match="is bound twice"):
        bind_constants(func, {"W": zeros, func.params[1]: zeros})
