"""What convolutions are held against, and on what: whole numbers, whose sums are exact, and one sample of others.

The error of a sum of products is at most so many roundings, each of the sum of their absolute values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from loopwright.topi.registry import Bound, Reference, Sample
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.testing.convolution import conv_python, conv_transpose_python
from loopwright.topi.types import Arguments, DType, IntPadding, Ints

Samples = Callable[[], Iterator[Sample]]


def bound_of_products(reference: Reference, count: int, dtype: str, *rest: object) -> Bound:
    """How far off a result may be that sums `count` products of the first two arguments."""

    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        x, w = np.abs(args[0]), np.abs(args[1])
        return (count + 1) * float(np.finfo(dtype).eps) * reference(x, w, *rest)

    return bound


def products_sample(reference: Reference, x: np.ndarray, w: np.ndarray, count: int, *rest: object) -> Sample:
    """A sample with that bound."""
    return Sample((x, w, *rest), {}, bound_of_products(reference, count, str(x.dtype), *rest))


def _wide(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind == "f" else array.astype(np.int64)


def convolution(layout: str, kernel_layout: str, takes_groups: bool) -> tuple[Reference, Samples]:
    """The reference and the samples of one of the names of `conv`."""
    spatial = "".join(letter for letter in layout if letter in "DHW")
    count = len(spatial)

    def reference(
        x: np.ndarray, w: np.ndarray, stride: Ints = 1, padding: IntPadding = 0, dilation: Ints = 1, *rest: Any
    ) -> np.ndarray:
        groups = rest[0] if takes_groups and rest else 1
        return conv_python(_wide(x), _wide(w), stride, padding, dilation, groups, layout, kernel_layout)

    def shapes(
        sizes: Sequence[int], kernel: Sequence[int], inputs: int, features: int, groups: int = 1
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        data = dict(zip("NC" + spatial, (2, inputs, *sizes), strict=True))
        weight = dict(zip("OI" + spatial, (features, inputs // groups, *kernel), strict=True))
        return tuple(data[axis] for axis in layout), tuple(weight[axis] for axis in kernel_layout)

    def samples() -> Iterator[Sample]:
        plain = (1,) if takes_groups else ()
        sizes, kernel = (7, 6, 5)[:count], (3, 2, 3)[:count]
        data, weight = shapes(sizes, kernel, 3, 4)
        yield Sample((whole_numbers(data), whole_numbers(weight), 1, 1, 1, *plain))
        yield Sample((whole_numbers(data, "int32"), whole_numbers(weight, "int32"), 1, "SAME", 2, *plain))
        pads = [*range(count), *range(1, count + 1)]
        yield Sample((whole_numbers(data), whole_numbers(weight), [2, 1, 3][:count], pads, 1, *plain))
        narrow = whole_numbers(data, "uint8", 0, 255), whole_numbers(weight, "int8", -128, 127)
        yield Sample((*narrow, 1, "VALID", 1, *plain, "int32"))
        one = shapes((1,) * count, (1,) * count, 1, 1)
        yield Sample((whole_numbers(one[0], "float64"), whole_numbers(one[1], "float64"), 1, 0, 1, *plain))
        nothing = tuple(0 if axis == "N" else size for axis, size in zip(layout, data, strict=True))
        yield Sample((whole_numbers(nothing), whole_numbers(weight), 1, 1, 1, *plain))
        if takes_groups:
            grouped = shapes(sizes, kernel, 6, 4, 2)
            yield Sample((whole_numbers(grouped[0]), whole_numbers(grouped[1]), 1, 1, 1, 2))
        real = real_numbers(data), real_numbers(weight)
        yield products_sample(reference, *real, 3 * prod(kernel), 2, 1, 1, *plain)

    return reference, samples


def transposed(spatial: str, grouped: bool) -> tuple[Reference, Samples]:
    """The same for a transposed convolution of data in NC…, a weight in IO…."""
    count = len(spatial)

    def reference(
        x: np.ndarray,
        w: np.ndarray,
        strides: Ints,
        padding: IntPadding,
        out_dtype: DType | None = None,
        extra: Ints = 0,
        groups: int = 1,
    ) -> np.ndarray:
        return conv_transpose_python(_wide(x), _wide(w), strides, padding, extra, groups)

    def samples() -> Iterator[Sample]:
        sizes, kernel = (4, 3, 2)[:count], (3, 2, 3)[:count]
        data, weight = (2, 4, *sizes), (4, 3, *kernel)
        yield Sample((whole_numbers(data), whole_numbers(weight), 2, 1, None, 1))
        if count < 3:  # three dimensions take long to build, and are the same code
            yield Sample((whole_numbers(data, "int8"), whole_numbers(weight, "int8"), 3, 0, "int32", 2))
        if grouped:
            yield Sample((whole_numbers(data), whole_numbers(weight), 2, 0, None, 0, 2))
        real = real_numbers(data), real_numbers(weight)
        yield products_sample(reference, *real, 4 * prod(kernel), 2, 0, None, 0)

    return reference, samples
