"""dilate: put cells between those of a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, maximum
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.parts.sizes import each, is_zero, known, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type
from loopwright.topi.testing.convolution import dilate_python
from loopwright.topi.types import Scalar, Shape


def _dilate(data: np.ndarray, strides: Sequence[int], dilation_value: float = 0.0) -> np.ndarray:
    return dilate_python(data, strides, dilation_value)


def _samples() -> Iterator[Sample]:
    yield from of_each_type((2, 3), (2, 1))
    yield Sample((numbers((2, 3, 4)), (1, 3, 2), -1.5))
    yield Sample((numbers((0, 3)), (2, 2)))
    yield Sample((numbers((3, 1)), (1, 1)))


def _spread(size: Expr, step: int) -> Expr:
    """How many cells reach from the first to the last; of none, none."""
    reach = (size - 1) * step + 1
    return simplify(reach if known(size) is not None else maximum(reach, 0))


@operator(reference=_dilate, samples=_samples, name="nn.dilate")
def dilate(data: te.Tensor, strides: Shape, dilation_value: Scalar = 0.0, name: str = "DilatedInput") -> te.Tensor:
    """`data` with its neighbours `strides` cells apart, `dilation_value` between them."""
    steps = each(name, "strides", strides, data.ndim)
    sizes = zip(data.shape, steps, strict=True)
    shape = [size if is_zero(size) or step == 1 else _spread(size, step) for size, step in sizes]
    if isinstance(dilation_value, Expr):
        between = as_expr(dilation_value).astype(data.dtype)
    else:
        between = const(dilation_value, data.dtype)

    def cell(*indices: Expr) -> Expr:
        on = [(index % step).equal(0) for index, step in zip(indices, steps, strict=True) if step != 1]
        locations = [index // step if step != 1 else index for index, step in zip(indices, steps, strict=True)]
        read: Expr = data(*locations)
        return if_then_else(all_of(*on), read, between) if on else read

    dilated: te.Tensor = te.compute(shape, cell, name=name, tag=default_tag(f"{tag.INJECTIVE},dilate"))
    return dilated
