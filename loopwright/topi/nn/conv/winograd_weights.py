"""Weights of convolutions made ready ahead: transformed for winograd, or cut into tiles of a matrix.

conv2d_winograd_weight_transform(kernel, tile)   G g Gᵀ for each pair of channels, with the matrices of
                                                 `schedule.winograd`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import select
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.winograd import transforms
from loopwright.schedule.winograd.matrices import Transforms
from loopwright.te.assumed_sizes import assume
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import BadWindow
from loopwright.topi.parts.sizes import check_rank, check_same, known, simplify
from loopwright.topi.registry import Bound, Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import Arguments, Dim, DType


class NoWinograd(LoopwrightError, ValueError, NotImplementedError, AssertionError):
    """Winograd has no matrices for a tile and a window, or the convolution is not of stride 1 and dilation 1.

    Tiles have 2 to 8 results each way, windows 3 to 7 taps.

    For example:

        from loopwright import te, topi

        kernel = te.placeholder((8, 8, 3, 3), name="kernel")
        topi.nn.conv2d_winograd_weight_transform(kernel, tile_size=9)
    """

    code = "LW1140"

    def __init__(self, op: str, problem: str, hint: str) -> None:
        super().__init__(f"{op}: {problem}", hint=hint, fields={"op": op})


def constant_matrix(rows: Sequence[Sequence[Fraction]], dtype: DType, name: str) -> te.Tensor:
    """A constant matrix as a stage: the schedule inlines it, or keeps it as a small table."""
    height, width = len(rows), len(rows[0])

    def cell(i: Expr, j: Expr) -> Expr:
        value = const(0.0, dtype)
        for a in range(height):
            for b in range(width):
                if rows[a][b]:
                    value = select(te.all(i.equal(a), j.equal(b)), const(float(rows[a][b]), dtype), value)
        return value

    result: te.Tensor = te.compute((height, width), cell, name=name, tag=default_tag("const_matrix"))
    return result


def numbers_of(rows: Sequence[Sequence[Fraction]]) -> np.ndarray:
    """A matrix in numpy."""
    return np.array([[float(number) for number in row] for row in rows])


def checked_transforms(op: str, tile: int, window: Dim) -> Transforms:
    """The matrices for a tile and a window, refused where there are none."""
    taps = known(window)
    if not isinstance(tile, int) or not 2 <= tile <= 8:
        raise NoWinograd(op, f"there are no tiles of {tile!r}", "take a tile of 2 to 8 results")
    if taps is None or not 3 <= taps <= 7:
        raise NoWinograd(op, f"there are no matrices for a window of {taps} taps", "windows have 3 to 7 taps")
    try:
        return transforms(tile, taps)
    except ValueError as error:
        raise NoWinograd(op, str(error), "take a smaller tile") from None


def weight_transform(kernel: np.ndarray, tile_size: int) -> np.ndarray:
    """G g Gᵀ in numpy, of a weight in OIHW."""
    g = numbers_of(transforms(tile_size, kernel.shape[2]).weight)
    return np.einsum("ak,bl,oikl->aboi", g, g, kernel)


def _transform_bound(count: int) -> Callable[..., Bound]:
    """So many terms, each the weight times one constant a dimension, which is rounded itself."""

    def of(tile: int) -> Bound:
        def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
            kernel = np.abs(args[0])
            total = kernel
            for axis in range(2, kernel.ndim):
                if kernel.shape[axis] >= 3:
                    g = np.abs(numbers_of(transforms(tile, kernel.shape[axis]).weight))
                    total = np.moveaxis(np.tensordot(g, total, (1, axis)), 0, axis)
            spatial = tuple(range(2, total.ndim))
            return (count + 6) * float(np.finfo("float32").eps) * total.transpose(*spatial, 0, 1)

        return bound

    return of


def _weight_samples() -> Iterator[Sample]:
    bound = _transform_bound(9)
    yield Sample((real_numbers((4, 3, 3, 3)), 4), bound=bound(4))
    yield Sample((real_numbers((1, 2, 3, 3)), 2), bound=bound(2))
    yield Sample((real_numbers((2, 2, 5, 5)), 2), bound=_transform_bound(25)(2))


@operator(reference=weight_transform, samples=_weight_samples, name="nn.conv2d_winograd_weight_transform")
def conv2d_winograd_weight_transform(kernel: te.Tensor, tile_size: int) -> te.Tensor:
    """G g Gᵀ of a weight in OIHW, for tiles of `tile_size` results each way: (size, size, O, I)."""
    op = "conv2d_winograd_weight_transform"
    check_rank(op, "weight", kernel, "OIHW", 4)
    check_same(op, "the window is not square", ("rows", kernel.shape[2]), ("columns", kernel.shape[3]))
    return transformed_weight(op, kernel, tile_size, lambda o, i, y, x: kernel(o, i, y, x), kernel.shape[:2])


def transformed_weight(
    op: str,
    kernel: te.Tensor,
    tile: int,
    read: Callable[..., Expr],
    channels: Sequence[Expr],
    taps: Dim | None = None,
) -> te.Tensor:
    """The stage G g Gᵀ; `read` gives the weight of an output and an input channel at a tap."""
    result = checked_transforms(op, tile, kernel.shape[2] if taps is None else taps)
    g = constant_matrix(result.weight, kernel.dtype, "G")
    r_kh, r_kw = (te.reduce_axis((0, result.window), name=name) for name in ("r_kh", "r_kw"))

    def element(eps: Expr, nu: Expr, o: Expr, i: Expr) -> Expr:
        total: Expr = te.sum(read(o, i, r_kh.var, r_kw.var) * g(eps, r_kh.var) * g(nu, r_kw.var), axis=[r_kh, r_kw])
        return total

    shape = (result.size, result.size, *channels)
    out: te.Tensor = te.compute(shape, element, name="transform_weight", tag=default_tag("winograd_weight_transform"))
    return out


def _weight_transform3d(kernel: np.ndarray, tile_size: int) -> np.ndarray:
    g = numbers_of(transforms(tile_size, kernel.shape[3]).weight)
    if kernel.shape[2] < 3:
        return np.einsum("bk,cl,oidkl->bcdoi", g, g, kernel)
    return np.einsum("aj,bk,cl,oijkl->abcoi", g, g, g, kernel)


def _weight_samples3d() -> Iterator[Sample]:
    yield Sample((real_numbers((2, 3, 3, 3, 3)), 2), bound=_transform_bound(27)(2))

    def shallow(args: Arguments, exact: np.ndarray) -> np.ndarray:
        # The depth is not transformed, and stands after the other two.
        return np.asarray(_transform_bound(9)(4)(args, exact)).transpose(1, 2, 0, 3, 4)

    yield Sample((real_numbers((2, 3, 1, 3, 3)), 4), bound=shallow)


@operator(reference=_weight_transform3d, samples=_weight_samples3d, name="nn.conv3d_winograd_weight_transform")
def conv3d_winograd_weight_transform(kernel: te.Tensor, tile_size: int) -> te.Tensor:
    """The same of a weight in OIDHW: (size, size, size, O, I), or (size, size, D, O, I) with fewer than 3 taps deep."""
    op = "conv3d_winograd_weight_transform"
    check_rank(op, "weight", kernel, "OIDHW", 5)
    outputs, inputs, deep, rows, columns = kernel.shape
    check_same(op, "the window is not square", ("rows", rows), ("columns", columns))
    result = checked_transforms(op, tile_size, rows)
    g = constant_matrix(result.weight, kernel.dtype, "G")
    r_kh, r_kw = (te.reduce_axis((0, result.window), name=name) for name in ("r_kh", "r_kw"))
    if (known(deep) or 0) < 3:
        if known(deep) is None:
            assume(deep < 3, [deep], "it less than 3, for the window is not transformed along it")

        def flat(eps: Expr, nu: Expr, d: Expr, o: Expr, i: Expr) -> Expr:
            value = kernel(o, i, d, r_kh.var, r_kw.var) * g(eps, r_kh.var) * g(nu, r_kw.var)
            total: Expr = te.sum(value, axis=[r_kh, r_kw])
            return total

        shape = (result.size, result.size, deep, outputs, inputs)
        thin: te.Tensor = te.compute(shape, flat, name="transform_weight")
        return thin
    check_same(op, "the window is no cube", ("depth", deep), ("rows", rows))
    r_kd = te.reduce_axis((0, result.window), name="r_kd")

    def cube(omg: Expr, eps: Expr, nu: Expr, o: Expr, i: Expr) -> Expr:
        value = kernel(o, i, r_kd.var, r_kh.var, r_kw.var) * g(omg, r_kd.var) * g(eps, r_kh.var) * g(nu, r_kw.var)
        total: Expr = te.sum(value, axis=[r_kd, r_kh, r_kw])
        return total

    out: te.Tensor = te.compute((result.size,) * 3 + (outputs, inputs), cube, name="transform_weight")
    return out


def _gemm_transform(kernel: np.ndarray, tile_N: int, tile_K: int) -> np.ndarray:
    rows, columns, inputs, outputs = kernel.shape
    flat = kernel.reshape(rows * columns * inputs, outputs)
    more = -flat.shape[0] % tile_K, -outputs % tile_N
    flat = np.pad(flat, [(0, more[0]), (0, more[1])])
    parts = flat.reshape(flat.shape[0] // tile_K, tile_K, flat.shape[1] // tile_N, tile_N)
    return parts.transpose(2, 0, 3, 1)


def _gemm_samples() -> Iterator[Sample]:
    for dtype in ("float32", "int8"):
        yield Sample((whole_numbers((3, 3, 2, 5), dtype), 4, 4))
    yield Sample((whole_numbers((1, 1, 8, 8), "uint8", 0, 255), 4, 8))


@operator(reference=_gemm_transform, samples=_gemm_samples, name="nn.conv2d_gemm_weight_transform")
def conv2d_gemm_weight_transform(kernel: te.Tensor, tile_N: int, tile_K: int) -> te.Tensor:
    """A weight in HWIO as tiles of a matrix: (O // tile_N, H·W·I // tile_K, tile_N, tile_K), zeros filling the last."""
    op = "conv2d_gemm_weight_transform"
    check_rank(op, "weight", kernel, "HWIO", 4)
    if min(tile_N, tile_K) < 1:
        raise BadWindow(op, f"tiles of {tile_N} × {tile_K}", "a tile has at least one column and one row")
    rows, columns, inputs, outputs = kernel.shape
    deep = simplify(rows * columns * inputs)

    def cell(n: Expr, k: Expr, i: Expr, j: Expr) -> Expr:
        at, column = k * tile_K + j, n * tile_N + i
        read = kernel(at // inputs // columns, at // inputs % columns, at % inputs, column)
        if known(deep % tile_K) == 0 and known(outputs % tile_N) == 0:
            return read
        return te.if_then_else(te.all(at < deep, column < outputs), read, const(0, kernel.dtype))

    shape = (
        simplify((outputs + tile_N - 1) // tile_N),
        simplify((deep + tile_K - 1) // tile_K),
        tile_N,
        tile_K,
    )
    out: te.Tensor = te.compute(shape, cell, name="weight_block_reshape", tag=default_tag(tag.INJECTIVE))
    return out
