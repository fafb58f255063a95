"""What running sums and products mean, in numpy, and the samples they are tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from loopwright.ir.intrinsics import maximum
from loopwright.topi.registry import Bound, Sample
from loopwright.topi.types import Arguments, DType


def _scan(
    data: np.ndarray, joined: np.ufunc, identity: float, axis: int | None, dtype: DType | None, exclusive: bool | None
) -> np.ndarray:
    """The scan; integers wrap around in their type, floating-point numbers stay exact."""
    if data.dtype.kind == "b" and dtype is None:
        dtype = "int32"
    kind = data.dtype if dtype is None or data.dtype.kind == "f" else np.dtype(dtype)
    line = data.reshape(-1) if axis is None else data
    along = 0 if axis is None else axis
    with np.errstate(over="ignore"):
        result = joined.accumulate(line.astype(kind), axis=along, dtype=kind)
    if not exclusive or not result.shape[along]:
        return result
    first = np.full_like(np.take(result, [0], along), identity)
    return np.concatenate([first, np.delete(result, -1, along)], along)


def cumsum(
    data: np.ndarray, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> np.ndarray:
    result: np.ndarray = _scan(data, np.add, 0, axis, dtype, exclusive)
    return result


def cumprod(
    data: np.ndarray, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> np.ndarray:
    result: np.ndarray = _scan(data, np.multiply, 1, axis, dtype, exclusive)
    return result


def scanop(
    data: np.ndarray,
    binop: object,
    identity_value: float,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> np.ndarray:
    """The samples only use the running maximum."""
    result: np.ndarray = _scan(data, np.maximum, identity_value, axis, dtype, exclusive)
    return result


def summed(dtype: str) -> Bound:
    """n additions in a row, each rounded: n·eps of the sum of the magnitudes so far."""
    eps = float(np.finfo(dtype).eps)

    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        return np.size(args[0]) * eps * np.sum(np.abs(args[0])) if np.size(args[0]) else 0.0

    return bound


def multiplied(dtype: str) -> Bound:
    """n multiplications in a row, each rounded."""
    eps = float(np.finfo(dtype).eps)
    return lambda args, exact: np.size(args[0]) * eps * np.abs(exact)


def _values(*shape: int, dtype: str = "float32") -> np.ndarray:
    random = np.random.default_rng(len(shape))
    if dtype.startswith("float"):
        return random.uniform(-1.5, 1.5, shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype) if dtype == "bool" else random.integers(1, 9, shape).astype(dtype)


def _samples(bound: Callable[[str], Bound]) -> Iterable[Sample]:
    for axis in (None, 0, 1, -1):
        yield Sample((_values(3, 4, 5), axis), bound=bound("float32"))
    yield Sample((_values(1, 7, 3), 1, None, True), bound=bound("float32"))
    yield Sample((_values(6), 0, "float64", True), bound=bound("float32"))
    yield Sample((_values(2, 5, dtype="float16"), 1), bound=bound("float16"))
    yield Sample((_values(2, 5, dtype="int8"), 1))
    yield Sample((_values(2, 5, dtype="int32"), None, "int64", True))
    yield Sample((_values(7, dtype="bool"), 0))
    yield Sample((_values(3, 0, 2), 1))
    yield Sample((_values(0, 3),), {"exclusive": True})


def cumsum_samples() -> Iterable[Sample]:
    return _samples(summed)


def cumprod_samples() -> Iterable[Sample]:
    return _samples(multiplied)


def scanop_samples() -> Iterable[Sample]:
    for axis in (None, 0, 1):
        yield Sample((_values(3, 7), maximum, -9, "cummax", axis, "float32"))
    yield Sample((_values(3, 7, dtype="int32"), maximum, -9, "cummax", 1, None, True))
