"""Comparing arrays, and gradients against differences of function values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

Arrays = Sequence[object] | Mapping[str, object]


def assert_allclose(actual: object, desired: object, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Fail unless shapes are equal and elements differ by at most `atol + rtol * |desired|`; NaN equals NaN.

    Our tensors are compared as numpy arrays. Both tolerances default to 1e-7, so that single precision needs one.
    """
    actual, desired = as_numpy(actual), as_numpy(desired)
    np.testing.assert_equal(actual.shape, desired.shape, "the shapes differ")
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def check_numerical_grads(
    function: Callable[..., object],
    input_values: Arrays,
    grad_values: Arrays,
    function_value: float | None = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Fail unless `grad_values` are the gradients of `function`, a scalar, at `input_values`.

    The gradients are compared with differences of the function over steps of `delta`, half and a quarter of it, each to
    both sides of the point. An element is right when it agrees with one of these within the tolerances, or lies
    between the slopes of the two sides (at a kink every such value is a gradient). `function_value` saves one call.
    """
    names, values = _named(input_values)
    given_names, grads = _named(grad_values)
    if isinstance(input_values, Mapping) and isinstance(grad_values, Mapping):
        if set(names) != set(given_names):
            raise ValueError(f"there are gradients of {sorted(given_names)} for the inputs {sorted(names)}")
        grads = [grad_values[name] for name in names]
    if len(values) != len(grads):
        raise ValueError(f"there are {len(values)} inputs and {len(grads)} gradients")
    points = [np.array(as_numpy(value), dtype="float64") for value in values]
    kinds = [as_numpy(value).dtype for value in values]

    def at() -> float:
        given = [point.astype(kind) for point, kind in zip(points, kinds)]
        result = function(**dict(zip(names, given))) if isinstance(input_values, Mapping) else function(*given)
        return float(np.asarray(as_numpy(result), dtype="float64").sum())

    here = at() if function_value is None else float(function_value)
    for name, point, given in zip(names, points, grads):
        grad = np.asarray(as_numpy(given), dtype="float64")
        if grad.shape != point.shape:
            raise AssertionError(f"the gradient of {name} has shape {grad.shape}, the input {point.shape}")
        if not np.isfinite(grad).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(grad))[0])
            raise AssertionError(f"the gradient of {name} is {grad[where]} at {where}")
        slopes = _slopes(point, at, here, delta)
        near = np.abs(slopes - grad) <= atol + rtol * np.abs(slopes)
        right = near.any(axis=0) | ((slopes.min(axis=0) <= grad) & (grad <= slopes.max(axis=0)))
        if not right.all():
            off = np.where(right, 0.0, np.abs(slopes - grad).min(axis=0))
            worst = np.unravel_index(int(off.argmax()), off.shape)
            where = tuple(int(i) for i in worst)
            raise AssertionError(
                f"the gradient of {name} is wrong at {int((~right).sum())} of {right.size} places; at {where} it is "
                f"{grad[worst]:.6g}, and the function's slope there {np.median(slopes, axis=0)[worst]:.6g}"
            )


def _slopes(point: np.ndarray, at: Callable[[], float], here: float, delta: float) -> np.ndarray:
    """Slopes of the function along every element, one row per step and side; `at` reads `point` as it stands."""
    slopes = []
    for step in (delta, delta / 2, delta / 4):
        left, right = np.zeros(point.shape), np.zeros(point.shape)
        for index in np.ndindex(point.shape):
            centre = point[index]
            point[index] = centre + step
            right[index] = (at() - here) / step
            point[index] = centre - step
            left[index] = (here - at()) / step
            point[index] = centre
        slopes += [left, right, (left + right) / 2]
    return np.array(slopes)


def _named(values: Arrays) -> tuple[list[str], list[object]]:
    if isinstance(values, Mapping):
        return list(values), list(values.values())
    return [f"input {number}" for number in range(len(values))], list(values)


def as_numpy(value: object) -> np.ndarray:
    """A tensor of ours, or of a library that speaks numpy, as a numpy array."""
    return np.asarray(value.numpy() if hasattr(value, "numpy") and not isinstance(value, np.ndarray) else value)


def strtobool(text: str) -> bool:
    """A switch of the environment: yes, true, on and 1 are True; no, false, off and 0 are False."""
    word = text.strip().lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return True
    if word in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"{text!r} is neither yes nor no")
