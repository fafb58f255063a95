"""Products of matrices, and of batches of them.

    dense(data, weight)        out[…, i, j] = Σ over k of data[…, i, k] · weight[j, k]      the weight is (units, in)
    matmul(a, b)               out[…, i, j] = Σ over k of a[…, i, k] · b[…, k, j]           either may be transposed
    batch_matmul(a, b)         three dimensions, b transposed unless the call says otherwise

Operands are converted to the type of the result before they are multiplied. The stage is `T_matmul_NN`, with a T for
each operand that is transposed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.te.tags import default_tag
from loopwright.te.whole_tensors import common_size, repeated
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.sizes import check_rank, check_same, one_size, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.rounding import rounded_sample
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import DType, Shape


def _dense(
    data: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, out_dtype: DType | None = None, **_: object
) -> np.ndarray:
    return _matmul(data, weight, bias, out_dtype, False, True)


def _dense_samples() -> Iterator[Sample]:
    for dtype in ("float32", "float64", "float16", "int32"):
        yield Sample((whole_numbers((3, 5), dtype), whole_numbers((4, 5), dtype)))
    yield Sample((whole_numbers((3, 7), "int8", -128, 127), whole_numbers((5, 7), "int8"), None, "int32"))
    yield Sample((whole_numbers((1, 7), "uint8", 0, 255), whole_numbers((5, 7), "int8"), None, "int32"))
    yield Sample((whole_numbers((2, 3, 4, 7)), whole_numbers((5, 7)), whole_numbers((5,))))
    yield Sample((whole_numbers((0, 7)), whole_numbers((5, 7))))
    yield Sample((whole_numbers((2, 0)), whole_numbers((5, 0)), whole_numbers((5,))))  # empty sums, and the bias
    yield rounded_sample(_dense, real_numbers((3, 37)), real_numbers((5, 37)), real_numbers((5,)))


@operator(reference=_dense, samples=_dense_samples, name="nn.dense")
def dense(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: DType | None = None,
) -> te.Tensor:
    """`data` times the transposed `weight`, whose shape is (units, in)."""
    return _product("dense", data, weight, bias, out_dtype, False, True)


def _matmul(
    a: np.ndarray,
    b: np.ndarray,
    bias: np.ndarray | None = None,
    out_dtype: DType | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> np.ndarray:
    wide = out_dtype or a.dtype
    if isinstance(a, np.ndarray) and a.dtype.kind != "f":
        a, b = a.astype(wide), b.astype(wide)
    left, right = [
        one.transpose(*range(one.ndim - 2), one.ndim - 1, one.ndim - 2) if transposed else one
        for one, transposed in ((a, transpose_a), (b, transpose_b))
    ]
    out = np.matmul(left, right)
    return out if bias is None else out + bias


def _matmul_samples() -> Iterator[Sample]:
    for turn_a, turn_b in ((False, False), (True, False), (False, True), (True, True)):
        a, b = (5, 3) if turn_a else (3, 5), (4, 5) if turn_b else (5, 4)
        yield Sample((whole_numbers(a), whole_numbers(b), None, None, turn_a, turn_b))
    yield Sample((whole_numbers((2, 1, 3, 5)), whole_numbers((7, 5, 4)), whole_numbers((4,))))
    yield Sample((whole_numbers((2, 3, 5), "int8"), whole_numbers((5, 1), "int8"), None, "int32"))
    yield Sample((whole_numbers((1, 1), "float64"), whole_numbers((1, 1), "float64")))
    yield rounded_sample(_matmul, real_numbers((2, 3, 17)), real_numbers((1, 17, 5)))


@operator(reference=_matmul, samples=_matmul_samples, name="nn.matmul")
def matmul(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: DType | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> te.Tensor:
    """The product of the last two dimensions; those before them are batches, which are broadcast."""
    return _product("matmul", tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b)


def _product(
    op: str,
    a: te.Tensor,
    b: te.Tensor,
    bias: te.Tensor | None,
    out_dtype: DType | None,
    transpose_a: bool,
    transpose_b: bool,
) -> te.Tensor:
    for what, tensor in (("first operand", a), ("second operand", b)):
        if not isinstance(tensor, te.Tensor) or tensor.ndim < 2:
            check_rank(op, what, tensor, "of a matrix", 2)
    if op == "dense":
        check_rank(op, "weight", b, "(units, in)", 2)
    rows, inner = a.shape[-2:] if not transpose_a else a.shape[:-3:-1]
    below, columns = b.shape[-2:] if not transpose_b else b.shape[:-3:-1]
    check_same(op, "the sizes to sum over differ", (f"the first operand, {a.name},", inner), (b.name, below))
    batch = _batch(op, a.shape[:-2], b.shape[:-2])
    dtype = out_dtype or a.dtype
    k = te.reduce_axis((0, inner), name="k")

    def element(*at: Expr) -> Expr:
        *of, i, j = at
        left = (k.var, i) if transpose_a else (i, k.var)
        right = (j, k.var) if transpose_b else (k.var, j)
        x = a(*_own(a.shape[:-2], of, batch), *left).astype(dtype)
        y = b(*_own(b.shape[:-2], of, batch), *right).astype(dtype)
        total: Expr = te.sum(x * y, axis=k)
        return total

    name = f"T_matmul_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    out: te.Tensor = te.compute(
        (*batch, rows, columns), element, name=name, tag=default_tag("dense" if name == "T_matmul_NT" else "matmul")
    )
    return out if bias is None else _with_bias(op, out, bias)


def _with_bias(op: str, out: te.Tensor, bias: te.Tensor) -> te.Tensor:
    check_rank(op, "bias", bias, "(units,)", 1)
    check_same(op, "the units differ", ("the bias", bias.shape[0]), ("the product", out.shape[-1]))
    added: te.Tensor = te.compute(
        out.shape,
        lambda *at: out(*at) + bias(at[-1]).astype(out.dtype),
        name="T_add",
        tag=default_tag(tag.BROADCAST),
    )
    return added


def _batch(op: str, one: Sequence[Expr], other: Sequence[Expr]) -> list[Expr]:
    """The batches of both operands, broadcast from the right."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    shape = list(longer)
    for at, size in enumerate(shorter, len(longer) - len(shorter)):
        common = common_size(simplify(shape[at]), simplify(size))
        if common is None:
            check_same(op, "the batches differ", ("one operand", shape[at]), ("the other", size))
            continue
        shape[at] = common
    return shape


def _own(batch: Sequence[Expr], at: Sequence[Expr], whole: Sequence[Expr]) -> list[Expr]:
    """The index in a batch of its own; one of size 1 is repeated."""
    skipped = len(at) - len(batch)
    return [repeated(*location) for location in zip(at[skipped:], batch, whole[skipped:], strict=True)]


def _batch_matmul(
    a: np.ndarray,
    b: np.ndarray,
    oshape: Shape | None = None,
    out_dtype: DType | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> np.ndarray:
    return _matmul(a, b, None, out_dtype, transpose_a, transpose_b)


def _batch_matmul_samples() -> Iterator[Sample]:
    for dtype in ("float32", "float64", "int32"):
        yield Sample((whole_numbers((2, 3, 5), dtype), whole_numbers((2, 4, 5), dtype)))
    yield Sample((whole_numbers((2, 5, 3)), whole_numbers((1, 5, 4)), None, None, True, False))
    yield Sample((whole_numbers((1, 3, 5)), whole_numbers((4, 1, 5)), (4, 3, 1)))
    yield Sample((whole_numbers((2, 3, 5), "int8"), whole_numbers((2, 4, 5), "int8"), None, "int32"))
    yield Sample((whole_numbers((0, 3, 5)), whole_numbers((0, 4, 5))))
    yield rounded_sample(_batch_matmul, real_numbers((2, 3, 29)), real_numbers((2, 5, 29)))


@operator(reference=_batch_matmul, samples=_batch_matmul_samples, name="nn.batch_matmul")
def batch_matmul(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    oshape: Shape | None = None,
    out_dtype: DType | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> te.Tensor:
    """As many products as the first dimension says; a batch of 1 is used for all. `oshape`, if given, must agree."""
    op = "batch_matmul"
    check_rank(op, "first operand", tensor_a, "of a batch", 3)
    check_rank(op, "second operand", tensor_b, "of a batch", 3)
    if tensor_a.dtype != tensor_b.dtype:
        warnings.warn(f"{op}: the operands are {tensor_a.dtype} and {tensor_b.dtype}", stacklevel=2)
    out = _product(op, tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)
    if oshape is not None and (
        len(oshape) != 3 or not all([one_size(own, size) for size, own in zip(oshape, out.shape, strict=True)])
    ):
        raise InvalidShapeError(op, f"oshape {tuple(oshape)} is not the shape of the result, {tuple(out.shape)}")
    return out


def _dense_pack(
    data: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, out_dtype: DType | None = None
) -> np.ndarray:
    outer, inner, block = weight.shape
    return _dense(data, weight.transpose(0, 2, 1).reshape(outer * block, inner), bias, out_dtype)


def _dense_pack_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((3, 5)), whole_numbers((2, 5, 4))))
    yield Sample((whole_numbers((1, 7), "int8"), whole_numbers((3, 7, 8), "int8"), None, "int32"))
    yield Sample((whole_numbers((0, 5)), whole_numbers((2, 5, 4)), whole_numbers((8,))))
    yield rounded_sample(_dense_pack, real_numbers((2, 19)), real_numbers((1, 19, 16)), real_numbers((16,)))


@operator(reference=_dense_pack, samples=_dense_pack_samples, name="nn.dense_pack")
def dense_pack(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: DType | None = None
) -> te.Tensor:
    """`dense` with a weight in blocks of units: (units // block, in, block)."""
    op = "dense_pack"
    check_rank(op, "data", data, "(rows, in)", 2)
    check_rank(op, "weight", weight, "(units // block, in, block)", 3)
    check_same(op, "the sizes to sum over differ", ("the data", data.shape[1]), ("the weight", weight.shape[1]))
    chunks, inner, block = weight.shape
    dtype = out_dtype or data.dtype
    k = te.reduce_axis((0, inner), name="k")

    def element(y: Expr, x: Expr) -> Expr:
        total: Expr = te.sum(
            data(y, k.var).astype(dtype) * weight(x // as_expr(block), k.var, x % as_expr(block)).astype(dtype), axis=k
        )
        return total

    shape = (data.shape[0], simplify(chunks * block))
    out: te.Tensor = te.compute(shape, element, name="T_dense_pack", tag=default_tag("dense_pack"))
    return out if bias is None else _with_bias(op, out, bias)
