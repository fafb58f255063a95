"""bias_add and scale_shift: one number, or a factor and a term, for each channel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.sizes import check_rank, check_same
from loopwright.topi.registry import Reference, Sample, operator
from loopwright.topi.rounding import rounded_sample
from loopwright.topi.samples import real_numbers, whole_numbers


def _bias_add(data: np.ndarray, bias: np.ndarray, axis: int = 1) -> np.ndarray:
    shape = [1] * data.ndim
    shape[axis] = bias.shape[0]
    return data + bias.reshape(shape)


def _bias_add_samples() -> Iterator[Sample]:
    for dtype in ("float32", "float64", "float16", "int8", "int32"):
        yield Sample((whole_numbers((2, 3, 4), dtype), whole_numbers((3,), dtype)))
    yield Sample((whole_numbers((2, 3, 4)), whole_numbers((4,)), -1))
    yield Sample((whole_numbers((0, 3)), whole_numbers((3,))))
    yield Sample((real_numbers((5, 7)), real_numbers((7,))))  # one addition: rounded once, as the reference is


@operator(reference=_bias_add, samples=_bias_add_samples, name="nn.bias_add")
def bias_add(data: te.Tensor, bias: te.Tensor, axis: int = 1) -> te.Tensor:
    """`data` plus one number for each index along `axis`."""
    op = "bias_add"
    at_axis = axis_of(op, axis, data.ndim)
    check_rank(op, "bias", bias, "(channels,)", 1)
    check_same(op, "channels differ", (f"axis {at_axis} of the data", data.shape[at_axis]), ("the bias", bias.shape[0]))
    out: te.Tensor = te.compute(
        data.shape, lambda *at: data(*at) + bias(at[at_axis]), name="T_add", tag=default_tag(tag.BROADCAST)
    )
    return out


def _reference(axes: Sequence[int]) -> Reference:
    def scale_shift(data: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
        shape = [data.shape[at] if at in axes else 1 for at in range(data.ndim)]
        return data * scale.reshape(shape) + shift.reshape(shape)

    return scale_shift


def _samples(shape: tuple[int, ...], axes: Sequence[int]) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        own = tuple(shape[axis] for axis in axes)
        yield Sample((whole_numbers(shape), whole_numbers(own), whole_numbers(own)))
        yield Sample((whole_numbers(shape, "int32"), whole_numbers(own, "int32"), whole_numbers(own, "int32")))
        yield Sample((np.zeros((0, *shape[1:]), "float32"), whole_numbers(own), whole_numbers(own)))
        yield rounded_sample(_reference(axes), real_numbers(shape), real_numbers(own), real_numbers(own, shift=1.0))

    return samples


@operator(reference=_reference([1]), samples=_samples((2, 3, 4, 5), [1]), name="nn.scale_shift_nchw")
def scale_shift_nchw(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input · Scale[c] + Shift[c], for data in NCHW."""
    return _scale_shift("scale_shift_nchw", Input, Scale, Shift, "NCHW", [1])


@operator(reference=_reference([3]), samples=_samples((2, 4, 5, 3), [3]), name="nn.scale_shift_nhwc")
def scale_shift_nhwc(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input · Scale[c] + Shift[c], for data in NHWC."""
    return _scale_shift("scale_shift_nhwc", Input, Scale, Shift, "NHWC", [3])


@operator(reference=_reference([1, 4]), samples=_samples((2, 2, 3, 3, 4), [1, 4]), name="nn.scale_shift_nchwc")
def scale_shift_nchwc(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input · Scale[C, c] + Shift[C, c], for blocked data, whose channels are two axes."""
    return _scale_shift("scale_shift_nchwc", Input, Scale, Shift, "NCHWc", [1, 4])


def _scale_shift(
    op: str, data: te.Tensor, scale: te.Tensor, shift: te.Tensor, layout: str, axes: Sequence[int]
) -> te.Tensor:
    check_rank(op, "data", data, layout, len(layout))
    for what, tensor in (("scale", scale), ("shift", shift)):
        check_rank(op, what, tensor, "of the channels", len(axes))
        for axis, size in zip(axes, tensor.shape, strict=True):
            check_same(op, "channels differ", (f"axis {axis} of the data", data.shape[axis]), (what, size))

    def element(*at: Expr) -> Expr:
        own = [at[axis] for axis in axes]
        return data(*at) * scale(*own) + shift(*own)

    out: te.Tensor = te.compute(data.shape, element, name="ScaleShift", tag=default_tag(tag.BROADCAST))
    return out
