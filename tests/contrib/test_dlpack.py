from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.contrib import dlpack
from loopwright.script import tir as T


@T.prim_func
def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] * T.float32(2)


class Wrapped:
    """A tensor of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


def test_a_function_for_another_librarys_tensors():
    run = dlpack.convert_func(lw.build(double), Wrapped, lambda tensor: tensor.array)
    a, b = Wrapped(np.arange(4, dtype="float32")), Wrapped(np.zeros(4, "float32"))
    run(a, b)
    assert b.array.tolist() == [0, 2, 4, 6]


def test_other_arguments_are_named():
    run = dlpack.convert_func(lw.build(double), Wrapped, lambda tensor: tensor.array)
    with pytest.raises(dlpack.NotThatTensor, match=r"argument number 2 is a numpy\.ndarray, not a .*Wrapped"):
        run(Wrapped(np.zeros(4, "float32")), np.zeros(4, "float32"))


def test_to_pytorch_func():
    torch = pytest.importorskip("torch")
    run = dlpack.to_pytorch_func(lw.build(double))
    a, b = torch.arange(4, dtype=torch.float32, requires_grad=True), torch.zeros(4)
    run(a, b)
    assert b.tolist() == [0, 2, 4, 6]
