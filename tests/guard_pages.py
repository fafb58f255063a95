"""Arrays between pages that nobody may touch: a read or write past either end of one is a SIGSEGV, not luck.

pages = GuardPages()
array = pages.copy(x, end=True)      its last byte is the last one before a guard page
array = pages.empty((3, 4), "float32", end=False)      its first byte is the first one after a guard page
pages.clear()                        all arrays so far are given up; their memory is used again
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final

import numpy as np

_PAGE: Final = mmap.PAGESIZE
_POISON: Final = 0xA5  # what memory holds before it is written: neither zero nor a small number


class GuardPages:
    """Regions of memory with a guard page on either side, kept for reuse."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self._free: dict[int, list[np.ndarray]] = {}  # by number of pages
        self._used: list[tuple[int, np.ndarray]] = []
        self._maps: list[mmap.mmap] = []

    def empty(self, shape: Any, dtype: Any, end: bool = True) -> np.ndarray:
        """An array of poisoned memory beside a guard page: behind its end, or before its start."""
        kind = np.dtype(dtype)
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        length = int(np.prod(sizes, dtype=np.int64)) * kind.itemsize
        region = self._region(-(-length // _PAGE))
        region[:] = _POISON
        start = region.size - length if end else 0
        return np.frombuffer(region[start : start + length] if length else region[start:start], kind).reshape(sizes)

    def copy(self, array: np.ndarray, end: bool = True) -> np.ndarray:
        """The elements of `array` in such memory."""
        made = self.empty(array.shape, array.dtype, end)
        made[...] = array
        return made

    def clear(self) -> None:
        """Take back all memory that was handed out."""
        for pages, region in self._used:
            self._free.setdefault(pages, []).append(region)
        self._used.clear()

    def _region(self, pages: int) -> np.ndarray:
        free = self._free.get(pages)
        region = free.pop() if free else self._map(pages)
        self._used.append((pages, region))
        return region

    def _map(self, pages: int) -> np.ndarray:
        mapped = mmap.mmap(-1, (pages + 2) * _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._maps.append(mapped)
        whole = np.frombuffer(mapped, np.uint8)
        for guard in (whole.ctypes.data, whole.ctypes.data + (pages + 1) * _PAGE):
            if self._libc.mprotect(guard, _PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        return whole[_PAGE : (pages + 1) * _PAGE]
