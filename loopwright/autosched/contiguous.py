"""Which axis of a block runs along memory, and which loops can be one because memory does not see the seam.

C[j] = sum of A[i, j] over i        j runs along A: lanes are columns, rows are streamed
C[i] = sum of A[i, j] over j        j runs along A: lanes are partial sums
C    = sum of A[i, j] over i, j     i and j are one loop over the memory of A
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import Access, Axis, BlockFacts
from loopwright.autosched.machine import bytes_of

UNKNOWN_EXTENT = 1024  # what a size that is known only at run time is taken to be


def size_of(axes: Sequence[Axis]) -> int:
    """The product of extents, with a guess for those that are not known yet."""
    total = 1
    for axis in axes:
        total *= UNKNOWN_EXTENT if axis.extent is None else axis.extent
    return total


def bytes_read(access: Access, axes: Sequence[Axis]) -> int:
    """How many bytes an access touches in all."""
    return size_of([axis for axis in axes if access.uses(axis.var)]) * bytes_of(str(access.buffer.dtype))


def vector_axis(facts: BlockFacts) -> Axis | None:
    """The axis along which most bytes lie next to each other; None when there is no such axis."""
    best: Axis | None = None
    most = 0
    accesses = [*facts.reads, *facts.writes]
    for axis in facts.axes:
        if axis.extent == 1:
            continue
        along = sum(bytes_read(access, facts.axes) for access in accesses if access.stride(axis.var) == 1)
        # of equals, the later one is the inner loop of the program as written
        if along and along >= most:
            best, most = axis, along
    return best


def is_seamless(outer: Axis, inner: Axis, facts: BlockFacts) -> bool:
    """Whether a step of `outer` is, for every access, as far in memory as all of `inner`."""
    if inner.extent is None:
        return False
    for access in (*facts.reads, *facts.writes):
        step, small = access.stride(outer.var), access.stride(inner.var)
        if step is None or small is None or step != small * inner.extent:
            return False
    return True


def seamless_tail(axes: Sequence[Axis], facts: BlockFacts) -> int:
    """How many of the last axes can run as one loop."""
    count = 1
    while count < len(axes) and is_seamless(axes[-count - 1], axes[-count], facts):
        count += 1
    return min(count, len(axes))
