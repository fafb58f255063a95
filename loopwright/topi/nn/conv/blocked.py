"""Convolutions in blocked layouts: channels in blocks of a vector's width, innermost.

data (N, C // i, H, W, i), weight (O // o, C // i, rows, columns, i, o)  →  (N, O // o, H', W', o)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from loopwright import te
from loopwright.ir import Expr, IterVar
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.nn.conv.convolution_samples import products_sample
from loopwright.topi.nn.conv.window import window_over
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.parts.sizes import check_rank, check_same, known, simplify, tap_indices
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.testing.convolution import conv_python
from loopwright.topi.types import Dim, Dims, DType, IntPadding, Ints, Padding


def _conv2d_blocked(
    x: np.ndarray,
    w: np.ndarray,
    stride: Ints,
    padding: IntPadding,
    dilation: Ints,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: DType | None = None,
    n_elems: int = 4,
) -> np.ndarray:
    if w.ndim == 7:  # o, c, rows, columns, part, block, elem: the parts and their elements are one axis
        w = w.transpose(0, 1, 2, 3, 4, 6, 5).reshape(*w.shape[:4], -1, w.shape[5])
    x, w = (one if one.dtype.kind == "f" else one.astype(np.int64) for one in (x, w))
    plain = x.transpose(0, 1, 4, 2, 3).reshape(x.shape[0], -1, *x.shape[2:4])
    weight = w.transpose(0, 5, 1, 4, 2, 3).reshape(w.shape[0] * w.shape[5], -1, *w.shape[2:4])
    groups = plain.shape[1] // weight.shape[1]
    out = conv_python(plain, weight, stride, padding, dilation, groups, "NCHW")
    return out.reshape(out.shape[0], -1, w.shape[5], *out.shape[2:]).transpose(0, 1, 3, 4, 2)


def _blocked_samples() -> Iterator[Sample]:
    for dtype in ("float32", "int32"):
        yield Sample((whole_numbers((2, 2, 5, 5, 3), dtype), whole_numbers((2, 2, 3, 3, 3, 4), dtype), 1, 1, 1))
    yield Sample((whole_numbers((1, 2, 5, 5, 3)), whole_numbers((2, 1, 3, 2, 3, 4)), 2, 0, 1))  # two groups
    yield Sample((whole_numbers((1, 1, 6, 5, 1)), whole_numbers((1, 1, 1, 1, 1, 1)), (1, 2), (0, 1, 2, 3), 1))
    yield products_sample(_conv2d_blocked, real_numbers((1, 2, 4, 4, 4)), real_numbers((1, 2, 3, 3, 4, 8)), 72, 1, 1, 1)


@operator(reference=_conv2d_blocked, samples=_blocked_samples, name="nn.conv2d_NCHWc")
def conv2d_NCHWc(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Dims,
    padding: Padding,
    dilation: Dims,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: DType | None = None,
) -> te.Tensor:
    """The convolution in blocks; a weight with fewer input channels than the data means groups."""
    op = "conv2d_NCHWc"
    check_rank(op, "weight", kernel, "OIHWio", 6)
    out_chunks, chunks, rows, columns, block, out_block = kernel.shape
    window = _blocked(op, data, (out_chunks, chunks, rows, columns, block, out_block), stride, padding, dilation)
    padded, taps = window.padded, window.taps
    dtype = out_dtype or data.dtype
    outer, inner = te.reduce_axis((0, chunks), name="ic_outer"), te.reduce_axis((0, block), name="ic_inner")
    first = _first_chunk(op, data, out_chunks, chunks)

    def element(n: Expr, oc_chunk: Expr, oh: Expr, ow: Expr, oc_block: Expr) -> Expr:
        y, x = tap_indices((oh, ow), window.strides, window.taps, window.dilations)
        value = padded(n, first(oc_chunk) + outer.var, y, x, inner.var).astype(dtype)
        weight = kernel(oc_chunk, outer.var, taps[0].var, taps[1].var, inner.var, oc_block).astype(dtype)
        total: Expr = te.sum(value * weight, axis=[outer, *taps, inner])
        return total

    out: te.Tensor = te.compute(window.shape, element, name=op, tag=default_tag(op))
    return out


def _int8_samples() -> Iterator[Sample]:
    weight = whole_numbers((2, 1, 3, 3, 2, 4, 4), "int8", -128, 127)
    yield Sample((whole_numbers((1, 1, 5, 5, 8), "uint8", 0, 255), weight, 1, 1, 1))
    yield Sample((whole_numbers((2, 1, 5, 4, 8), "int8", -128, 127), weight, 2, 0, 1))
    small = whole_numbers((1, 1, 1, 1, 2, 8, 2), "int8")
    yield Sample((whole_numbers((1, 1, 3, 3, 4), "int8"), small, 1, 0, 1, "NCHWc", "NCHWc", "int32", 2))


@operator(reference=_conv2d_blocked, samples=_int8_samples, name="nn.conv2d_NCHWc_int8")
def conv2d_NCHWc_int8(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Dims,
    padding: Padding,
    dilation: Dims,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: DType = "int32",
    n_elems: int = 4,
) -> te.Tensor:
    """The same with `n_elems` input channels innermost in the weight, as dot-product instructions take them.

    The weight has the shape (O // o, C // i, rows, columns, i // n_elems, o, n_elems).
    """
    op = "conv2d_NCHWc_int8"
    check_rank(op, "weight", kernel, "OIHWioi", 7)
    out_chunks, chunks, rows, columns, parts, out_block, elems = kernel.shape
    check_same(op, "n_elems differs", ("the weight", elems), ("n_elems", n_elems))
    block = simplify(parts * elems)
    window = _blocked(op, data, (out_chunks, chunks, rows, columns, block, out_block), stride, padding, dilation)
    padded, taps = window.padded, window.taps
    dtype = out_dtype or data.dtype
    outer = te.reduce_axis((0, chunks), name="ic_outer")
    inner = [te.reduce_axis((0, parts), name="ic_f_inner"), te.reduce_axis((0, elems), name="ic_s_inner")]
    first = _first_chunk(op, data, out_chunks, chunks)

    def element(n: Expr, oc_chunk: Expr, oh: Expr, ow: Expr, oc_block: Expr) -> Expr:
        y, x = tap_indices((oh, ow), window.strides, window.taps, window.dilations)
        part, elem = inner[0].var, inner[1].var
        value = padded(n, first(oc_chunk) + outer.var, y, x, part * elems + elem).astype(dtype)
        weight = kernel(oc_chunk, outer.var, taps[0].var, taps[1].var, part, oc_block, elem).astype(dtype)
        total: Expr = te.sum(value * weight, axis=[outer, *taps, *inner])
        return total

    out: te.Tensor = te.compute(window.shape, element, name=op, tag=default_tag(op))
    return out


def _unpack(x: np.ndarray, out_dtype: str) -> np.ndarray:
    batch, chunks, height, width, block = x.shape
    return x.transpose(0, 1, 4, 2, 3).reshape(batch, chunks * block, height, width).astype(out_dtype)


def _unpack_samples() -> Iterator[Sample]:
    for dtype in ("float32", "int8", "float16"):
        yield Sample((whole_numbers((2, 3, 2, 5, 4), dtype), dtype))
    yield Sample((whole_numbers((1, 2, 3, 3, 1), "int8"), "int32"))
    yield Sample((whole_numbers((0, 2, 3, 3, 4)), "float32"))


@operator(reference=_unpack, samples=_unpack_samples, name="nn.unpack_NCHWc_to_nchw")
def unpack_NCHWc_to_nchw(packed_out: te.Tensor, out_dtype: DType) -> te.Tensor:
    """Blocked data in NCHW."""
    check_rank("unpack_NCHWc_to_nchw", "data", packed_out, "NCHWc", 5)
    batch, chunks, height, width, block = packed_out.shape
    out: te.Tensor = te.compute(
        (batch, simplify(chunks * block), height, width),
        lambda n, c, h, w: packed_out(n, c // block, h, w, c % block).astype(out_dtype),
        name="output_unpack",
        tag=default_tag("injective,unpack_nchwc"),
    )
    return out


class _Blocked(NamedTuple):
    """What moves over the data: the shape of the result, the padded data, and the axes of the window."""

    shape: tuple[Expr, ...]
    padded: te.Tensor
    taps: list[IterVar]
    strides: list[int]
    dilations: list[int]


def _blocked(
    op: str, data: te.Tensor, kernel: Sequence[Expr], stride: Dims, padding: Padding, dilation: Dims
) -> _Blocked:
    check_rank(op, "data", data, "NCHWc", 5)
    batch, _, height, width, data_block = data.shape
    out_chunks, _, *sizes, block, out_block = kernel
    check_same(op, "blocks of input channels differ", ("the data", data_block), ("the weight", block))
    window = window_over(op, (height, width), sizes, stride, padding, dilation)
    padded = pad_unless_zero(data, [0, 0, *window.before, 0], [0, 0, *window.after, 0])
    taps = [te.reduce_axis((0, size), name=name) for size, name in zip(sizes, ("kh", "kw"), strict=True)]
    shape = (batch, out_chunks, *window.places, out_block)
    return _Blocked(shape, padded, taps, window.strides, window.dilations)


def _first_chunk(op: str, data: te.Tensor, out_chunks: Expr, chunks: Expr) -> Callable[[Expr], Dim]:
    """The first chunk of input channels of an output chunk: 0 without groups."""
    have, own, features = known(data.shape[1]), known(chunks), known(out_chunks)
    if have is None or own is None or features is None:
        check_same(op, "input channels differ", ("the data", data.shape[1]), ("the weight", chunks))
        return lambda chunk: 0
    if own == have:
        return lambda chunk: 0
    if own == 0 or have % own or features % (have // own):
        raise InvalidShapeError(op, f"input channels differ: {have} blocks in the data, {own} in the weight")
    per_group = features // (have // own)
    return lambda chunk: chunk // per_group * own
