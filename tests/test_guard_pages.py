"""Arrays between guard pages: what they hold is theirs to read and write, the byte beyond is not."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.guard_pages import GuardPages


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("shape", [(), (3, 5), (0, 4), (1024,), (1025,)])
def test_an_array_is_as_it_was(shape, end):
    pages = GuardPages()
    array = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    for _ in range(3):
        np.testing.assert_array_equal(pages.copy(array, end), array)
        pages.clear()


@pytest.mark.parametrize(("end", "place"), [("True", 12), ("False", -1)])
def test_the_byte_beyond_ends_the_process(end, place):
    text = f"""
import ctypes, numpy
from tests.guard_pages import GuardPages
array = GuardPages().empty(3, "float32", end={end})
ctypes.string_at(array.ctypes.data, 12)
ctypes.string_at(array.ctypes.data + {place}, 1)
"""
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == -signal.SIGSEGV
