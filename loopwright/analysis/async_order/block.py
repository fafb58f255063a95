"""Block: what is known of a block of threads while its kernel is followed, and the events so far."""

from __future__ import annotations

import numpy as np

from loopwright.analysis.async_order.events import Event, Mask, NotKnown, Where
from loopwright.analysis.async_order.footprints import Footprints
from loopwright.analysis.async_order.kernels import AsyncKernel, Memory, thread_axes, variable_of
from loopwright.analysis.async_order.values import Env, Known
from loopwright.ir import Expr


class Block:
    """The threads of a block, the values of variables, and what has happened."""

    def __init__(self, kernel: AsyncKernel, memory: Memory, env: Env) -> None:
        self.kernel, self.memory, self.env = kernel, memory, env
        self.tracked = memory.shared | memory.registers
        self.threads = self._threads()
        self.footprints = Footprints(self.env, self.threads, memory.unit_bytes)
        self.masks: dict[bytes, Mask] = {}
        self.everyone = self.mask(np.ones(self.threads, bool))
        self.cut = np.zeros(self.threads, bool)  # threads of which enough has been seen
        self.has_cut = False
        self.events: list[Event] = []
        self.doubts: dict[str, None] = {}
        self.role = ""
        self.where: Where = ()
        self.is_certain = True  # no condition around depends on data

    def _threads(self) -> int:
        """How many there are; their numbers along the axes are variables."""
        count = 1
        for axis in thread_axes(self.kernel):
            extent = self.env.value(axis.value)
            if not isinstance(extent, int):
                raise NotKnown(f"the number of threads, {axis.value}, is not known")
            count *= extent
        number, below = np.arange(count), 1
        for axis in thread_axes(self.kernel):
            extent = self.env.value(axis.value)
            assert isinstance(extent, int)
            self.env.vars[variable_of(axis)] = number // below % extent
            below *= extent
        self.thread_variables = frozenset([variable_of(axis) for axis in thread_axes(self.kernel)])
        return count

    def mask(self, bits: np.ndarray) -> Mask:
        """The threads of these bits."""
        key = bits.tobytes()
        result = self.masks.get(key)
        if result is None:
            result = self.masks[key] = Mask(bits, len(self.masks))
        return result

    def emit(self, event: Event) -> None:
        """The event happens, but to threads of which enough is known."""
        if self.has_cut:
            bits = event.mask.bits & ~self.cut
            if not bits.any():
                return
            event = event._replace(mask=self.mask(bits))
        self.events.append(event._replace(role=self.role) if self.role else event)

    def number(self, expr: Expr, what: str) -> Known:
        """The value of an expression that decides what happens."""
        value = self.env.value(expr)
        if value is None:
            raise NotKnown(f"{what}, {expr}, is not known before the kernel runs")
        return value

    def leave(self, mask: Mask) -> None:
        """Enough has been seen of some threads."""
        self.cut |= mask.bits
        self.has_cut = True
