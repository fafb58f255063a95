"""Streams: how each load and store of a block walks through memory as the block's axes go up by one.

    C[i, j] = A[i, j] + B[j]        C and A move (n, 1) for (i, j), B (0, 1)

Distances are counted in the flat buffer, so `A[(i * 3 + j) // 5, (i * 3 + j) % 5]`, a reshape, is a plain walk. They
may be sizes of the function; None where the distance is not one number: a gather, the position of a cell in data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer
from loopwright.autosched.facts import Access, Axis, BlockFacts, loads_of
from loopwright.autosched.facts import const as number_of
from loopwright.autosched.machine import bytes_of
from loopwright.ir import Buffer, Expr, IntImm, Range, Var, const, substitute, uses_var


class Stream(NamedTuple):
    """One load or store; `steps` has the distance in elements for each axis of the block."""

    buffer: Buffer
    is_store: bool
    steps: tuple[Expr | None, ...]

    def step(self, position: int) -> int | None:
        """The distance along an axis where it is a literal."""
        step = self.steps[position]
        return number_of(step) if step is not None else None

    @property
    def itemsize(self) -> int:
        return bytes_of(str(self.buffer.dtype))


class Streams:
    """The streams of a block, and what can be asked of them."""

    def __init__(self, facts: BlockFacts) -> None:
        self.axes = facts.axes
        self.analyzer = Analyzer()
        for axis, loop in zip(facts.axes, facts.loops, strict=True):
            self.analyzer.bind(axis.var, Range.from_min_extent(const(0, axis.var.dtype), loop.extent))
        self.extents = tuple(loop.extent for loop in facts.loops)
        self._forms = [form for access in (*facts.writes, *facts.reads) for form in access.forms]
        self.stores = [self._stream(access, True) for access in facts.writes]
        self.loads = [self._stream(access, False) for access in facts.reads]

    @property
    def all(self) -> list[Stream]:
        return [*self.stores, *self.loads]

    def _stream(self, access: Access, is_store: bool) -> Stream:
        return Stream(access.buffer, is_store, tuple(self._step(access, axis) for axis in self.axes))

    def _step(self, access: Access, axis: Axis) -> Expr | None:
        known = access.stride(axis.var)
        if known is not None:
            return _number(known)
        flat = self.analyzer.simplify(_flat(access, axis.var))
        following = substitute(flat, {axis.var: axis.var + const(1, axis.var.dtype)})
        step = self.analyzer.simplify(following - flat)
        own = {axis.var for axis in self.axes}
        is_fixed = not uses_var(step, own.__contains__) and not loads_of(step)
        return step if is_fixed else None

    @property
    def are_affine(self) -> bool:
        """Whether all divisors are literals: the quotients of a reshape and those of a fused loop then cancel."""
        return None not in self._forms

    def follow(self, outer: int, inner: int) -> bool:
        """Whether every stream goes on along axis `outer` where it ends along `inner`: the two are one walk."""
        if self.axes[outer].extent == 1 or self.axes[inner].extent == 1:
            return True
        return all(self.follows(stream, outer, inner) for stream in self.all)

    def follows(self, stream: Stream, outer: int, inner: int) -> bool:
        """Whether one stream does."""
        far, near = stream.steps[outer], stream.steps[inner]
        if far is None or near is None:
            return False
        return self.analyzer.can_prove_equal(far, near * self.extents[inner])

    def stores_follow(self, outer: int, inner: int) -> bool:
        """Whether the stores do."""
        return all(self.follows(stream, outer, inner) for stream in self.stores)

    def bytes_touched(self) -> int | None:
        """How many bytes of memory the whole block touches, each once; None when sizes are not known."""
        total = 0
        for stream in self.all:
            cells = stream.itemsize
            for axis, step in zip(self.axes, stream.steps, strict=True):
                if axis.extent is None:
                    return None
                if not isinstance(step, IntImm) or step.value != 0:
                    cells *= axis.extent
            total += cells
        return total


def _number(value: int) -> Expr:
    """A distance; of buffers with 2³¹ elements and more, one that no 32 bits hold."""
    return const(value, "int32" if -(1 << 31) <= value < 1 << 31 else "int64")


def _flat(access: Access, moving: Var) -> Expr:
    """The number of the cell, without the indices that `moving` is not part of."""
    buffer = access.buffer
    if buffer.strides:
        strides: Sequence[Expr] = buffer.strides
    else:
        strides = [const(1, "int32")]
        for size in reversed(buffer.shape[1:]):
            strides = [strides[0] * size, *strides]
    total: Expr = const(0, "int32")
    for index, stride in zip(access.indices, strides, strict=True):
        if uses_var(index, lambda var: var is moving):
            total = total + index * stride
    return total
