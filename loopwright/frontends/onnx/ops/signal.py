"""Signals: DFT, STFT, MelWeightMatrix. (Windows are functions of ONNX, and known when their size is.)

A transform of n numbers is a product with an n by n matrix; of n = a · b numbers, one with a by a and one with b by b
matrices, and a turn of every number between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.element_types import of_proto
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import times
from loopwright.relay.types import Dim

_SMALL: Final = 128  # a transform of no more numbers is one product

# Real and imaginary parts; None for imaginary parts that are zero.
Complex = tuple[Expr, Expr | None]


_LARGEST_TABLE = 1 << 26  # angles: a gigabyte while they are computed


def _combined(node: Node, one: Expr, other: Expr | None, sign: int) -> Expr:
    """one + sign · other, which may be zero."""
    if other is None:
        return one
    return relay.add(one, other) if sign > 0 else relay.subtract(one, other)


def _multiplied(node: Node, x: Complex, re: Expr, im: Expr, by: Callable[[Expr, Expr], Expr]) -> tuple[Expr, Expr]:
    """A complex tensor with constants, by a product that is linear."""
    real = _combined(node, by(x[0], re), None if x[1] is None else by(x[1], im), -1)
    imaginary = _combined(node, by(x[0], im), None if x[1] is None else by(x[1], re), 1)
    return real, imaginary


def _turns(rows: np.ndarray, columns: np.ndarray, size: int, inverse: bool) -> np.ndarray:
    """exp(-2πi · row · column / size); the products are reduced first, so that angles stay exact."""
    if len(rows) * columns.shape[-1] > _LARGEST_TABLE:
        raise MemoryError(f"a table of {len(rows)} by {columns.shape[-1]} angles")
    angle = 2 * np.pi * ((rows * columns) % size) / size
    return np.exp((1j if inverse else -1j) * angle)


def _direct(node: Node, x: Complex, size: int, keep: int, inverse: bool) -> tuple[Expr, Expr]:
    """The first `keep` numbers of the transform of the last of two axes, by a product."""
    turns = _turns(np.arange(keep)[:, None], np.arange(size)[None, :], size, inverse)
    re, im = node.const(turns.real, x[0]), node.const(turns.imag, x[0])
    return _multiplied(node, x, re, im, lambda part, matrix: relay.nn.dense(part, matrix))


def _divisor(size: int) -> int:
    """The largest divisor up to the square root; 1 of a prime."""
    return next(k for k in range(math.isqrt(size), 0, -1) if size % k == 0)


def transformed(node: Node, x: Complex, rows: Dim, size: int, keep: int, inverse: bool) -> tuple[Expr, Expr]:
    """The Fourier transform of each row of (rows, size), not divided by its size; its first `keep` numbers."""
    if size > _LARGEST_TABLE:
        raise MemoryError(f"a transform of {size} numbers")
    first = _divisor(size)
    if size <= _SMALL or first == 1:
        return _direct(node, x, size, keep, inverse)
    second = size // first

    # Place i·second + j; the transform over i for each j, turned by k·j, and the one over j: number k + first·l.
    def apart(part: Expr) -> Expr:
        cut = relay.transpose(relay.reshape(part, (rows, first, second), allowzero=True), axes=[0, 2, 1])
        return relay.reshape(cut, (times(rows, second), first), allowzero=True)

    inner = (apart(x[0]), None if x[1] is None else apart(x[1]))
    half = transformed(node, inner, times(rows, second), first, first, inverse)
    turns = _turns(np.arange(second)[:, None], np.arange(first)[None, :], size, inverse)
    re, im = node.const(turns.real, x[0]), node.const(turns.imag, x[0])
    wide = tuple(relay.reshape(part, (rows, second, first), allowzero=True) for part in half)
    turned = _multiplied(node, (wide[0], wide[1]), re, im, lambda part, by: relay.multiply(part, by))

    def across(part: Expr) -> Expr:
        return relay.reshape(relay.transpose(part, axes=[0, 2, 1]), (times(rows, first), second), allowzero=True)

    whole = transformed(node, (across(turned[0]), across(turned[1])), times(rows, first), second, second, inverse)

    def together(part: Expr) -> Expr:
        flat = relay.reshape(
            relay.transpose(relay.reshape(part, (rows, first, second), allowzero=True), axes=[0, 2, 1]),
            (rows, size),
            allowzero=True,
        )
        return flat if keep == size else relay.strided_slice(flat, begin=[0], end=[keep], axes=[1])

    return together(whole[0]), together(whole[1])


def _parts(node: Node, x: Expr) -> Complex:
    """A tensor whose last axis is that of real and imaginary parts."""
    shape = node.shape(x)
    rank = len(shape)
    if shape[-1] == 1:
        return relay.squeeze(x, axis=[rank - 1]), None
    if shape[-1] != 2:
        raise node.bad(f"the last axis has size {shape[-1]}: 1 for real numbers, 2 for complex ones")
    re, im = relay.split(x, 2, axis=rank - 1)
    return relay.squeeze(re, axis=[rank - 1]), relay.squeeze(im, axis=[rank - 1])


def _resized(node: Node, x: Expr, size: int) -> Expr:
    """The last axis cut off, or filled up with zeros."""
    shape = node.shape(x)
    given, rank = shape[-1], len(shape)
    if not isinstance(given, int):
        raise node.sizes_needed(f"the size {given} is transformed", [given])
    if given > size:
        return relay.strided_slice(x, begin=[0], end=[size], axes=[rank - 1])
    if given < size:
        return relay.nn.pad(x, [(0, 0)] * (rank - 1) + [(0, size - given)], pad_value=0)
    return x


@converter("DFT", since=17)
def dft_attribute(node: Node, x: Expr, length: Expr | None = None) -> Expr:
    return _dft(node, x, length, node.attr("axis", 1))


@converter("DFT", since=20)
def dft(node: Node, x: Expr, length: Expr | None = None, axis: Expr | None = None) -> Expr:
    if axis is not None and length is None and node.importer.dynamic and node.known(axis) is None:
        return _dft_dynamic(node, x, axis)
    return _dft(node, x, length, -2 if axis is None else int(node.scalar(axis)))


def _dft_dynamic(node: Node, x: Expr, axis: Expr) -> Expr:
    """An axis found when the model runs: the transform along every axis, and the choice among them."""
    rank = node.rank(x)
    if node.attr("onesided", 0):
        raise node.importer.value_needed(node, axis)  # which size is halved: no shape fits all choices
    given = relay.reshape(node.cast(axis, "int64"), ())
    over = relay.where(relay.less(given, node.const(0)), relay.add(given, node.const(rank)), given)
    result = _dft(node, x, None, 0)
    for one in range(1, rank - 1):
        result = relay.where(relay.equal(over, node.const(one)), _dft(node, x, None, one), result)
    return result


def _dft(node: Node, x: Expr, length: Expr | None, axis: int) -> Expr:
    rank = node.rank(x)
    if rank < 2:
        raise node.bad(f"the data has {rank} dimensions: the last one is that of real and imaginary parts")
    over = node.axis(axis, rank)
    if over == rank - 1:
        raise node.bad("the last axis is that of real and imaginary parts, and is not transformed")
    inverse, half = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    order = [k for k in range(rank - 1) if k != over] + [over]
    real, imaginary = _parts(node, x)
    re: Expr = relay.transpose(real, axes=order)
    im: Expr | None = None if imaginary is None else relay.transpose(imaginary, axes=order)
    given = node.shape(re)[-1]
    if length is not None:
        size = int(node.scalar(length))
    elif isinstance(given, int):
        size = 2 * (given - 1) if inverse and half else given
    else:
        raise node.sizes_needed(f"the size {given} of axis {over} is transformed", [given])
    if size < 1:
        raise node.bad(f"a transform of {size} numbers")
    lead = node.shape(re)[:-1]
    rows = times(*lead)

    def flat(part: Expr, wanted: int) -> Expr:
        return relay.reshape(_resized(node, part, wanted), (rows, wanted), allowzero=True)

    if inverse and half:
        full = _mirrored(node, (flat(re, size // 2 + 1), None if im is None else flat(im, size // 2 + 1)), size)
        results = [transformed(node, full, rows, size, size, inverse)[0]]
        keep = size
    else:
        keep = size // 2 + 1 if half else size
        whole_parts = (flat(re, size), None if im is None else flat(im, size))
        results = list(transformed(node, whole_parts, rows, size, keep, inverse))
    if inverse:
        results = [relay.divide(part, node.const(size, part)) for part in results]
    back = [(*order, rank - 1).index(k) for k in range(rank)]
    whole = [relay.reshape(part, (*lead, keep, 1), allowzero=True) for part in results]
    result = whole[0] if len(whole) == 1 else relay.concatenate(whole, axis=rank - 1)
    return relay.transpose(result, axes=back)


def _mirrored(node: Node, x: Complex, size: int) -> Complex:
    """The whole spectrum of real numbers from its first half: the other one is the same, conjugated."""
    locations = np.arange(size)
    kept = size // 2 + 1
    source = np.where(locations < kept, locations, size - locations)
    re, im = x
    real = relay.take(re, node.const(source), axis=1)
    if im is None:
        return real, None
    sign = np.where(locations < kept, 1.0, -1.0)
    return real, relay.multiply(relay.take(im, node.const(source), axis=1), node.const(sign, im))


@converter("STFT", since=17)
def stft(node: Node, x: Expr, step: Expr, window: Expr | None = None, length: Expr | None = None) -> Expr:
    """The spectra of overlapping pieces of a signal: (batch, pieces, frequencies, 2)."""
    hop = int(node.scalar(step))
    if length is not None:
        size = int(node.scalar(length))
    elif window is not None:
        size = node.static_shape(window)[0]
    else:
        raise node.bad("neither a window nor frame_length is given")
    batch = node.shape(x)[0]
    samples = node.static_shape(x)[1]
    if hop < 1 or not 1 <= size <= samples:
        raise node.bad(f"pieces of {size} every {hop} of a signal of {samples}")
    half = bool(node.attr("onesided", 1))
    re, im = _parts(node, x)
    if half and im is not None:
        raise node.bad("the spectrum of complex numbers has no half that says all: onesided is 1")
    count = (samples - size) // hop + 1
    locations = node.const(np.arange(count)[:, None] * hop + np.arange(size)[None, :])
    rows = times(batch, count)

    def pieces(part: Expr) -> Expr:
        used = relay.take(part, locations, axis=1)
        weighted = used if window is None else relay.multiply(used, _centred(node, window, size))
        return relay.reshape(weighted, (rows, size), allowzero=True)

    keep = size // 2 + 1 if half else size
    result = transformed(node, (pieces(re), None if im is None else pieces(im)), rows, size, keep, inverse=False)
    whole = [relay.reshape(part, (batch, count, keep, 1), allowzero=True) for part in result]
    return relay.concatenate(whole, axis=3)


def _centred(node: Node, window: Expr, size: int) -> Expr:
    """A window that is shorter than the pieces lies in their middle."""
    given = node.static_shape(window)[0]
    if given == size:
        return window
    before = (size - given) // 2
    return relay.nn.pad(window, [(before, size - given - before)], pad_value=0)


@converter("MelWeightMatrix", since=17)
def mel_weight_matrix(node: Node, bins: Expr, length: Expr, rate: Expr, low: Expr, high: Expr) -> Expr:
    """The matrix from frequencies to bands that are as far apart as one hears them."""
    count, size, sampling = (int(node.scalar(one)) for one in (bins, length, rate))
    lowest, highest = (float(node.scalar(one)) for one in (low, high))
    spectrum = size // 2 + 1

    def mel(frequency: float) -> float:
        return 2595 * math.log10(1 + frequency / 700)

    step = (mel(highest) - mel(lowest)) / (count + 2)
    edges = np.arange(count + 2) * step + mel(lowest)
    frequencies = 700 * (10 ** (edges / 2595) - 1)
    locations = ((size + 1) * frequencies // sampling).astype(np.int64)
    result = np.zeros((spectrum, count))
    for band in range(count):
        left, middle, right = locations[band : band + 3]
        rise = middle - left
        if rise == 0:
            result[middle, band] = 1
        else:
            result[left : middle + 1, band] = (np.arange(left, middle + 1) - left) / rise
        if right > middle:
            result[middle:right, band] = (right - np.arange(middle, right)) / (right - middle)
    return relay.const(result, of_proto(node.attr("output_datatype", 1)).dtype)
