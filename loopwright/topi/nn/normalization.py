"""Normalisation by the data's own mean and variance: layer_norm, instance_norm, group_norm, rms_norm.

    out = (x - mean) / sqrt(variance + epsilon) · gamma + beta

The variance is the mean of (x - mean)², in a second pass over data that is still near: the one-pass form
E[x²] - E[x]² loses all digits where the mean is large beside the spread. Narrow types are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr, const
from loopwright.ir.intrinsics import rsqrt
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.axes import axes_of, axis_of
from loopwright.topi.parts.row_major import count_as
from loopwright.topi.parts.sizes import check_rank, check_same, known, multiple_of, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.rounding import rounded_sample
from loopwright.topi.samples import real_numbers
from loopwright.topi.types import Axes, Dim, Ints, Shape

# From the name of a stage and a term, which is made of the indices of a row and of an element of it: the row's sum.
Reduced = Callable[[str, Callable[[Shape, Expr], Expr]], te.Tensor]


def _normalized(x: np.ndarray, axes: Sequence[int], epsilon: float) -> np.ndarray:
    """What all of them have in common, in numpy."""
    centred = x - x.mean(axis=tuple(axes), keepdims=True)
    spread = (centred * centred).mean(axis=tuple(axes), keepdims=True)
    return centred / np.sqrt(spread + epsilon)


def _layer_norm(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray | None = None, axis: Ints = -1, epsilon: float = 1e-5
) -> np.ndarray:
    axes = sorted(one % x.ndim for one in (axis if isinstance(axis, Sequence) else [axis]))
    shape = [size if at in axes else 1 for at, size in enumerate(x.shape)]
    out = _normalized(x, axes, epsilon)
    out = out if gamma is None else out * gamma.reshape(shape)
    return out if beta is None else out + beta.reshape(shape)


def _layer_norm_samples() -> Iterator[Sample]:
    for shape, axis in (((3, 7), [1]), ((2, 3, 5), [1, 2]), ((2, 3, 5), [-1]), ((4, 1), [1]), ((2, 5, 3), [1])):
        inner = tuple(shape[one] for one in axis)
        yield rounded_sample(
            _layer_norm, real_numbers(shape), real_numbers(inner), real_numbers(inner), axis, dtype="float32"
        )
    far = real_numbers((3, 16), shift=1000.0)  # the one-pass form would be off in the second digit here
    yield rounded_sample(_layer_norm, far, real_numbers((16,)), real_numbers((16,)), [1])
    yield rounded_sample(_layer_norm, real_numbers((3, 7), "float64"), real_numbers((7,), "float64"), None, [1], 1e-3)
    half = real_numbers((3, 7), "float16"), real_numbers((7,), "float16"), real_numbers((7,), "float16")
    yield rounded_sample(_layer_norm, *half, [1], dtype="float32")  # rounded to float16 once
    yield Sample((np.zeros((0, 3), "float32"), real_numbers((3,)), real_numbers((3,)), [1]))


@operator(reference=_layer_norm, samples=_layer_norm_samples, name="nn.layer_norm")
def layer_norm(
    data: te.Tensor, gamma: te.Tensor | None, beta: te.Tensor | None, axis: Axes, epsilon: float = 1e-5
) -> te.Tensor:
    """Normalise over `axis` (one or several); gamma and beta have the shape of those axes."""
    axes = sorted(axes_of("layer_norm", axis, data.ndim))
    return _over_axes("layer_norm", data, gamma, beta, axes, epsilon, axes)


def _instance_norm(
    x: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    axis: Sequence[int],
    epsilon: float = 1e-5,
    channel_axis: int | None = None,
) -> np.ndarray:
    if channel_axis is None:
        return _layer_norm(x, gamma, beta, axis, epsilon)
    shape = [size if at == channel_axis else 1 for at, size in enumerate(x.shape)]
    return _normalized(x, axis, epsilon) * gamma.reshape(shape) + beta.reshape(shape)


def _instance_norm_samples() -> Iterator[Sample]:
    shape = (2, 3, 4, 5)
    inner = real_numbers((4, 5)), real_numbers((4, 5), shift=1.0)
    yield rounded_sample(_instance_norm, real_numbers(shape), *inner, [2, 3])
    channels = real_numbers((3,)), real_numbers((3,), shift=1.0)
    yield rounded_sample(_instance_norm, real_numbers(shape), *channels, [2, 3], channel_axis=1)
    yield rounded_sample(_instance_norm, real_numbers((2, 4, 3)), *channels, [1], 1e-2, channel_axis=2)
    yield Sample((np.zeros((0, 3, 2), "float32"), *channels, [2]), {"channel_axis": 1})


@operator(reference=_instance_norm, samples=_instance_norm_samples, name="nn.instance_norm")
def instance_norm(
    data: te.Tensor,
    gamma: te.Tensor | None,
    beta: te.Tensor | None,
    axis: Axes,
    epsilon: float = 1e-5,
    channel_axis: int | None = None,
) -> te.Tensor:
    """Normalise each image over `axis`, its spatial axes.

    gamma and beta have the shape of those axes, or, with `channel_axis`, one number for each index along it.
    """
    op = "instance_norm"
    axes = sorted(axes_of(op, axis, data.ndim))
    own = axes if channel_axis is None else [axis_of(op, channel_axis, data.ndim, "channel_axis")]
    return _over_axes(op, data, gamma, beta, axes, epsilon, own)


def _over_axes(
    op: str,
    data: te.Tensor,
    gamma: te.Tensor | None,
    beta: te.Tensor | None,
    axes: Sequence[int],
    epsilon: float,
    scaled: Sequence[int],
) -> te.Tensor:
    """Normalised over `axes`; gamma and beta have the axes `scaled`."""
    for what, tensor in (("gamma", gamma), ("beta", beta)):
        if tensor is not None:
            check_rank(op, what, tensor, "of its axes", len(scaled))
            for own, axis in zip(tensor.shape, scaled, strict=True):
                check_same(op, f"axis {axis} differs", ("the data", data.shape[axis]), (what, own))
    rows = [axis for axis in range(data.ndim) if axis not in axes]
    shape, extents = [data.shape[axis] for axis in rows], [data.shape[axis] for axis in axes]
    wide = _wide(op, data)

    def reduced(name: str, term: Callable[[Shape, Expr], Expr]) -> te.Tensor:
        def read(row: Shape, taps: Shape) -> Expr:
            return term(row, data(*_placed(data.ndim, rows, row, axes, taps)).astype(wide))

        return _summed(f"T_{op}_{name}", shape, extents, read)

    mean, scale = _moments(op, shape, extents, reduced, wide, epsilon)

    def element(*at: Expr) -> Expr:
        row = [at[axis] for axis in rows]
        own = [at[axis] for axis in scaled]
        value = (data(*at).astype(wide) - mean(*row)) * scale(*row)
        value = value if gamma is None else value * gamma(*own).astype(wide)
        value = value if beta is None else value + beta(*own).astype(wide)
        return value.astype(data.dtype)

    out: te.Tensor = te.compute(data.shape, element, name=f"T_{op}", tag=default_tag(tag.BROADCAST))
    return out


def _placed(rank: int, rows: Sequence[int], row: Shape, axes: Sequence[int], taps: Shape) -> list[Dim]:
    """One index a dimension, from those of the rows and those along them."""
    at: list[Dim] = [0] * rank
    for axis, index in zip((*rows, *axes), (*row, *taps), strict=True):
        at[axis] = index
    return at


def _moments(
    op: str, shape: Sequence[Expr], extents: Sequence[Expr], reduced: Reduced, wide: str, epsilon: float
) -> tuple[te.Tensor, te.Tensor]:
    """The mean of each row, and 1 / sqrt(variance + epsilon).

    There are rows of this `shape`, along each of which run axes of these `extents`; `reduced` sums a term over them.
    """
    number = count_as(wide, extents, op)

    def each_row(name: str, value: Callable[..., Expr]) -> te.Tensor:
        result: te.Tensor = te.compute(shape, value, name=f"T_{op}_{name}", tag=default_tag(tag.ELEMWISE))
        return result

    total = reduced("sum", lambda row, x: x)
    mean = each_row("mean", lambda *row: te.div(total(*row), number))
    squares = reduced("squares", lambda row, x: (x - mean(*row)) * (x - mean(*row)))
    return mean, each_row("scale", lambda *row: rsqrt(te.div(squares(*row), number) + const(epsilon, wide)))


def _summed(name: str, shape: Sequence[Expr], extents: Sequence[Expr], term: Callable[..., Expr]) -> te.Tensor:
    """The stage that sums `term(indices, taps)` over axes of these extents."""
    taps = [te.reduce_axis((0, extent), name=f"k{k}") for k, extent in enumerate(extents)]
    total: te.Tensor = te.compute(
        shape,
        lambda *at: te.sum(term(at, [tap.var for tap in taps]), axis=taps),
        name=name,
        tag=default_tag(tag.COMM_REDUCE),
    )
    return total


def _wide(op: str, data: te.Tensor) -> str:
    """The type in which the moments of `data` are computed: its own, or float32 where that is narrower."""
    if not data.dtype.is_float and str(data.dtype) != "bfloat16":
        raise InvalidShapeError(op, f"{data.name} is {data.dtype}", "normalise floating-point data")
    return str(data.dtype) if data.dtype.bits >= 32 else "float32"


def _group_norm(
    x: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> np.ndarray:
    split = [*x.shape[:channel_axis], num_groups, x.shape[channel_axis] // num_groups, *x.shape[channel_axis + 1 :]]
    over = [channel_axis + 1, *[axis + (axis > channel_axis) for axis in axes]]
    out = _normalized(x.reshape(split), over, epsilon).reshape(x.shape)
    shape = [size if at == channel_axis else 1 for at, size in enumerate(x.shape)]
    out = out if gamma is None else out * gamma.reshape(shape)
    return out if beta is None else out + beta.reshape(shape)


def _group_norm_samples() -> Iterator[Sample]:
    six = real_numbers((6,)), real_numbers((6,), shift=1.0)
    yield rounded_sample(_group_norm, real_numbers((2, 6, 3, 5)), *six, 3, 1, [2, 3])
    yield rounded_sample(_group_norm, real_numbers((2, 6, 3, 5)), None, None, 1, 1, [2, 3])
    yield rounded_sample(_group_norm, real_numbers((2, 3, 5, 6)), *six, 6, 3, [1, 2], 1e-2)
    half = real_numbers((2, 6, 3), "float16"), real_numbers((6,), "float16"), real_numbers((6,), "float16")
    yield rounded_sample(_group_norm, *half, 2, 1, [2], dtype="float32")
    yield rounded_sample(_group_norm, real_numbers((2, 6)), *six, 2, 1, [])
    yield Sample((np.zeros((0, 6, 2), "float32"), *six, 2, 1, [2]))


@operator(reference=_group_norm, samples=_group_norm_samples, name="nn.group_norm")
def group_norm(
    data: te.Tensor,
    gamma: te.Tensor | None,
    beta: te.Tensor | None,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Normalise over `axes` and the channels of each of `num_groups` groups; gamma and beta have one number a channel.

    The channel axis is not among `axes`; those that are in neither are normalised one by one, as the batch is.
    """
    op = "group_norm"
    channel = axis_of(op, channel_axis, data.ndim, "channel_axis")
    over = sorted(axes_of(op, axes, data.ndim, "axes"))
    if channel in over:
        raise InvalidShapeError(op, f"channel_axis {channel} is among the axes {over}", "leave it out of the axes")
    channels = data.shape[channel]
    if not isinstance(num_groups, int) or num_groups < 1 or not multiple_of(channels, num_groups):
        raise InvalidShapeError(op, f"{known(channels)} channels are not divisible into {num_groups} groups")
    for what, tensor in (("gamma", gamma), ("beta", beta)):
        if tensor is not None:
            check_rank(op, what, tensor, "(channels,)", 1)
            check_same(op, "channels differ", ("the data", channels), (what, tensor.shape[0]))
    inner = simplify(channels // num_groups)
    others = [axis for axis in range(data.ndim) if axis != channel and axis not in over]
    wide = _wide(op, data)
    outer = [data.shape[axis] for axis in others]
    shape = [*outer, as_expr(num_groups)]
    spread = [data.shape[axis] for axis in over]

    def reduced(name: str, term: Callable[[Shape, Expr], Expr]) -> te.Tensor:
        def cell(at: Shape, taps: Shape) -> Expr:
            *image, c = at
            read = data(*_placed(data.ndim, [*others, channel], at, over, taps)).astype(wide)
            return term([*image, c // inner], read)

        def of_group(row: Shape, taps: Shape) -> list[Dim]:
            *image, group = row
            return [*image, group * inner + taps[0]]

        if not over:
            return _summed(f"T_{op}_{name}", shape, [inner], lambda row, taps: cell(of_group(row, taps), []))
        # Channel by channel first: each is walked over in order, whatever the group is.
        parts = _summed(f"T_{op}_channel_{name}", [*outer, channels], spread, cell)
        return _summed(f"T_{op}_{name}", shape, [inner], lambda row, taps: parts(*of_group(row, taps)))

    mean, scale = _moments(op, shape, [inner, *spread], reduced, wide, epsilon)

    def element(*at: Expr) -> Expr:
        row = [*[at[axis] for axis in others], at[channel] // inner]
        value = (data(*at).astype(wide) - mean(*row)) * scale(*row)
        value = value if gamma is None else value * gamma(at[channel]).astype(wide)
        value = value if beta is None else value + beta(at[channel]).astype(wide)
        return value.astype(data.dtype)

    out: te.Tensor = te.compute(data.shape, element, name=f"T_{op}", tag=default_tag(tag.BROADCAST))
    return out


def _rms_norm(x: np.ndarray, weight: np.ndarray, axis: Ints, epsilon: float = 1e-5) -> np.ndarray:
    axes = sorted(one % x.ndim for one in (axis if isinstance(axis, Sequence) else [axis]))
    shape = [size if at in axes else 1 for at, size in enumerate(x.shape)]
    return x / np.sqrt((x * x).mean(axis=tuple(axes), keepdims=True) + epsilon) * weight.reshape(shape)


def _rms_norm_samples() -> Iterator[Sample]:
    yield rounded_sample(_rms_norm, real_numbers((3, 7)), real_numbers((7,)), [1])
    yield rounded_sample(_rms_norm, real_numbers((2, 3, 5)), real_numbers((3, 5)), [1, 2], 1e-3)
    yield rounded_sample(_rms_norm, real_numbers((3, 8), "float64"), real_numbers((8,), "float64"), -1)
    half = real_numbers((3, 7), "float16"), real_numbers((7,), "float16")
    yield rounded_sample(_rms_norm, *half, [1], dtype="float32")  # computed in float32, rounded once
    yield Sample((np.zeros((0, 3), "float32"), real_numbers((3,)), [1]))


@operator(reference=_rms_norm, samples=_rms_norm_samples, name="nn.rms_norm")
def rms_norm(data: te.Tensor, weight: te.Tensor, axis: Axes, epsilon: float = 1e-5) -> te.Tensor:
    """x / sqrt(mean of x² + epsilon) · weight, over `axis`; the weight has the shape of those axes, and x's type."""
    op = "rms_norm"
    axes = sorted(axes_of(op, axis, data.ndim))
    if weight.dtype != data.dtype:
        raise InvalidShapeError(op, f"the data is {data.dtype} and the weight {weight.dtype}", "convert one of them")
    check_rank(op, "weight", weight, "of its axes", len(axes))
    for own, axis in zip(weight.shape, axes, strict=True):
        check_same(op, f"axis {axis} differs", ("the data", data.shape[axis]), ("the weight", own))
    wide = _wide(op, data)
    rows = [axis for axis in range(data.ndim) if axis not in axes]

    def square(row: Shape, taps: Shape) -> Expr:
        value = data(*_placed(data.ndim, rows, row, axes, taps)).astype(wide)
        return value * value

    shape = [data.shape[axis] for axis in rows]
    squares = _summed("T_rms_norm_squares", shape, [data.shape[axis] for axis in axes], square)
    number = count_as(wide, [data.shape[axis] for axis in axes], op)
    scale = te.compute(
        shape,
        lambda *row: rsqrt(te.div(squares(*row), number) + const(epsilon, wide)),
        name="T_rms_norm_scale",
        tag=default_tag(tag.ELEMWISE),
    )

    def element(*at: Expr) -> Expr:
        value = data(*at).astype(wide) * scale(*[at[axis] for axis in rows])
        return (value * weight(*[at[axis] for axis in axes]).astype(wide)).astype(data.dtype)

    out: te.Tensor = te.compute(data.shape, element, name="T_rms_norm", tag=default_tag(tag.BROADCAST))
    return out
