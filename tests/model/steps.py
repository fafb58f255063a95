"""Kernels and programs for these tests: small ones, and random ones with their values in numpy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from loopwright import te, tir
from loopwright.model import Launch, Program, Value


def float_value(name, *shape):
    return Value(name, shape, "float32")


def element_wise(shape, compute, inputs=1, dtype="float32", out_dtype=None):
    """A kernel that computes each element from those at the same place."""
    given = [te.placeholder(shape, name=f"X{k}", dtype=dtype) for k in range(inputs)]
    made = te.compute(shape, lambda *i: compute(*[x[i] for x in given]), name="Y")
    if out_dtype is not None:
        assert made.dtype == out_dtype
    return te.create_prim_func([*given, made])


def relu(shape):
    return element_wise(shape, lambda x: tir.max(x, tir.const(0, "float32")))


def add(shape):
    return element_wise(shape, lambda x, y: x + y, inputs=2)


def double(shape):
    return element_wise(shape, lambda x: x * tir.const(2, "float32"))


def dense(m, k, n, *, is_last=False):
    x, w, b = (te.placeholder(s, name=name) for name, s in (("X", (m, k)), ("W", (k, n)), ("B", (n,))))
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r), name="C")
    zero = tir.const(0, "float32")
    y = te.compute((m, n), lambda i, j: c[i, j] + b[j] if is_last else tir.max(c[i, j] + b[j], zero), name="Y")
    return te.create_prim_func([x, w, b, y])


MLP_SIZES = (16, 33, 33, 7)


def mlp(batch=3, name="mlp", sizes=MLP_SIZES, seed=0):
    """Three dense layers; small integers, so that every order of summation gives the same sums."""
    rng = np.random.default_rng(seed)
    constants, steps = {}, []
    x = here = float_value("x", batch, sizes[0])
    for layer, (k, n) in enumerate(pairwise(sizes)):
        w, b, y = float_value(f"w{layer}", k, n), float_value(f"b{layer}", n), float_value(f"h{layer}", batch, n)
        constants[w] = rng.integers(-3, 4, (k, n)).astype("float32")
        constants[b] = rng.integers(-3, 4, n).astype("float32")
        kernel = dense(batch, k, n, is_last=layer == len(sizes) - 2)
        steps.append(Launch(kernel, (here, w, b, y), name=f"dense {layer}"))
        here = y
    return Program(name, [x], [here], constants, steps)


def mlp_in_numpy(program, x):
    arrays = list(program.constants.values())
    for w, b in zip(arrays[::2], arrays[1::2]):
        x = x @ w + b
        if b is not arrays[-1]:
            x = np.maximum(x, 0)
    return x


def small_integers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")
