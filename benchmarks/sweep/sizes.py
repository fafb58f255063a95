"""Distributions that families share: sizes of axes, shapes of a given number of elements, broadcasts.

`log_uniform(low, high)` is e to a uniform power. `extent` is the size of an axis that matters (the last, channels): one
of the odd sizes that networks and images have (40 %), a prime (20 %), a power of two or a neighbour of one (20 %), or
log-uniform (20 %). `shape_of` draws how many elements there are first, then its rank, its last axis, and the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Rng = np.random.Generator
T = TypeVar("T")

ODD = (1, 3, 7, 12, 14, 24, 28, 30, 49, 56, 100, 112, 197, 224, 300, 384, 768, 1000)
PRIMES = (2, 5, 11, 13, 17, 23, 31, 47, 61, 97, 127, 251, 509, 1021, 2039, 4093)


def log_uniform(rng: Rng, low: float, high: float) -> int:
    """A whole number in [low, high], each octave as likely as another."""
    drawn = math.exp(rng.uniform(math.log(max(low, 1)), math.log(max(high, low, 1))))
    return int(min(max(round(drawn), math.ceil(low)), max(math.floor(high), math.ceil(low))))


def pick(rng: Rng, of: Sequence[T], weights: Sequence[float] | None = None) -> T:
    """One of them."""
    p = None if weights is None else np.asarray(weights) / sum(weights)
    return of[int(rng.choice(len(of), p=p))]


def extent(rng: Rng, high: int, low: int = 1) -> int:
    """The size of an axis that matters, in [low, high]."""
    kind = rng.random()
    if kind < 0.4:
        found = [size for size in ODD if low <= size <= high]
    elif kind < 0.6:
        found = [size for size in PRIMES if low <= size <= high]
    elif kind < 0.8:
        powers = [(1 << k) + off for k in range(1, 13) for off in (-1, 0, 1)]
        found = [size for size in powers if low <= size <= high]
    else:
        found = []
    return pick(rng, found) if found else log_uniform(rng, low, high)


def shape_of(rng: Rng, elements: tuple[float, float], ranks: Sequence[int] = (1, 2, 3, 4, 5)) -> tuple[int, ...]:
    """A shape of about as many elements as are drawn, log-uniform, from `elements`."""
    total = log_uniform(rng, *elements)
    rank = pick(rng, ranks)
    if rank == 1:
        return (extent_near(rng, total),)
    last = min(extent(rng, min(4100, total)), total)
    rest = max(total // last, 1)
    outer = []
    for left in range(rank - 1, 1, -1):
        size = log_uniform(rng, 1, max(rest ** (2 / left), 1))
        outer.append(size)
        rest = max(rest // size, 1)
    outer.append(rest)
    rng.shuffle(outer)
    return (*[int(size) for size in outer], last)


def elements(dtype: str, low: float, high: float, most: float = 2**22) -> tuple[float, float]:
    """How many elements of a type are `low` to `high` bytes, `most` at most: time goes by bytes, not by elements."""
    size = np.dtype(dtype).itemsize
    return low / size, min(high / size, most)


def extent_near(rng: Rng, total: int) -> int:
    """`total` itself (half of them), or the next power of two below it, or one of its neighbours."""
    if rng.random() < 0.5 or total < 4:
        return total
    return (1 << (total.bit_length() - 1)) + pick(rng, (-1, 0, 1))


def broadcast_of(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that is repeated to `shape`: some axes 1 (each with a chance of one half), leading ones dropped."""
    drawn = tuple([1 if rng.random() < 0.5 else size for size in shape])
    while drawn and drawn[0] == 1 and rng.random() < 0.5 and len(drawn) > 1:
        drawn = drawn[1:]
    return drawn


def some_axes(rng: Rng, rank: int) -> tuple[int, ...]:
    """A subset of the axes, not empty, each as likely as another."""
    chosen = int(rng.integers(1, 1 << rank))
    return tuple([axis for axis in range(rank) if chosen >> axis & 1])


def without(shape: Sequence[int], axes: Sequence[int], keepdims: bool = False) -> tuple[int, ...]:
    """The shape after a reduction over `axes`."""
    if keepdims:
        return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
    return tuple([size for axis, size in enumerate(shape) if axis not in axes])
