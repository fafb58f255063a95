"""What sort, argsort, topk, searchsorted, unique and argwhere mean, in numpy, and the samples they are tried on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from loopwright.topi.registry import Sample


def _order(data: np.ndarray, axis: int, is_ascend: int) -> np.ndarray:
    """Places in stable order; NaN is greater than all numbers."""
    if is_ascend:
        return np.argsort(data, axis=axis, kind="stable")
    # Reversed twice, so that equal elements keep their order.
    backwards = np.argsort(np.flip(data, axis), axis=axis, kind="stable")
    result: np.ndarray = data.shape[axis] - 1 - np.flip(backwards, axis)
    return result


def sort(data: np.ndarray, axis: int = -1, is_ascend: int = 1) -> np.ndarray:
    return np.take_along_axis(data, _order(data, axis, is_ascend), axis)


def argsort(
    data: np.ndarray, valid_count: np.ndarray | None = None, axis: int = -1, is_ascend: int = 1, dtype: str = "float32"
) -> np.ndarray:
    if valid_count is None:
        return _order(data, axis, is_ascend)
    rows = np.moveaxis(data, axis, -1)
    result = np.broadcast_to(np.arange(rows.shape[-1]), rows.shape).copy()
    for at in np.ndindex(*rows.shape[:-1]):
        count = int(np.clip(valid_count[at], 0, rows.shape[-1]))
        result[at][:count] = _order(rows[at][:count], -1, is_ascend)
    return np.moveaxis(result, -1, axis)


def topk(
    data: np.ndarray,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> np.ndarray | list[np.ndarray]:
    count = k if k >= 1 else data.shape[axis]
    locations = np.take(_order(data, axis, is_ascend), np.arange(count), axis)
    values = np.take_along_axis(data, locations, axis)
    if ret_type == "both":
        return [values, locations]
    return {"values": values, "indices": locations}[ret_type]


def _rows(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Values with many ties."""
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(dtype)


def _with_nans() -> np.ndarray:
    return np.array([[3, np.nan, -1, np.inf, 3, np.nan], [np.nan, -0.0, 0.0, -np.inf, 2, 2]], "float32")


def sort_samples() -> Iterable[Sample]:
    yield Sample((_rows(3, 17),))
    yield Sample((_rows(4, 5, 3), 0))
    yield Sample((_rows(4, 5, 3), -2, 0))
    yield Sample((_with_nans(),))
    yield Sample((_with_nans(),), {"is_ascend": 0})
    yield Sample((_rows(0, 4),))
    yield Sample((_rows(4, 0),))
    yield Sample((_rows(1, 1),))
    yield Sample((_rows(257, dtype="int64"),))
    yield Sample((np.abs(_rows(2, 31, dtype="int32")).astype("uint8"),), {"is_ascend": False})
    yield Sample((_rows(9, dtype="float16"),))
    yield Sample((_rows(2, 9) > 0,))


def argsort_samples() -> Iterable[Sample]:
    yield Sample((_rows(3, 17),))
    yield Sample((_rows(3, 17),), {"is_ascend": 0, "dtype": "int64"})
    yield Sample((_rows(2, 5, 3), None, 1, 1, "int32"))
    yield Sample((_with_nans(),), {"dtype": "int32"})
    yield Sample((_with_nans(),), {"dtype": "int32", "is_ascend": 0})
    yield Sample((_rows(3, 13), np.array([5, 0, 13], "int32"), 1, 0))
    yield Sample((_rows(7, 3), np.array([7, 1, 99], "int32"), 0))
    yield Sample((_rows(0, 3),))
    yield Sample((_rows(31, dtype="int8"), None, 0, True, "int32"))
    yield Sample((_rows(11, dtype="float64"), None, 0, True, "int32"))


def topk_samples() -> Iterable[Sample]:
    yield Sample((_rows(3, 17), 5))
    yield Sample((_rows(3, 100), 5))
    yield Sample((_rows(2, 100), 3), {"ret_type": "values", "is_ascend": True})
    yield Sample((_rows(100, 3), 3, 0, "indices", False, "int32"))
    yield Sample((_rows(5, 4, 3), 0, -2))
    yield Sample((_rows(5, 4, 3), 2, 0, "values"))
    yield Sample((_with_nans(), 3))
    yield Sample((np.tile(_with_nans(), 8), 5))
    yield Sample((_rows(3, 9, dtype="int32"), 9, -1, "both", True))
    yield Sample((_rows(0, 9), 4))
    yield Sample((_rows(1), 1))


def searchsorted(
    sorted_sequence: np.ndarray, values: np.ndarray, right: bool = False, out_dtype: str = "int64"
) -> np.ndarray:
    side: Literal["left", "right"] = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side)
    result = np.empty(values.shape, "int64")
    for at in np.ndindex(*values.shape[:-1]):
        result[at] = np.searchsorted(sorted_sequence[at], values[at], side)
    return result


def searchsorted_samples() -> Iterable[Sample]:
    line = np.sort(_rows(23))
    yield Sample((line, _rows(4, 5, seed=1)))
    yield Sample((line, _rows(4, 5, seed=1), True, "int32"))
    yield Sample((np.sort(_rows(3, 2, 11)), _rows(3, 2, 7, seed=1)))
    yield Sample((np.sort(_rows(3, 2, 11, dtype="int32")), _rows(3, 2, 7, seed=1, dtype="int32"), True))
    yield Sample((line[:0], _rows(3)))
    yield Sample((line[:1], np.array([np.inf, -np.inf, 0], "float32")))
    yield Sample((line, _rows(0, 3)))
    yield Sample((line.astype("float64"), _rows(6, dtype="float64", seed=2)))


def unique(data: np.ndarray, is_sorted: bool = True, return_counts: bool = False) -> list[np.ndarray]:
    values, first, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    if not is_sorted:
        order = np.argsort(first)
        location = np.empty_like(order)
        location[order] = np.arange(len(order))
        values, first, counts, inverse = values[order], first[order], counts[order], location[inverse]
    padding = (0, len(data) - len(values))
    result = [np.pad(values, padding), np.pad(first, padding), inverse.reshape(-1), np.array([len(values)])]
    return [*result, np.pad(counts, padding)] if return_counts else result


def unique_samples() -> Iterable[Sample]:
    for is_sorted in (True, False):
        for return_counts in (True, False):
            yield Sample((_rows(37, dtype="int32"), is_sorted, return_counts))
    yield Sample((_rows(19, dtype="int64"), False, True))
    yield Sample((_rows(19),))
    yield Sample((np.array([2, np.nan, 1, np.nan, 2], "float64"), True, True))
    yield Sample((_rows(0, dtype="int32"),))
    yield Sample((_rows(1, dtype="uint8"), False))


def unique_values(data: np.ndarray, return_counts: bool = False) -> list[np.ndarray]:
    values, _, _, number, counts = unique(data, return_counts=True)
    return [values, number, counts] if return_counts else [values, number]


def unique_values_samples() -> Iterable[Sample]:
    for dtype in ("int32", "int64", "uint8", "float32", "bool"):
        yield Sample((_rows(37, dtype=dtype), dtype != "bool"))
    yield Sample((np.array([2, np.nan, 1, np.nan, 2], "float64"), True))
    yield Sample((_rows(0, dtype="int32"),))
    yield Sample((_rows(1, dtype="uint8"), False))
    # Few values in a long row are looked up; so are many at first, until there are too many.
    yield Sample((np.tile(_rows(50, dtype="float32"), 60), True))
    yield Sample((_rows(3000, dtype="int32") * 7 + np.arange(3000, dtype="int32"),))


def argwhere(output_shape: Sequence[int], condition: np.ndarray) -> np.ndarray:
    result = np.argwhere(condition)[: output_shape[0]]
    return np.pad(result, ((0, output_shape[0] - len(result)), (0, 0)), constant_values=-1)


def argwhere_samples() -> Iterable[Sample]:
    for shape in ((13,), (3, 5), (2, 3, 4), (2, 1, 3, 2), (2, 2, 2, 2, 2)):
        condition = _rows(*shape) > 1
        yield Sample(((int(condition.sum()), len(shape)), condition))
    yield Sample(((20, 2), _rows(4, 5)))
    yield Sample(((3, 2), _rows(4, 5, dtype="int32")))
    yield Sample(((2, 1), np.array([np.nan, 0.0, -0.0, 2], "float64")))
    yield Sample(((0, 2), _rows(0, 5)))


def argwhere_padded(condition: np.ndarray) -> list[np.ndarray]:
    count = int(np.count_nonzero(condition))
    return [argwhere((condition.size, condition.ndim), condition), np.array([count])]


def argwhere_padded_samples() -> Iterable[Sample]:
    for shape in ((13,), (3, 5), (2, 0), ()):
        yield Sample((_rows(*shape),))
    yield Sample((_rows(4, 4) > 0,))
