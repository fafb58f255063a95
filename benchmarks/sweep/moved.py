"""What families that move elements share: their types and sizes, and a case whose result is exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.bench.case import Array, Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import exactly
from benchmarks.sweep.sizes import Rng, elements, pick

BYTES = (2**15, 2**23)
TYPES = {"float32": 55, "uint8": 12, "int32": 10, "float64": 8, "int64": 6, "float16": 5, "int16": 4}


def drawn_type(rng: Rng) -> str:
    """A type by its weight."""
    return pick(rng, list(TYPES), list(TYPES.values()))


def elements_moved(dtype: str, times: float = 1) -> tuple[float, float]:
    """How many elements of a type are as many bytes as families of movement move."""
    low, high = elements(dtype, *BYTES, most=2**21)
    return low * times, high * times


def data(shape: tuple[int, ...], dtype: str) -> Input:
    """A tensor to move."""
    return Input(shape, dtype, 0 if dtype[0] in "ui" else -1, 100 if dtype[0] in "ui" else 1)


def topi() -> Any:
    """loopwright.topi, loaded when a kernel is made."""
    from loopwright import topi as found

    return found


def moved(
    name: str,
    inputs: Sequence[Input],
    right: Callable[..., Any],
    details: str,
    kernel: Callable[..., Any] | None,
    model: Sequence[Step],
    torch: Callable[..., Any] | None,
    constants: dict[str, Array] | None = None,
    numpy: Callable[..., Any] | None = None,
    out: Output | None = None,
    into: Callable[..., Any] | None = None,
) -> Case:
    """A case whose result is exact; `right` is numpy's function, which returns views where it can (then copied).

    Without `out` it is run at once for the shapes of its results. `into` is the same with `out=`, where numpy has that.
    """
    shapes = out or right(*[np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in inputs])
    several = list(shapes) if isinstance(shapes, (list, tuple)) else [shapes]

    def exact(x: Any) -> list[Bounded]:
        found = right(*x)
        return [exactly(np.asarray(y)) for y in (found if isinstance(found, (list, tuple)) else [found])]

    def with_numpy(x: Any, out: Any) -> Any:
        if into is not None:
            return into(*x, out=out[0])
        found = (numpy or right)(*x)
        if isinstance(found, (list, tuple)):
            return [_copied(y, room) for y, room in zip(found, out)]
        return _copied(found, out[0])

    return Case(
        name,
        inputs,
        [Output(y.shape, str(y.dtype)) for y in several],
        exact,
        details,
        kernel,
        model,
        constants or {},
        with_numpy,
        None if torch is None else lambda t, x, out: _contiguous(torch(t, *x)),
    )


def _copied(found: Array, room: Array | None) -> Array:
    """A view is no result yet: its elements are where they were."""
    if room is not None and not found.flags.owndata:
        np.copyto(room, found)
        return room
    return np.ascontiguousarray(found) if found.flags.owndata else found.copy()


def _contiguous(found: Any) -> Any:
    return [y.contiguous() for y in found] if isinstance(found, (list, tuple)) else found.contiguous()
