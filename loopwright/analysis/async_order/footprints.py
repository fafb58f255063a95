"""Footprints: which elements of shared memory, or of registers, the threads of a kernel touch by an access.

    for k in range(4):
        if k * 32 + tx < 100:                 units 0 … 99, unit e by thread e % 32
            S[k * 32 + tx] = …

Memory is counted in units: the bytes of the smallest type that it is seen as. Where an index or a condition depends on
data, the footprint is all that may be touched, and is not `exact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from loopwright.analysis.async_order.values import Array, Env, Known, Value
from loopwright.ir import Buffer, Expr, For, Node, Stmt, Var
from loopwright.ir.warpgroup_intrinsics import CORE_ROWS

MOST_PAIRS: Final = 4_000_000  # of a unit and a thread, of one access
MANY: Final = -2  # in place of a thread: several touch the unit


@dataclass(eq=False)
class Footprint:
    """What an access touches; `threads[k]` touches `units[k]`. Without threads it is all of those that do it."""

    data: Var
    units: Array
    threads: Array | None
    is_exact: bool
    of_threads: dict[int, tuple[Array, Array | None]] = field(default_factory=dict)  # by the number of a class

    def restricted(self, number: int, members: np.ndarray) -> tuple[Array, Array | None]:
        """The units that a class of threads touches, each once, and the thread of each."""
        result = self.of_threads.get(number)
        if result is None:
            if self.threads is None:
                result = self.units, None
            else:
                chosen = members[self.threads]
                result = _owners(self.units[chosen], self.threads[chosen])
            self.of_threads[number] = result
        return result


def _owners(units: Array, threads: Array) -> tuple[Array, Array]:
    order = np.lexsort((threads, units))
    units, threads = units[order], threads[order]
    if not len(units):
        return units, threads
    first = np.flatnonzero(np.concatenate([[True], units[1:] != units[:-1]]))
    last = np.concatenate([first[1:], [len(units)]]) - 1
    return units[first], np.where(threads[first] == threads[last], threads[first], MANY)


class Step(NamedTuple):
    """What stands around an access within its statement: a loop, a let, or a condition that holds or does not."""

    node: Node
    value: Expr | None = None
    holds: bool = True


class Site(NamedTuple):
    """An access of a statement."""

    node: Node  # the load, the store or the call
    buffer: Buffer
    indices: tuple[Expr, ...]
    is_write: bool
    around: tuple[Step, ...]
    statement: Stmt


class TooLarge(Exception):
    """A footprint is not computed: of memory of symbolic size, or of too many elements."""


class Footprints:
    """Computes footprints of the accesses of one kernel."""

    def __init__(self, env: Env, threads: int, unit_bytes: dict[Var, int]) -> None:
        self.env, self.threads, self.unit_bytes = env, threads, unit_bytes
        self.layouts: dict[Buffer, tuple[list[int], list[int], int]] = {}

    def of_site(self, site: Site, mask: np.ndarray, by_thread: bool) -> Footprint | None:
        """What threads in the mask touch by an access of their own; None where that is nothing."""
        env, loops = self.env, [step.node for step in site.around if isinstance(step.node, For)]
        conditions: list[Array] = [mask]
        is_exact, depth = True, 0
        for step in site.around:
            if isinstance(step.node, For):
                low, extent = env.value(step.node.min), env.value(step.node.extent)
                if low is None or extent is None:
                    env.vars[step.node.loop_var] = None
                    is_exact = False
                else:
                    most = int(np.max(extent)) if isinstance(extent, np.ndarray) else extent
                    if most <= 0:
                        return None
                    count = np.arange(most).reshape((-1,) + (1,) * (len(loops) - depth))
                    if isinstance(extent, np.ndarray):
                        conditions.append(count < extent)
                    env.vars[step.node.loop_var] = count + low
                depth += 1
            elif step.value is not None and isinstance(step.node, Var):
                env.vars[step.node] = env.value(step.value)
            elif step.value is not None:
                value = env.value(step.value)
                if value is None:
                    is_exact = False
                elif isinstance(value, np.ndarray):
                    conditions.append(value if step.holds else ~value)
                elif bool(value) is not step.holds:
                    return None
        shape, strides, base = self.layout(site.buffer)
        values = [env.value(index) for index in site.indices]
        flat: Known = base
        beyond = np.zeros(1, "int64")
        for value, stride, extent in zip(values, strides, shape, strict=True):
            if value is None:
                is_exact = False
                beyond = (beyond[:, None] + np.arange(extent) * stride).reshape(-1)
            else:
                flat = flat + value * stride
        return self._pairs(site.buffer, flat, beyond, conditions, is_exact, by_thread)

    def _pairs(
        self, buffer: Buffer, flat: Known, beyond: Array, conditions: list[Array], is_exact: bool, by_thread: bool
    ) -> Footprint | None:
        number = np.arange(self.threads)
        parts = np.broadcast_arrays(flat, number, *conditions)
        if parts[0].size * len(beyond) > MOST_PAIRS:
            raise TooLarge(f"an access of {buffer.name} touches too many elements")
        holds = np.logical_and.reduce(parts[2:])
        flat_units, threads = parts[0][holds], parts[1][holds]
        if not len(flat_units):
            return None
        if not by_thread:
            flat_units = np.unique(flat_units)
        if len(beyond) > 1:
            flat_units = (flat_units[:, None] + beyond).reshape(-1)
            threads = np.repeat(threads, len(beyond)) if by_thread else threads
        width = buffer.dtype.nbytes * buffer.dtype.lanes // self.unit_bytes[buffer.data]
        if width > 1:
            flat_units = (flat_units[:, None] * width + np.arange(width)).reshape(-1)
            threads = np.repeat(threads, width) if by_thread else threads
        flat_units = flat_units.astype("int64")
        if not by_thread:
            return Footprint(buffer.data, flat_units, None, is_exact)
        pairs = np.unique(flat_units * self.threads + threads)
        return Footprint(buffer.data, pairs // self.threads, pairs % self.threads, is_exact)

    def layout(self, buffer: Buffer) -> tuple[list[int], list[int], int]:
        """Shape, strides and offset of a buffer, in elements; sizes do not change while a kernel runs."""
        known = self.layouts.get(buffer)
        if known is None:
            shape = [self.env.value(extent) for extent in buffer.shape]
            strides = [self.env.value(stride) for stride in buffer.effective_strides()]
            base = self.env.value(buffer.elem_offset)
            if not all([isinstance(value, int) for value in (*shape, *strides, base)]):
                raise TooLarge(f"the size of {buffer.name} is not known")
            known = shape, strides, base  # type: ignore[assignment]
            self.layouts[buffer] = known  # type: ignore[assignment]
        assert known is not None
        return known

    def byte_of(self, buffer: Buffer, indices: Sequence[Expr]) -> Value:
        """Where an element begins, in bytes; None where that is not known."""
        _, strides, result = self.layout(buffer)
        flat: Known = result
        for index, stride in zip(indices, strides, strict=True):
            value = self.env.value(index)
            if value is None:
                return None
            flat = flat + value * stride
        return flat * buffer.dtype.nbytes

    def of_bytes(self, data: Var, begin: int, bytes: np.ndarray, is_exact: bool = True) -> Footprint:
        """What an asynchronous operation touches: bytes, counted from `begin`."""
        return Footprint(data, np.unique((bytes + begin) // self.unit_bytes[data]), None, is_exact)


def matrix_bytes(
    begin: int, rows: int, row_bytes: int, size: int, swizzle: int, steps: tuple[int, int], transposed: bool
) -> np.ndarray:
    """The bytes of the memory that `wgmma` reads of an operand which begins at byte `begin`."""
    leading, stride = steps
    x, k = np.meshgrid(np.arange(rows), np.arange(row_bytes // size), indexing="ij")
    if transposed:
        offset = x // 64 * leading + x % 64 * size + k // CORE_ROWS * stride + k % CORE_ROWS * 128
    elif swizzle:
        offset = x // CORE_ROWS * stride + x % CORE_ROWS * swizzle + k * size
    else:
        along = k * size
        offset = x // CORE_ROWS * stride + x % CORE_ROWS * 16 + along // 16 * leading + along % 16
    at = offset + begin
    mask = {128: 7, 64: 3, 32: 1, 0: 0}[swizzle]
    at = at ^ ((at >> 7 & mask) << 4)
    result: np.ndarray = (at[..., None] + np.arange(size)).reshape(-1)
    return result
