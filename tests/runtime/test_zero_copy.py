"""Arrays of other frameworks pass as they are, and share their memory."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import nd
from loopwright.script import tir as T


@T.prim_func
def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] + A[i]


def test_torch():
    torch = pytest.importorskip("torch")
    module = loopwright.build(double)
    a, b = torch.arange(4, dtype=torch.float32), torch.zeros(4)
    for call in (module, module["double"]):
        b.zero_()
        call(a, b)
        assert b.tolist() == [0, 2, 4, 6]
    shared = nd.from_dlpack(b)
    np.asarray(shared)[0] = 9
    assert b[0] == 9
    assert torch.from_dlpack(shared).data_ptr() == b.data_ptr()
    half = torch.ones(3, dtype=torch.bfloat16)
    assert nd.from_dlpack(half).dtype == "bfloat16"


def test_jax():
    jax = pytest.importorskip("jax")
    a = jax.device_put(jax.numpy.arange(4, dtype="float32"), jax.devices("cpu")[0])
    b = nd.empty((4,))
    loopwright.build(double)(a, b)
    assert b.numpy().tolist() == [0, 2, 4, 6]
    assert nd.from_dlpack(a).data_ptr() == a.unsafe_buffer_pointer()
    assert jax.numpy.from_dlpack(b).tolist() == [0, 2, 4, 6]
