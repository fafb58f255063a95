"""Arrays at the edge of memory: whoever touches one byte before or after an array is killed by the processor.

    a = guarded(np.arange(12, dtype="float32").reshape(3, 4))        its end lies at a page that cannot be touched
    a = guarded(x, at="start")                                       its start does; reads before it are caught
    result = in_child(run_model, a, b)                               what it returns, or the signal that ended it

A wrong read of a few bytes usually finds other memory of the process and goes unnoticed. `in_child` runs a function in
a forked process, so that a test can say "this is refused, and nothing is touched" and not take the others with it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import pickle
import signal
from collections.abc import Callable
from typing import Any

import numpy as np

_PAGE = mmap.PAGESIZE
_NONE = 0  # PROT_NONE
_libc = ctypes.CDLL(None, use_errno=True)
_kept: dict[int, mmap.mmap] = {}  # mappings live as long as the process: arrays point into them


def guarded(array: np.ndarray, at: str = "end") -> np.ndarray:
    """A copy of `array` that ends (or, with at="start", begins) exactly where memory cannot be touched."""
    array = np.asarray(array)
    flat = np.ascontiguousarray(array)
    inside = -(-max(flat.nbytes, 1) // _PAGE) * _PAGE
    room = mmap.mmap(-1, inside + 2 * _PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(room))
    _kept[begin] = room
    for page in (begin, begin + _PAGE + inside):
        if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), _NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = _PAGE + (inside - flat.nbytes if at == "end" else 0)
    made = np.frombuffer(room, dtype=np.uint8, count=flat.nbytes, offset=offset) if flat.nbytes else None
    if made is None:  # no element: any address will do, and this one cannot be touched
        return np.frombuffer(room, dtype=flat.dtype, count=0, offset=_PAGE + inside).reshape(array.shape)
    result = made.view(flat.dtype).reshape(array.shape)
    result[...] = array
    return result


def in_child(function: Callable[..., Any], *args: Any) -> Any:
    """What `function(*args)` returns in a forked process; an exception it raises is raised here, a signal is an error.

    The function must not need threads that the parent started.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        faulthandler.disable()
        try:
            answer: tuple[bool, Any] = (True, function(*args))
        except BaseException as error:
            answer = (False, error)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise AssertionError(f"the process was ended by {signal.Signals(os.WTERMSIG(status)).name}")
    fine, value = pickle.loads(said)
    if not fine:
        raise value
    return value
