"""signal: Fourier transforms, each frequency summed up by itself.

    re, im = topi.dft(re, im, inverse=False)

The turns e^(2πi·j/n) are a table that is computed once: the product of frequency and time, modulo n, says which one.
"""

from __future__ import annotations

from math import pi

from loopwright import te
from loopwright.ir import Expr, as_expr, cast, const
from loopwright.ir.intrinsics import cos, if_then_else, select, sin
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.te.tensor import dim_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.sizes import check_rank, check_same, is_zero, known, no_larger, simplify
from loopwright.topi.registry import operator
from loopwright.topi.testing import transforms as meaning
from loopwright.topi.types import Shape


@operator(reference=meaning.stft, samples=meaning.stft_samples)
def stft(
    data: te.Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    window: te.Tensor,
    normalized: bool,
    onesided: bool,
    output_shape: Shape,
) -> te.Tensor:
    """(batch, frequencies, frames, 2): the spectra of pieces of `data` (batch, time), real and imaginary parts.

    A piece has `n_fft` elements and begins `hop_length` after the one before. The window of `win_length` elements lies
    in the middle of it. `normalized` divides by the root of `n_fft`; `onesided` says that `output_shape` has only the
    frequencies that a real signal needs, n_fft // 2 + 1 of them.
    """
    op = "stft"
    check_rank(op, "data", data, "(batch, time)", 2)
    check_rank(op, "window", window, "(win_length)", 1)
    check_same(op, "the window", ("window", window.shape[0]), ("win_length", as_expr(win_length)))
    if win_length > n_fft:
        raise InvalidShapeError(op, f"win_length {win_length} is more than n_fft {n_fft}", "take a shorter window")
    shape = tuple(output_shape)
    check_same(op, "the batch", ("data", data.shape[0]), ("output_shape", as_expr(shape[0])))
    check_same(op, "real and imaginary part", ("output_shape", as_expr(shape[3])), ("both", as_expr(2)))
    reach = simplify((as_expr(shape[2]) - 1) * hop_length + (n_fft - win_length) // 2 + win_length)
    if not no_larger(reach, data.shape[1]) and not any(is_zero(size) for size in shape):
        problem = f"{dim_text(as_expr(shape[2]))} pieces reach past the {dim_text(data.shape[1])} elements of the data"
        raise InvalidShapeError(op, problem, "ask for fewer frames")
    kind = _real(op, data)
    left = (n_fft - win_length) // 2  # where in a piece the window begins
    turns = _turns(as_expr(n_fft), kind)
    k = te.reduce_axis((0, win_length), name="k")
    scale = const(n_fft**-0.5, kind)

    def body(b: Expr, frequency: Expr, frame: Expr, part: Expr) -> Expr:
        location = k.var + left
        turn = turns(_turn(frequency, location, as_expr(n_fft)), part)
        sample = data(b, frame * hop_length + location) * cast(window(k.var), kind)
        # The imaginary part turns the other way.
        return te.sum(sample * select(part.equal(0), turn, -turn), axis=k)

    spectra: te.Tensor = te.compute(shape, body, name="stft", tag=default_tag("stft"))
    if not normalized:
        return spectra
    result: te.Tensor = te.compute(
        shape, lambda *at: spectra(*at) * scale, name="stft_normalized", tag=default_tag("elemwise")
    )
    return result


@operator(reference=meaning.dft, samples=meaning.dft_samples)
def dft(re_data: te.Tensor, im_data: te.Tensor, inverse: bool = False) -> list[te.Tensor]:
    """[real part, imaginary part] of the Fourier transform along the last axis; the inverse is divided by its size."""
    op = "dft"
    kind = _real(op, re_data)
    if re_data.ndim == 0 or re_data.ndim != im_data.ndim or im_data.dtype is not re_data.dtype:
        raise InvalidShapeError(op, "the real and the imaginary part differ in shape or type", "give two of one kind")
    for axis in range(re_data.ndim):
        check_same(op, f"dimension {axis}", ("re_data", re_data.shape[axis]), ("im_data", im_data.shape[axis]))
    size = re_data.shape[-1]
    turns = _turns(size, kind)
    sign = 1.0 if inverse else -1.0

    def part(is_real: bool) -> te.Tensor:
        k = te.reduce_axis((0, size), name="k")

        def body(*at: Expr) -> Expr:
            location = _turn(at[-1], k.var, size)
            x, y = turns(location, 0), turns(location, 1) * sign
            re, im = re_data(*at[:-1], k.var), im_data(*at[:-1], k.var)
            return te.sum(re * x - im * y if is_real else re * y + im * x, axis=k)

        name = f"dft_{'re' if is_real else 'im'}"
        total: te.Tensor = te.compute(re_data.shape, body, name=name, tag=default_tag(name))
        if not inverse:
            return total
        mean: te.Tensor = te.compute(
            re_data.shape, lambda *at: total(*at) / cast(size, kind), name=f"{name}_mean", tag=default_tag("elemwise")
        )
        return mean

    return [part(True), part(False)]


def _turns(size: Expr, kind: DataType) -> te.Tensor:
    """Cosine and sine of 2πj/size, for j from 0 to size."""

    def body(j: Expr, part: Expr) -> Expr:
        angle = cast(j, kind) * const(2 * pi, kind) / cast(size, kind)
        return if_then_else(part.equal(0), cos(angle), sin(angle))

    table: te.Tensor = te.compute((size, 2), body, name="turns", tag=default_tag("turns"))
    return table


def _turn(frequency: Expr, index: Expr, size: Expr) -> Expr:
    """Which turn the product is, computed in a type that holds it."""
    number = known(size)
    if number is not None and number < 2**15:
        return (frequency * index) % size
    wide = DataType("int64")
    return cast((cast(frequency, wide) * cast(index, wide)) % cast(size, wide), size.dtype)


def _real(op: str, data: te.Tensor) -> DataType:
    if not isinstance(data, te.Tensor) or not data.dtype.is_float:
        raise UnsuitableType(op, f"the signal is {data!r}", "give a tensor of floating-point numbers")
    return data.dtype
