"""pack: places in one arena for blocks of memory, of which those that live at the same time may not overlap.

    blocks = [Block(400, 0, 1), Block(100, 1, 2), Block(400, 2, 3)]        size, first and last moment, inclusive
    pack(blocks)              [0, 400, 0]: 500 bytes, which is also the lower bound

Finding the smallest arena is NP-hard; what works is to place blocks one after another, each into the smallest gap that
holds it, in several orders, and to keep the best. Where the best is not near the lower bound, the blocks that stick out
are tried earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

ALIGNMENT: Final = 64
_NEAR: Final = 1.01  # of the lower bound: nothing is worth trying any more
_WORK: Final = 300_000  # pairs of blocks looked at in the second stage


class Block(NamedTuple):
    """Memory that is needed from the moment `first` to the moment `last`, both inclusive."""

    size: int
    first: int
    last: int


def aligned(size: int) -> int:
    """The size as the arena counts it."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def lower_bound(blocks: Sequence[Block]) -> int:
    """The most bytes that are alive at one moment: no arena is smaller."""
    changes: dict[int, int] = {}
    for block in blocks:
        size = aligned(block.size)
        changes[block.first] = changes.get(block.first, 0) + size
        changes[block.last + 1] = changes.get(block.last + 1, 0) - size
    live = most = 0
    for moment in sorted(changes):
        live += changes[moment]
        most = max(most, live)
    return most


def peak(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """The bytes of the arena."""
    return max((offset + aligned(block.size) for block, offset in zip(blocks, offsets, strict=True)), default=0)


def pack(blocks: Sequence[Block]) -> list[int]:
    """The offset of each block."""
    if not blocks:
        return []
    bound = lower_bound(blocks)
    sizes = [aligned(block.size) for block in blocks]
    meets = _meetings(blocks)
    best: list[int] = []
    best_peak, best_order = -1, list[int]()
    for key in _ORDERS:
        order = sorted(range(len(blocks)), key=lambda k, key=key: key(blocks[k]))  # type: ignore[misc]
        offsets = _place(order, sizes, meets)
        result = peak(blocks, offsets)
        if best_peak < 0 or result < best_peak:
            best, best_peak, best_order = offsets, result, order
        if best_peak <= bound * _NEAR:
            return best
    return _improved(blocks, sizes, meets, bound, best, best_peak, best_order)


# Which block comes first. Large ones first leaves small ones for the gaps; so does what is large and lives long.
_ORDERS: Final[tuple[Callable[[Block], tuple[int, ...]], ...]] = (
    lambda b: (-b.size, -(b.last - b.first), b.first),
    lambda b: (-b.size * (b.last - b.first + 1), b.first),
    lambda b: (-(b.last - b.first), -b.size, b.first),
    lambda b: (b.first, -b.size),
    lambda b: (-b.last, -b.size),
)


def _meetings(blocks: Sequence[Block]) -> list[list[int]]:
    """For each block, those that live at some moment that it lives at."""
    first = np.array([block.first for block in blocks])
    last = np.array([block.last for block in blocks])
    return [
        [int(k) for k in np.nonzero((first <= block.last) & (last >= block.first))[0] if k != own]
        for own, block in enumerate(blocks)
    ]


def _place(order: Sequence[int], sizes: Sequence[int], meets: Sequence[Sequence[int]]) -> list[int]:
    """Each block in turn into the smallest gap that holds it, between those that are placed already."""
    offsets = [-1] * len(sizes)
    for k in order:
        size = sizes[k]
        used = sorted([(offsets[m], sizes[m]) for m in meets[k] if offsets[m] >= 0])
        free_from, chosen, smallest = 0, -1, -1
        for offset, length in used:
            gap = offset - free_from
            if gap >= size and (smallest < 0 or gap < smallest):
                chosen, smallest = free_from, gap
            free_from = max(free_from, offset + length)
        offsets[k] = chosen if chosen >= 0 else free_from
    return offsets


def _improved(
    blocks: Sequence[Block],
    sizes: Sequence[int],
    meets: Sequence[Sequence[int]],
    bound: int,
    best: list[int],
    best_peak: int,
    order: list[int],
) -> list[int]:
    """The best order again and again, with blocks that reach the top moved to the front."""
    pairs = sum(len(row) for row in meets) + len(blocks)
    random = np.random.default_rng(len(blocks))  # the same plan every time
    for _ in range(max(0, _WORK // pairs)):
        high = [k for k in order if best[k] + sizes[k] == best_peak]
        # Those that reach the top, and some of what they stand on.
        below = [k for k in meets[high[0]] if random.random() < 0.3]
        moved = {high[0], *below[: int(random.integers(0, 1 + len(below)))]}
        tried = [k for k in order if k in moved] + [k for k in order if k not in moved]
        offsets = _place(tried, sizes, meets)
        result = peak(blocks, offsets)
        if result <= best_peak:
            best, best_peak, order = offsets, result, tried
        if best_peak <= bound * _NEAR:
            break
    return best
