"""Products of numbers of a few bits, bit by bit: words of bits are and-ed, and what is left is counted.

    Σ x · w = Σ over bits a, b of popcount(bit a of x & bit b of w) << (a + b)           words of 8 to 64 products each

With `unipolar` weights a bit of 0 stands for -1, so that what does not fit is subtracted. `bitpack` puts one bit of
many numbers into one word. `binarize_pack` and `binary_dense` are the case of one bit a number, of values -1 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr, const
from loopwright.ir.intrinsics import popcount
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.nn.conv.window import window_over
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import check_rank, check_same, known, multiple_of, simplify, tap_indices
from loopwright.topi.registry import Reference, Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.testing.convolution import conv_python
from loopwright.topi.types import Dim, Dims, IntPadding, Ints, Padding, Shape

WORDS = ("uint8", "uint16", "uint32", "uint64")


def _width(op: str, pack_type: str) -> int:
    return int(DataType(choose(op, "pack_dtype", str(pack_type), WORDS)).bits)


def _words(op: str, size: Dim, width: int) -> Expr:
    """How many words the bits along a dimension fill."""
    if not multiple_of(size, width):
        problem = f"{known(size)} numbers do not fill words of {width} bits"
        raise InvalidShapeError(op, problem, f"pad to a multiple of {width}")
    return simplify(size // width)


def _bitpack(data: np.ndarray, bits: int, pack_axis: int, bit_axis: int, pack_type: str) -> np.ndarray:
    width = np.dtype(pack_type).itemsize * 8
    shape = list(data.shape)
    shape[pack_axis : pack_axis + 1] = [shape[pack_axis] // width, width]
    whole = data.astype(np.int64).reshape(shape)
    locations = [1] * whole.ndim
    locations[pack_axis + 1] = width
    # The first number is the highest bit.
    powers = np.array([1 << (width - 1 - k) for k in range(width)], np.uint64).reshape(locations)
    words = [(((whole >> bit) & 1).astype(np.uint64) * powers).sum(axis=pack_axis + 1) for bit in range(bits)]
    return np.stack(words, axis=bit_axis).astype(pack_type)


def _bitpack_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((3, 16), "uint8", 0, 3), 2, 1, 2, "uint8"))
    yield Sample((whole_numbers((32, 3), "uint32", 0, 7), 3, 0, 0, "uint32"))
    yield Sample((whole_numbers((2, 3, 4, 16), "uint32", 0, 1), 1, 3, 4, "uint16"))


@operator(reference=_bitpack, samples=_bitpack_samples, name="nn.bitpack")
def bitpack(
    data: te.Tensor, bits: int, pack_axis: int, bit_axis: int, pack_type: str, name: str = "QuantizeInput"
) -> te.Tensor:
    """Bit k of the numbers along `pack_axis` as words, for each of `bits` bits; they are a new axis, at `bit_axis`.

    The first number is in the highest bit of its word.
    """
    op = "bitpack"
    width = _width(op, pack_type)
    axis = axis_of(op, pack_axis, data.ndim, "pack_axis")
    new = axis_of(op, bit_axis, data.ndim + 1, "bit_axis")
    shape = list(data.shape)
    shape[axis] = _words(op, shape[axis], width)
    shape.insert(new, as_expr(bits))

    def word(*at: Expr) -> Expr:
        index = list(at)
        bit = index.pop(new)
        packed = const(0, pack_type)
        for k in range(width):
            index[axis] = at[axis if axis < new else axis + 1] * width + k
            one = (data(*index).astype(pack_type) >> bit.astype(pack_type)) & const(1, pack_type)
            packed = packed | (one << const(width - 1 - k, pack_type))
        return packed

    out: te.Tensor = te.compute(shape, word, name=name, tag=default_tag("bitpack"))
    return out


def _signs(weight: np.ndarray, bits: int, unipolar: bool) -> np.ndarray:
    """What the bits of a weight stand for."""
    whole = weight.astype(np.int64)
    if not unipolar:
        return whole
    return np.sum([(1 << b) * (2 * ((whole >> b) & 1) - 1) for b in range(bits)], axis=0)


def _bitserial_dense(
    data: np.ndarray,
    weight: np.ndarray,
    data_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> np.ndarray:
    return data.astype(np.int64) @ _signs(weight, weight_bits, unipolar).T


def _dense_samples() -> Iterator[Sample]:
    data, weight = whole_numbers((3, 32), "uint32", 0, 3), whole_numbers((5, 32), "uint32", 0, 1)
    yield Sample((data, weight, 2, 1))
    yield Sample((data, weight, 2, 1, "uint8", "int32", False))
    yield Sample((data, whole_numbers((4, 32), "uint32", 0, 3), 2, 2, "uint16", "int32", False))


@operator(reference=_bitserial_dense, samples=_dense_samples, name="nn.bitserial_dense")
def bitserial_dense(
    data: te.Tensor,
    weight: te.Tensor,
    data_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> te.Tensor:
    """`dense` of numbers of a few bits; a weight of 3 dimensions is packed already: (units, bits, words)."""
    op = "bitserial_dense"
    check_rank(op, "data", data, "(rows, in)", 2)
    packed = bitpack(data, data_bits, 1, 1, pack_dtype)
    ready = weight if weight.ndim == 3 else bitpack(weight, weight_bits, 1, 1, pack_dtype, name="QuantizeWeight")
    check_same(op, "the sizes to sum over differ", ("the data", packed.shape[2]), ("the weight", ready.shape[2]))
    k = te.reduce_axis((0, packed.shape[2]), name="k")
    db, wb = te.reduce_axis((0, data_bits), name="db"), te.reduce_axis((0, weight_bits), name="wb")

    def element(i: Expr, j: Expr) -> Expr:
        count = _counted(packed(i, db.var, k.var), ready(j, wb.var, k.var), unipolar, out_dtype)
        total: Expr = te.sum(count << (db.var + wb.var).astype(out_dtype), axis=[wb, db, k])
        return total

    out: te.Tensor = te.compute((data.shape[0], ready.shape[0]), element, name=op, tag=default_tag(op))
    return out


def _counted(x: Expr, w: Expr, unipolar: bool, dtype: str) -> Expr:
    """How many bits of a word fit; less those that do not, where a bit of 0 stands for -1."""
    fits = popcount(x & w).astype(dtype)
    return fits - popcount(x & ~w).astype(dtype) if unipolar else fits


def _conv_reference(layout: str) -> Reference:
    def reference(
        data: np.ndarray,
        kernel: np.ndarray,
        stride: Ints,
        padding: IntPadding,
        activation_bits: int,
        weight_bits: int,
        pack_dtype: str = "uint32",
        out_dtype: str = "int16",
        unipolar: bool = True,
    ) -> np.ndarray:
        return conv_python(data.astype(np.int64), _signs(kernel, weight_bits, unipolar), stride, padding, 1, 1, layout)

    return reference


def _conv_samples(layout: str) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        data, kernel = ((1, 16, 5, 5), (3, 16, 3, 3)) if layout == "NCHW" else ((1, 5, 5, 16), (3, 3, 16, 3))
        numbers = whole_numbers(data, "uint32", 0, 3)
        yield Sample((numbers, whole_numbers(kernel, "uint32", 0, 1), 1, 1, 2, 1, "uint8"))
        yield Sample((numbers, whole_numbers(kernel, "uint32", 0, 3), 2, 0, 2, 2, "uint16", "int32", False))

    return samples


@operator(reference=_conv_reference("NCHW"), samples=_conv_samples("NCHW"), name="nn.bitserial_conv2d_nchw")
def bitserial_conv2d_nchw(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Dims,
    padding: Padding,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> te.Tensor:
    """The convolution of data in NCHW by a weight in OIHW, of numbers of a few bits; channels are put into words."""
    bits = activation_bits, weight_bits, pack_dtype, out_dtype, unipolar
    return _bitserial_conv("bitserial_conv2d_nchw", data, kernel, "NCHW", "OIHW", stride, padding, *bits)


@operator(reference=_conv_reference("NHWC"), samples=_conv_samples("NHWC"), name="nn.bitserial_conv2d_nhwc")
def bitserial_conv2d_nhwc(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Dims,
    padding: Padding,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> te.Tensor:
    """The same of data in NHWC by a weight in HWIO."""
    bits = activation_bits, weight_bits, pack_dtype, out_dtype, unipolar
    return _bitserial_conv("bitserial_conv2d_nhwc", data, kernel, "NHWC", "HWIO", stride, padding, *bits)


def _bitserial_conv(
    op: str,
    data: te.Tensor,
    kernel: te.Tensor,
    layout: str,
    kernel_layout: str,
    stride: Dims,
    padding: Padding,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str,
    out_dtype: str,
    unipolar: bool,
) -> te.Tensor:
    check_rank(op, "data", data, layout, 4)
    check_rank(op, "weight", kernel, kernel_layout, 4)
    sizes = dict(zip(layout, data.shape, strict=True))
    weight = dict(zip(kernel_layout, kernel.shape, strict=True))
    check_same(op, "input channels differ", ("the data", sizes["C"]), ("the weight", weight["I"]))
    # The bits are a last axis of both.
    packed = bitpack(data, activation_bits, layout.index("C"), 4, pack_dtype, name="input_pack")
    ready = bitpack(kernel, weight_bits, kernel_layout.index("I"), 4, pack_dtype, name="kernel_pack")
    window = window_over(op, (sizes["H"], sizes["W"]), (weight["H"], weight["W"]), stride, padding, 1)
    low = {"H": window.before[0], "W": window.before[1]}
    high = {"H": window.after[0], "W": window.after[1]}
    padded = pad_unless_zero(packed, _by(low, layout), _by(high, layout))
    rc = te.reduce_axis((0, packed.shape[layout.index("C")]), name="rc")
    taps = [te.reduce_axis((0, weight[axis]), name=name) for axis, name in (("H", "ry"), ("W", "rx"))]
    ib, kb = te.reduce_axis((0, activation_bits), name="ib"), te.reduce_axis((0, weight_bits), name="kb")

    def element(*indices: Expr) -> Expr:
        at = dict(zip(layout, indices, strict=True))
        y, x = tap_indices((at["H"], at["W"]), window.strides, taps, window.dilations)
        read = {"N": at["N"], "C": rc.var, "H": y, "W": x}
        own = {"O": at["C"], "I": rc.var, "H": taps[0].var, "W": taps[1].var}
        value = padded(*[read[axis] for axis in layout], ib.var)
        factor = ready(*[own[axis] for axis in kernel_layout], kb.var)
        count = _counted(value, factor, unipolar, out_dtype)
        total: Expr = te.sum(count << (ib.var + kb.var).astype(out_dtype), axis=[rc, *taps, kb, ib])
        return total

    shape = {"N": sizes["N"], "C": weight["O"], "H": window.places[0], "W": window.places[1]}
    out: te.Tensor = te.compute([shape[axis] for axis in layout], element, name=op, tag=default_tag(op))
    return out


def _by(amounts: dict[str, Dim], layout: str) -> Shape:
    return [*[amounts.get(axis, 0) for axis in layout], 0]


def _binarize_pack(data: np.ndarray, axis: int | None = None) -> np.ndarray:
    at = data.ndim - 1 if axis is None else axis % data.ndim
    return _bitpack(data >= 0, 1, at, at, "uint32").squeeze(at)


def _binarize_samples() -> Iterator[Sample]:
    yield Sample((real_numbers((3, 64)),))
    yield Sample((real_numbers((32, 2, 2)), 0))
    yield Sample((np.zeros((0, 32), "float32"),))


@operator(reference=_binarize_pack, samples=_binarize_samples, name="nn.binarize_pack")
def binarize_pack(data: te.Tensor, axis: int | None = None, name: str = "PackedInput") -> te.Tensor:
    """The signs of 32 numbers along `axis` (the last by default) as one word: a bit of 1 for those not below 0."""
    op = "binarize_pack"
    at_axis = axis_of(op, data.ndim - 1 if axis is None else axis, data.ndim)
    shape = list(data.shape)
    shape[at_axis] = _words(op, shape[at_axis], 32)

    def word(*at: Expr) -> Expr:
        index, packed = list(at), const(0, "uint32")
        for k in range(32):
            index[at_axis] = at[at_axis] * 32 + k
            sign = (data(*index) >= const(0, data.dtype)).astype("uint32")
            packed = packed | (sign << const(31 - k, "uint32"))
        return packed

    out: te.Tensor = te.compute(shape, word, name=name, tag=default_tag("binarize_pack"))
    return out


def _binary_dense(data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    def signs(words: np.ndarray) -> np.ndarray:
        bits = (words[:, :, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
        return bits.reshape(words.shape[0], 32 * words.shape[1]).astype(np.int64) * 2 - 1

    return signs(data) @ signs(weight).T


def _binary_samples() -> Iterator[Sample]:
    words = np.random.default_rng(0).integers(0, 2**32, (7, 3), dtype=np.uint32)
    yield Sample((words[:3], words[3:]))
    yield Sample((words[:1, :1].copy(), words[1:2, :1].copy()))


@operator(reference=_binary_dense, samples=_binary_samples, name="nn.binary_dense")
def binary_dense(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """`dense` of packed signs, (rows, words) by (units, words): float32 numbers from -32 · words to 32 · words."""
    op = "binary_dense"
    check_rank(op, "data", data, "(rows, words)", 2)
    check_rank(op, "weight", weight, "(units, words)", 2)
    check_same(op, "words differ", ("the data", data.shape[1]), ("the weight", weight.shape[1]))
    k = te.reduce_axis((0, data.shape[1]), name="k")
    counts = te.compute(
        (data.shape[0], weight.shape[0]),
        lambda i, j: te.sum(popcount(data(i, k.var) ^ weight(j, k.var)).astype("int32"), axis=k),
        name="count_differences",
        tag=default_tag(op),
    )
    cells = simplify(data.shape[1] * 32).astype("int32")
    out: te.Tensor = te.compute(
        counts.shape,
        lambda i, j: (cells - counts(i, j) * 2).astype("float32"),
        name="T_binary_dense",
        tag=default_tag(tag.ELEMWISE),
    )
    return out
