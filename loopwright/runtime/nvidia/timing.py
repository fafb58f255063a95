"""The time that work takes on a GPU, between two events in the stream it is put into; and an L2 cache made cold."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable

from loopwright.runtime.nvidia.driver import driver
from loopwright.runtime.nvidia.memory import current_stream

_L2_CACHE_SIZE = 38  # CUdevice_attribute


def device_loop(device: int, loop: Callable[[int], int]) -> Callable[[int], int]:
    """`loop`, which starts a number of calls, measured on the device: in nanoseconds, to some 500 of them."""
    found = driver()
    start, end = found.new("event_create", device), found.new("event_create", device)

    def timed(number: int) -> int:
        stream = current_stream(device)
        found.call("event_record", device, start, stream)
        loop(number)
        found.call("event_record", device, end, stream)
        return round(_elapsed(device, start, end) * 1e6)

    for event in (start, end):
        weakref.finalize(timed, found.call, "event_destroy", device, event).atexit = False
    return timed


def flush_l2(device: int, size: int = 0) -> None:
    """Write `size` bytes of other memory, by default twice the L2 cache, so that no tensor stays in it."""
    found, stream = driver(), current_stream(device)
    size = size or 2 * found.attribute(device, _L2_CACHE_SIZE)
    memory = found.new("alloc", device, size, stream)
    found.call("fill", device, memory, 0, size, stream)
    found.call("free", device, memory, stream)


def _elapsed(device: int, start: int, end: int) -> float:
    milliseconds = ctypes.c_double()
    driver().call("event_elapsed", device, start, end, ctypes.byref(milliseconds))
    return milliseconds.value
