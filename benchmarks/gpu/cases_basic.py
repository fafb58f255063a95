"""Element-wise work, normalisations and softmax, from what stays in the L2 cache to gigabytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from case import Case

from loopwright import te, tir, topi

Shape = tuple[int, ...]


def _elementwise(
    family: str,
    shape: Shape,
    body: Callable[..., te.Expr],
    reference: Callable[..., torch.Tensor],
    inputs: Sequence[Shape] = (),
    dtype: str = "float32",
) -> Case:
    """`body` takes the inputs and then the indices of a cell."""
    shapes = [shape, *inputs]

    def program() -> list[te.Tensor]:
        tensors = [te.placeholder(one, dtype, name=f"x{k}") for k, one in enumerate(shapes)]
        return [*tensors, te.compute(shape, lambda *at: body(*tensors, *at), name="out")]

    return Case(family, _name(shape, dtype), program, reference, tuple((one, dtype) for one in shapes), shape)


def _of_topi(
    family: str,
    make: Callable[..., te.Tensor],
    reference: Callable[..., torch.Tensor],
    *shapes: Shape,
    dtype: str = "float32",
) -> Case:
    def program() -> list[te.Tensor]:
        tensors = [te.placeholder(one, dtype, name=f"x{k}") for k, one in enumerate(shapes)]
        return [*tensors, make(*tensors)]

    name = _name(shapes[0], dtype)
    return Case(family, name, program, reference, tuple((one, dtype) for one in shapes), shapes[0])


def _name(shape: Shape, dtype: str) -> str:
    size = shape[0]
    text = f"2^{size.bit_length() - 1}" if len(shape) == 1 and size & (size - 1) == 0 else "×".join(map(str, shape))
    return text if dtype == "float32" else f"{text} {dtype}"


def _number(value: float, like: te.Expr) -> te.Expr:
    return tir.const(value, like.dtype)


def _gelu_erf(x: te.Tensor, i: te.Expr) -> te.Expr:
    v = x[i]
    return v * _number(0.5, v) * (_number(1, v) + tir.erf(v * _number(math.sqrt(0.5), v)))


def _gelu_tanh(x: te.Tensor, i: te.Expr) -> te.Expr:
    v = x[i]
    inner = _number(math.sqrt(2 / math.pi), v) * (v + _number(0.044715, v) * v * v * v)
    return v * _number(0.5, v) * (_number(1, v) + tir.tanh(inner))


def copy(n: int, dtype: str = "float32") -> Case:
    return _elementwise("copy", (n,), lambda x, i: x[i], torch.clone, dtype=dtype)


def add(n: int, dtype: str = "float32") -> Case:
    return _elementwise("add", (n,), lambda x, y, i: x[i] + y[i], torch.add, [(n,)], dtype)


def gelu_erf(n: int) -> Case:
    return _elementwise("gelu (erf)", (n,), _gelu_erf, F.gelu)


def gelu_tanh(n: int) -> Case:
    return _elementwise("gelu (tanh)", (n,), _gelu_tanh, lambda x: F.gelu(x, approximate="tanh"))


def relu(n: int) -> Case:
    return _elementwise("relu", (n,), lambda x, i: te.max(x[i], _number(0, x[i])), torch.relu)


def cast(n: int) -> Case:
    return _elementwise("cast to float16", (n,), lambda x, i: x[i].astype("float16"), lambda x: x.to(torch.float16))


def add_row(m: int, n: int) -> Case:
    return _elementwise("add a row", (m, n), lambda x, y, i, j: x[i, j] + y[j], torch.add, [(n,)])


def add_column(m: int, n: int) -> Case:
    return _elementwise("add a column", (m, n), lambda x, y, i, j: x[i, j] + y[i, 0], torch.add, [(m, 1)])


def add_scalar(m: int, n: int) -> Case:
    return _elementwise("add a scalar", (m, n), lambda x, y, i, j: x[i, j] + y[0], torch.add, [(1,)])


def layer_norm(m: int, n: int, dtype: str = "float32") -> Case:
    make = lambda x, g, b: topi.nn.layer_norm(x, g, b, [1])  # noqa: E731
    reference = lambda x, g, b: F.layer_norm(x, x.shape[1:], g, b)  # noqa: E731
    return _of_topi("layer norm", make, reference, (m, n), (n,), (n,), dtype=dtype)


def rms_norm(m: int, n: int) -> Case:
    make = lambda x, g: topi.nn.rms_norm(x, g, [1])  # noqa: E731
    return _of_topi("RMS norm", make, lambda x, g: F.rms_norm(x, x.shape[1:], g, 1e-5), (m, n), (n,))


def softmax(m: int, n: int, dtype: str = "float32") -> Case:
    return _of_topi("softmax", topi.nn.softmax, lambda x: torch.softmax(x, 1), (m, n), dtype=dtype)


def batch_norm(n: int, c: int, h: int, w: int) -> Case:
    make = lambda x, *given: topi.nn.batch_norm(x, *given)[0]  # noqa: E731
    reference = lambda x, g, b, mean, variance: F.batch_norm(x, mean, variance, g, b)  # noqa: E731
    return _of_topi("batch norm", make, reference, (n, c, h, w), (c,), (c,), (c,), (c,))


def _cases() -> Iterator[Case]:
    yield from [copy(1 << k) for k in (16, 20, 22, 24, 26, 28)]
    yield copy(1 << 28, "float16")
    yield from [add(1 << k) for k in (16, 20, 24, 26, 28)]
    yield add(1 << 26, "float16")
    for family in (add_row, add_column, add_scalar):
        yield from [family(1000, 1000), family(8192, 4096), family(8191, 4095), family(32_768, 8192)]
    for unary in (gelu_erf, gelu_tanh, relu, cast):
        yield from [unary(1 << k) for k in (20, 24, 28)]
    yield from [layer_norm(8192, 4096), layer_norm(4096, 1000), layer_norm(8192, 4096, "float16")]
    yield layer_norm(32_768, 8192)
    yield from [rms_norm(8192, 4096), rms_norm(4096, 1000), rms_norm(32_768, 8192)]
    yield from [softmax(*size) for size in ((128, 50257), (8192, 8192), (65536, 128), (1024, 1000))]
    yield from [softmax(8192, 8192, "float16"), softmax(32_768, 8192)]
    yield from [batch_norm(32, 64, 112, 112), batch_norm(32, 256, 56, 56), batch_norm(32, 512, 7, 7)]


CASES = list(_cases())
SMALL = [
    *[copy(1 << 12), copy(4099), copy(1000, "float16"), add(4097), add(1 << 11, "float16")],
    *[family(*size) for family in (add_row, add_column, add_scalar) for size in ((17, 100), (64, 64))],
    *[unary(size) for unary in (gelu_erf, gelu_tanh, relu, cast) for size in (1 << 11, 1001)],
    *[layer_norm(5, 1000), layer_norm(3, 4096), layer_norm(7, 129, "float16"), rms_norm(5, 1000), rms_norm(2, 4099)],
    *[softmax(*size) for size in ((3, 5025), (4, 8192), (65, 128), (10, 1000), (2, 50257))],
    batch_norm(2, 3, 14, 14),
    batch_norm(2, 5, 7, 7),
]
