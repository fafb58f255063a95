"""The guard itself: a read past the end of a guarded array ends the process, and a test hears of it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.guarded_arrays import guarded, in_child


def _read(address):
    return ctypes.c_uint8.from_address(address).value


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", [(1,), (3, 5), (4096,), (1025,)])
def test_every_element_is_there_and_nothing_beyond(shape):
    values = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    last, first = guarded(values), guarded(values, at="start")
    for array in (last, first):
        np.testing.assert_array_equal(array, values)
    assert in_child(_read, last.ctypes.data + last.nbytes - 1) >= 0
    assert in_child(_read, first.ctypes.data) >= 0
    for address in (last.ctypes.data + last.nbytes, first.ctypes.data - 1):
        with pytest.raises(AssertionError, match=r"SIGSEGV|SIGBUS"):
            in_child(_read, address)


def test_an_empty_array_has_no_byte_to_read():
    empty = guarded(np.zeros((0, 4), "float32"))
    assert empty.shape == (0, 4)
    with pytest.raises(AssertionError, match=r"SIGSEGV|SIGBUS"):
        in_child(_read, empty.ctypes.data)


def test_errors_of_the_child_are_errors_here():
    with pytest.raises(ValueError, match="not this"):
        in_child(lambda: (_ for _ in ()).throw(ValueError("not this")))
