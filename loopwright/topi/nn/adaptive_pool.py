"""Adaptive pooling: the result has the size that was asked for, whatever the size of the data.

    window i of `out` over a length of `size`:  from ⌊i · size / out⌋ to ⌈(i + 1) · size / out⌉

Where `out` divides the length, all windows have one size and stand side by side, as in ordinary pooling. Elsewhere they
overlap and their sizes differ by one or two; all take as many taps as the longest, and those past its end do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from loopwright import te
from loopwright.ir import Expr, IterVar, as_expr
from loopwright.ir.intrinsics import all as all_of
from loopwright.te.assumed_sizes import assume
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.nn.pooling import TAPS, check_type, divide, spatial_axes
from loopwright.topi.parts.sizes import each, known, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.rounding import Rounded, rounded_sample
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import Dims


def _adaptive_pool(data: np.ndarray, output_size: Dims, pool_type: str, layout: str) -> np.ndarray:
    if isinstance(data, Rounded):
        # A mean is a sum and a division; nothing else is rounded.
        return Rounded(
            _adaptive_pool(data.value, output_size, pool_type, layout),
            data.dtype,
            _adaptive_pool(np.abs(data.value), output_size, pool_type, layout)
            * (data.value.size + 1)
            * np.finfo(data.dtype).eps,
        )
    spatial = [axis for axis, letter in enumerate(layout) if letter in "DHW"]
    sizes = output_size if isinstance(output_size, (list, tuple)) else [output_size] * len(spatial)
    shape = list(data.shape)
    for axis, size in zip(spatial, sizes, strict=True):
        shape[axis] = size
    out = np.zeros(shape, data.dtype)
    for locations in np.ndindex(*sizes):
        into: list[slice | int] = [slice(None)] * data.ndim
        window: list[slice | int] = [slice(None)] * data.ndim
        for axis, size, location in zip(spatial, sizes, locations, strict=True):
            into[axis] = location
            window[axis] = slice(location * data.shape[axis] // size, -(-(location + 1) * data.shape[axis] // size))
        part = data[tuple(window)]
        if pool_type == "max":
            out[tuple(into)] = part.max(axis=tuple(spatial))
        else:
            whole = data.dtype.kind in "iu"
            total = part.sum(axis=tuple(spatial), dtype=data.dtype).astype(np.int64 if whole else data.dtype)
            count = int(np.prod([part.shape[axis] for axis in spatial]))
            out[tuple(into)] = np.sign(total) * (np.abs(total) // count) if whole else total / count
    return out


def _samples(spatial: str) -> Callable[[], Iterator[Sample]]:
    count = len(spatial)
    sizes = (7, 5, 6)[:count]
    even = [size // 2 if size % 2 == 0 else size for size in sizes]
    outs = (3, 2, 4)[:count]

    def samples() -> Iterator[Sample]:
        first, last = "NC" + spatial, "N" + spatial + "C"
        for kind in ("max", "avg"):
            yield Sample((whole_numbers((2, 3, *sizes), "int32"), outs, kind, first))
            yield Sample((whole_numbers((2, *sizes, 3), "int32"), even, kind, last))
            yield Sample((whole_numbers((1, 2, *sizes), "int8"), 1, kind, first))
        yield Sample((whole_numbers((2, 3, *sizes)), outs, "max", first))
        yield Sample((whole_numbers((1, 2, *sizes)), [size + 2 for size in sizes], "max", first))  # more than there are
        yield Sample((np.zeros((0, 3, *sizes), "float32"), outs, "avg", first))
        yield rounded_sample(_adaptive_pool, real_numbers((2, 3, *sizes)), outs, "avg", first)
        yield rounded_sample(_adaptive_pool, real_numbers((1, 2, *sizes), "float64"), even, "avg", first)

    return samples


@operator(reference=_adaptive_pool, samples=_samples("HW"), name="nn.adaptive_pool")
def adaptive_pool(data: te.Tensor, output_size: Dims, pool_type: str, layout: str = "NCHW") -> te.Tensor:
    """Pooling of H and W to `output_size`, one number or two."""
    return _adaptive("adaptive_pool", data, output_size, pool_type, layout, "HW")


@operator(reference=_adaptive_pool, samples=_samples("W"), name="nn.adaptive_pool1d")
def adaptive_pool1d(data: te.Tensor, output_size: Dims, pool_type: str, layout: str = "NCW") -> te.Tensor:
    """Pooling of W to `output_size`."""
    return _adaptive("adaptive_pool1d", data, output_size, pool_type, layout, "W")


@operator(reference=_adaptive_pool, samples=_samples("DHW"), name="nn.adaptive_pool3d")
def adaptive_pool3d(data: te.Tensor, output_size: Dims, pool_type: str, layout: str = "NCDHW") -> te.Tensor:
    """Pooling of D, H and W to `output_size`, one number or three."""
    return _adaptive("adaptive_pool3d", data, output_size, pool_type, layout, "DHW")


class _Windows(NamedTuple):
    """The windows along one axis: `out` of them, over a length of `size`."""

    axis: int
    size: Expr
    out: int
    tap: IterVar

    @property
    def is_even(self) -> bool:
        """Whether all windows have the size of the axis `tap`."""
        length = known(self.size)
        return self.out == 1 or (length is not None and length % self.out == 0)

    def start(self, index: Expr) -> Expr:
        return simplify(index * simplify(self.size // self.out)) if self.is_even else index * self.size // self.out

    def cells(self, index: Expr) -> Expr:
        if self.is_even:
            return simplify(self.size // self.out)
        end = ((index + 1) * self.size + self.out - 1) // self.out
        return end - self.start(index)


def _windows(axis: int, size: Expr, out: int, name: str) -> _Windows:
    length = known(size)
    if length is None:
        assume(as_expr(size) >= 1, [size], "it at least 1, for a window of nothing has no mean and no maximum")
    if out == 1 or (length is not None and length % out == 0):
        longest = simplify(size // out)
    elif length is not None:
        longest = as_expr(max(-(-(i + 1) * length // out) - i * length // out for i in range(out)))
    else:
        longest = simplify(size // out + 2)  # both ends may reach into a further cell
    return _Windows(axis, size, out, te.reduce_axis((0, longest), name=name))


def _adaptive(op: str, data: te.Tensor, output_size: Dims, pool_type: str, layout: str, spatial: str) -> te.Tensor:
    axes = spatial_axes(op, layout, spatial, data)
    check_type(op, pool_type)
    sizes = each(op, "output_size", output_size, len(axes))
    windows = [
        _windows(axis, data.shape[axis], out, TAPS[letter])
        for axis, out, letter in zip(axes, sizes, spatial, strict=True)
    ]
    shape = list(data.shape)
    for window in windows:
        shape[window.axis] = as_expr(window.out)
    taps = [window.tap for window in windows]

    def cell(at: Sequence[Expr]) -> Expr:
        read: list[Expr] = list(at)
        for window in windows:
            start = window.start(at[window.axis])
            read[window.axis] = window.tap.var if window.out == 1 else start + window.tap.var
        value: Expr = data(*read)
        return value

    def inside(at: Sequence[Expr]) -> Expr | None:
        tests = [w.tap.var < w.cells(at[w.axis]) for w in windows if not w.is_even]
        return all_of(*tests) if tests else None

    reduce = te.max if pool_type == "max" else te.sum
    name = "adaptive_pool_max" if pool_type == "max" else "adaptive_pool_sum"
    result: te.Tensor = te.compute(
        shape, lambda *at: reduce(cell(at), axis=taps, where=inside(at)), name=name, tag=default_tag(name)
    )
    if pool_type == "max":
        return result

    def count(at: Sequence[Expr]) -> Expr:
        number = as_expr(1)
        for window in windows:
            number = number * window.cells(at[window.axis])
        return simplify(number)

    mean: te.Tensor = te.compute(
        shape, lambda *at: divide(result(*at), count(at)), name="adaptive_pool_avg", tag=default_tag(tag.ELEMWISE)
    )
    return mean
