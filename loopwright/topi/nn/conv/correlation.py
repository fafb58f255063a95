"""correlation_nchw: how well patches of one picture fit patches of another, for every small displacement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import BadWindow
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.parts.pad_amounts import get_pad_tuple
from loopwright.topi.parts.sizes import at_least, check_rank, check_same, known, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import IntPadding, Padding


def _correlation(
    one: np.ndarray,
    other: np.ndarray,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: IntPadding,
    is_multiply: bool,
) -> np.ndarray:
    top, left, bottom, right = get_pad_tuple(padding, (1, 1))
    around = [(0, 0), (0, 0), (top, bottom), (left, right)]
    a, b = np.pad(one, around), np.pad(other, around)
    radius, border = max_displacement // stride2, max_displacement + kernel_size // 2
    height, width = (-(-(size - 2 * border) // stride1) for size in a.shape[2:])
    across = 2 * radius + 1
    out = np.zeros((one.shape[0], across * across, height, width))
    for q, y, x in np.ndindex(across * across, height, width):
        i, j = y * stride1 + max_displacement, x * stride1 + max_displacement
        p, r = i + (q // across - radius) * stride2, j + (q % across - radius) * stride2
        patch = a[:, :, i : i + kernel_size, j : j + kernel_size]
        moved = b[:, :, p : p + kernel_size, r : r + kernel_size]
        total = patch * moved if is_multiply else np.abs(patch - moved)
        out[:, q, y, x] = total.sum(axis=(1, 2, 3)) / (kernel_size * kernel_size * one.shape[1])
    return out


def _samples() -> Iterator[Sample]:
    pair = whole_numbers((2, 4, 8, 9)), whole_numbers((2, 4, 8, 9), low=-3, high=5)
    for is_multiply in (True, False):
        yield Sample((*pair, 1, 2, 1, 1, 2, is_multiply))
    wide = real_numbers((1, 3, 8, 8)), real_numbers((1, 3, 8, 8), shift=1.0)
    eps = float(np.finfo("float32").eps)
    # 27 terms, each a product or a difference, and a division.
    yield Sample(
        (*wide, 3, 2, 2, 2, (1, 2, 1, 2), True),
        bound=lambda args, exact: 29 * eps * _correlation(np.abs(args[0]), np.abs(args[1]), *args[2:]),
    )


@operator(reference=_correlation, samples=_samples, name="nn.correlation_nchw")
def correlation_nchw(
    data1: te.Tensor,
    data2: te.Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Padding,
    is_multiply: bool,
) -> te.Tensor:
    """The mean product (or absolute difference) of patches of `kernel_size`, an odd number.

    Patches of `data1` are `stride1` apart, those of `data2` are displaced by multiples of `stride2` up to
    `max_displacement`; each displacement is a channel of the result.
    """
    op = "correlation_nchw"
    check_rank(op, "first data", data1, "NCHW", 4)
    check_rank(op, "second data", data2, "NCHW", 4)
    for axis in range(4):
        check_same(op, f"axis {axis} differs", ("data1", data1.shape[axis]), ("data2", data2.shape[axis]))
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise BadWindow(op, f"kernel_size is {kernel_size}", "give an odd number, so that a patch has a middle")
    if min(stride1, stride2) < 1 or max_displacement < 0:
        problem = f"strides {stride1} and {stride2}, displacement {max_displacement}"
        raise BadWindow(op, problem, "strides are at least 1, the displacement at least 0")
    top, left, bottom, right = get_pad_tuple(padding, (1, 1))
    batch, channels, height, width = data1.shape
    one = pad_unless_zero(data1, [0, 0, top, left], [0, 0, bottom, right])
    other = pad_unless_zero(data2, [0, 0, top, left], [0, 0, bottom, right])
    radius, border = max_displacement // stride2, max_displacement + kernel_size // 2
    across = 2 * radius + 1
    locations = []
    for size in (height + top + bottom, width + left + right):
        free = simplify(size - 2 * border)
        if not at_least(free, 0):
            raise BadWindow(op, f"a border of {border} leaves nothing of {known(size)} cells", "pad more")
        locations.append(simplify((free + stride1 - 1) // stride1))
    rc = te.reduce_axis((0, channels), name="rc")
    ry, rx = (te.reduce_axis((0, kernel_size), name=name) for name in ("ry", "rx"))

    def total(n: Expr, q: Expr, y: Expr, x: Expr) -> Expr:
        i, j = y * stride1 + max_displacement + ry.var, x * stride1 + max_displacement + rx.var
        a = one(n, rc.var, i, j)
        b = other(n, rc.var, i + (q // across - radius) * stride2, j + (q % across - radius) * stride2)
        value: Expr = te.sum(a * b if is_multiply else te.abs(a - b), axis=[rc, ry, rx])
        return value

    shape = (batch, as_expr(across * across), *locations)
    summed = te.compute(shape, total, name="correlation_sum", tag=default_tag(op))
    cells = simplify(channels * (kernel_size * kernel_size)).astype(data1.dtype)
    out: te.Tensor = te.compute(
        shape, lambda *at: te.div(summed(*at), cells), name="correlation", tag=default_tag(tag.ELEMWISE)
    )
    return out
