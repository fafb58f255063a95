"""The reductions in numpy, and what they are tried on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np

from loopwright.topi.registry import Bound, Sample
from loopwright.topi.samples import positive_numbers, real_numbers, whole_numbers
from loopwright.topi.types import Arguments, Axes


class Call(TypedDict, total=False):
    """The attributes of a reduction."""

    axis: Axes
    keepdims: bool


# shape, attributes: one axis, several, negative and repeated ones, all, none; dimensions of 0 and 1.
_CALLS: list[tuple[tuple[int, ...], Call]] = [
    ((4, 5), {}),
    ((4, 5), {"axis": 1}),
    ((4, 5), {"axis": 0, "keepdims": True}),
    ((2, 3, 7), {"axis": (0, -1)}),
    ((2, 3, 7), {"axis": (1, -2), "keepdims": True}),
    ((1, 1), {"axis": -1}),
    ((0, 3), {"axis": 1}),
]
_NONE: Call = {"axis": ()}


def reduced_python(function: Callable[..., np.ndarray], empty: float | None = None) -> Callable[..., np.ndarray]:
    """`function` along the axes; over nothing, `empty`."""

    def reference(data: np.ndarray, axis: Axes = None, keepdims: bool = False) -> np.ndarray:
        axes = _different(axis, data.ndim)
        options = {} if empty is None or data.dtype.kind != "f" else {"initial": empty}
        return np.asarray(function(data, axis=axes, keepdims=keepdims, **options))

    return reference


def _different(axis: Axes, rank: int) -> tuple[int, ...] | None:
    if axis is None:
        return None
    return tuple(sorted({int(one) % rank for one in (axis if isinstance(axis, Sequence) else [axis])}))


def sum_python(data: np.ndarray, axis: Axes = None, keepdims: bool = False) -> np.ndarray:
    """The sum; of truth values, whether any holds."""
    return reduced_python(np.any if data.dtype.kind == "b" else np.sum)(data, axis, keepdims)


def _sum_bound(dtype: str, axis: Axes = None, keepdims: bool = False) -> Bound:
    """n · eps / 2 · Σ |terms|, whatever the order of the sum."""

    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        terms = args[0].size // max(exact.size, 1)
        return terms * float(np.finfo(dtype).eps) / 2 * sum_python(np.abs(args[0]), axis, keepdims)

    return bound


def sum_samples() -> list[Sample]:
    """Floats within their bound, small whole numbers exactly."""
    samples = [Sample((real_numbers(shape),), calls, _sum_bound("float32", **calls)) for shape, calls in _CALLS]
    samples.append(Sample((real_numbers((3, 5), "float64"),), {"axis": 0}, _sum_bound("float64", 0)))
    samples += [
        Sample((whole_numbers((3, 5), dtype, 0, 4),), {"axis": 1}) for dtype in ("float16", "int8", "int64", "uint8")
    ]
    samples += [Sample((whole_numbers((3, 5), "bool", 0, 1),), {"axis": 1}), Sample((real_numbers((3, 2)),), _NONE)]
    return [*samples, Sample((np.zeros((3, 0), "float32"),), {"axis": 1})]


def extreme_samples() -> list[Sample]:
    """All exact; NaN and infinities among them."""
    samples = [Sample((real_numbers(shape),), calls) for shape, calls in _CALLS]
    types = ("float64", "float16", "int8", "int32", "int64", "uint8")
    samples += [Sample((whole_numbers((3, 5), dtype, 0, 99),), {"axis": 1}) for dtype in types]
    special = np.array([[np.nan, 1, 2], [np.inf, 1, -np.inf], [-np.inf] * 3, [np.inf] * 3], "float32")
    samples += [Sample((special,), {"axis": 1}), Sample((real_numbers((3, 2)),), _NONE)]
    return [*samples, Sample((np.zeros((2, 0), "float32"),), {"axis": 1})]


def prod_samples() -> list[Sample]:
    """Floats within n roundings of the product; integers exactly, and they wrap."""

    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        return args[0].size // max(exact.size, 1) * float(np.finfo("float32").eps) / 2 * 1.01 * np.abs(exact)

    samples = [Sample((positive_numbers(shape),), calls, bound) for shape, calls in _CALLS]
    samples += [Sample((whole_numbers((3, 5), dtype, -2, 2),), {"axis": 1}) for dtype in ("float64", "float16", "int8")]
    return [*samples, Sample((whole_numbers((3, 2), "int64", 1, 9),), _NONE)]


def truth_samples() -> list[Sample]:
    """Truth values."""
    samples = [Sample((whole_numbers(shape, "bool", 0, 1),), calls) for shape, calls in _CALLS]
    return [*samples, Sample((np.ones((3, 5), bool),), {"axis": 1}), Sample((np.zeros((3, 0), bool),), {"axis": 1})]


def arg_python(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """numpy's place along one axis, here along several, and the last of equal ones too."""

    def reference(
        data: np.ndarray, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
    ) -> np.ndarray:
        axes = _different(axis, data.ndim) if axis is not None else tuple(range(data.ndim))
        assert axes is not None
        others = [k for k in range(data.ndim) if k not in axes]
        count = int(np.prod([data.shape[k] for k in axes]))
        rows = np.transpose(data, [*others, *axes]).reshape([*[data.shape[k] for k in others], count])
        if select_last_index:
            location = rows.shape[-1] - 1 - function(rows[..., ::-1], axis=-1)
        else:
            location = function(rows, axis=-1)
        shape = [1 if k in axes else data.shape[k] for k in range(data.ndim)] if keepdims else None
        return np.asarray(location).reshape(shape) if shape is not None else np.asarray(location)

    return reference


def arg_samples() -> list[Sample]:
    """Values with many ties, so that it matters which one is taken."""
    samples = []
    for number, (shape, calls) in enumerate(_CALLS[:-1]):
        last = {"select_last_index": number % 2 == 1}
        samples.append(Sample((whole_numbers(shape, "float32", 0, 2),), {**calls, **last}))
    samples += [
        Sample((whole_numbers((3, 5), dtype, 0, 2),), {"axis": 1})
        for dtype in ("float64", "float16", "int8", "int64", "uint8")
    ]
    special = np.array([[1, np.nan, 2, np.nan], [-np.inf] * 4, [np.inf] * 4], "float32")
    lowest = np.array([[-128] * 3, [127] * 3], "int8")
    samples += [Sample((special,), {"axis": 1, "select_last_index": last}) for last in (False, True)]
    return [*samples, Sample((lowest,), {"axis": 1}), Sample((np.zeros((0, 3), "float32"),), {"axis": 1})]


def collapse_sum_python(data: np.ndarray, target_shape: Sequence[int]) -> np.ndarray:
    """Sums along the dimensions in front and those that are 1 in the target."""
    rest = data.sum(axis=tuple(range(data.ndim - len(target_shape))))
    axes = tuple([k for k, size in enumerate(target_shape) if size == 1])
    return rest.sum(axis=axes, keepdims=True) if axes else rest


def collapse_sum_samples() -> list[Sample]:
    """Dimensions in front, of 1, and none."""
    calls = [((2, 3, 4), (3, 4)), ((2, 3, 4), (3, 1)), ((2, 3), (2, 3)), ((2, 3), (1, 1)), ((2, 3), ()), ((5, 1), (1,))]
    samples = [Sample((whole_numbers(shape), target)) for shape, target in calls]
    return [*samples, Sample((whole_numbers((4, 0)), (4, 1))), Sample((whole_numbers((2, 3), "int8"), (3,)))]
