"""The thread pool and the workspace that compiled code calls: their addresses, and how many threads to use.

The work is done by `native/thread_pool.c`. Where that library cannot be had, compiled code still runs: `symbols` warns
and gives stand-ins that run parallel loops in the calling thread; `why_serial` says what is missing.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopwright.runtime import ffi
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.native_build import prebuilt_path
from loopwright.runtime.native_library import NativeLibrary

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

MAX_THREADS: Final = 1024  # as in thread_pool.h
_ENVIRONMENT: Final = "LOOPWRIGHT_NUM_THREADS"
_COUNT: Final = re.compile(r"[0-9]{1,9}")  # what C reads too

BODY: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
PARALLEL_FOR: Final = ctypes.CFUNCTYPE(ctypes.c_int32, BODY, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
DYNAMIC_FOR: Final = ctypes.CFUNCTYPE(
    ctypes.c_int32, BODY, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
)
_ALLOCATE: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)

_LINKED: Final = ("lw_parallel_for", "lw_parallel_for_dynamic", "lw_workspace_alloc", "lw_workspace_free")
_native: Final = NativeLibrary(Path(__file__).parent / "native" / "thread_pool.c")


class BadThreadCount(LoopwrightError, ValueError):
    """A number of threads that makes no sense; it must be an integer from 1 to 1024.

    It comes from `LOOPWRIGHT_NUM_THREADS`, `set_num_threads` or `threads`. Without any of them it is the number of
    processors this process may use: its affinity, and the CPU quota of its container.

    For example:

        from loopwright.runtime import set_num_threads
        set_num_threads(0)
    """

    code = "LW0106"

    def __init__(self, where: str, given: object) -> None:
        super().__init__(
            f"{where}: {given!r} is no number of threads",
            hint=f"give an integer from 1 to {MAX_THREADS}",
            fields={"where": where, "given": str(given)},
        )


@functools.cache
def library() -> ctypes.CDLL | None:
    """The native runtime, prebuilt or built on first use; None where that is impossible (see `why_serial`)."""
    given = os.environ.get(_ENVIRONMENT, "").strip()  # empty is as good as unset
    if given and not (_COUNT.fullmatch(given) and 1 <= int(given) <= MAX_THREADS):
        raise BadThreadCount(f"the environment variable {_ENVIRONMENT}", given)
    loaded = _native.load()
    if loaded is not None:
        _declare(loaded)
    return loaded


def is_prebuilt() -> bool:
    """Whether the native runtime came with the installed package, and not from a compiler of this machine."""
    native = library()
    return native is not None and native._name == str(prebuilt_path(_native.source))


def why_serial() -> str | None:
    """Why parallel loops run on one thread, or None when they do not."""
    return _native.why_not if library() is None else None


@functools.cache
def symbols() -> dict[str, int]:
    """The addresses that compiled code links against, by C name."""
    native = library()
    if native is None:
        _warn_that_loops_are_serial()
        return {name: ffi.address_of(stand_in) for name, stand_in in _stand_ins().items()}
    native.lw_set_error_hooks(*_error_hooks())
    return {name: ffi.address_of(getattr(native, name)) for name in _LINKED}


def connect_errors(set_error_hooks: CFuncPtr) -> None:
    """Tell a pool (`lw_set_error_hooks` of a loaded library) how errors move between threads."""
    set_error_hooks.argtypes, set_error_hooks.restype = [ctypes.c_void_p] * 3, None
    set_error_hooks(*_error_hooks())


def num_threads() -> int:
    """How many threads a parallel loop started by this thread uses."""
    native = library()
    return 1 if native is None else native.lw_get_num_threads()


def set_num_threads(count: int | None) -> None:
    """Use `count` threads from now on, in the whole process; None: as many as the process may use."""
    if count is not None:
        _check("set_num_threads", count)
    native = library()
    if native is not None:
        native.lw_set_num_threads(count or 0)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside the `with`, parallel loops that this thread starts use `count` threads; other threads are not touched."""
    _check("threads", count)
    native = library()
    before = native.lw_override_num_threads(count) if native is not None else 0
    try:
        yield
    finally:
        if native is not None:
            native.lw_override_num_threads(before)


def trim_workspace() -> None:
    """Give back the temporary memory that threads keep for the next call; what is in use stays."""
    native = library()
    if native is not None:
        native.lw_workspace_trim()


def _check(where: str, count: object) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_THREADS:
        raise BadThreadCount(where, count)


def _warn_that_loops_are_serial() -> None:
    """Say it where it costs something: with one thread or one processor nothing is lost."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = os.environ.get(_ENVIRONMENT, "").strip()
    if (int(given) if given else cpus) > 1:
        warnings.warn(
            f"parallel loops run on one thread: {_native.why_not}; `loopwright doctor` says what this machine lacks",
            RuntimeWarning,
            stacklevel=3,
        )


def _declare(native: ctypes.CDLL) -> None:
    i32, i64, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
    native.lw_parallel_for.argtypes, native.lw_parallel_for.restype = [BODY, i64, i64, pointer], i32
    native.lw_parallel_for_dynamic.argtypes = [BODY, i64, i64, pointer, i64]
    native.lw_parallel_for_dynamic.restype = i32
    native.lw_get_num_threads.restype = i32
    native.lw_set_num_threads.argtypes, native.lw_set_num_threads.restype = [i32], None
    native.lw_override_num_threads.argtypes, native.lw_override_num_threads.restype = [i32], i32
    native.lw_quota_cpus.argtypes, native.lw_quota_cpus.restype = [ctypes.c_char_p, ctypes.c_char_p], i32
    native.lw_set_error_hooks.argtypes, native.lw_set_error_hooks.restype = [pointer, pointer, pointer], None
    native.lw_workspace_alloc.argtypes, native.lw_workspace_alloc.restype = [i64], pointer
    native.lw_workspace_free.argtypes, native.lw_workspace_free.restype = [pointer], None
    native.lw_workspace_held.restype = i64
    native.lw_workspace_trim.restype = None
    native.lw_time_calls.argtypes = [pointer, pointer, pointer, pointer, i32, i64]
    native.lw_time_calls.restype = i64


def _error_hooks() -> tuple[int, int, int]:
    """How the pool moves an error from the worker that met it to the thread that waits."""
    known = ffi.symbols()
    return known["TVMFFIErrorMoveFromRaised"], known["TVMFFIErrorSetRaised"], known["TVMFFIObjectDecRef"]


@functools.cache
def _stand_ins() -> dict[str, CFuncPtr]:
    """The same functions without the native runtime; cached, since compiled code keeps their addresses for ever."""
    libc = ctypes.CDLL(None)
    libc.aligned_alloc.argtypes, libc.aligned_alloc.restype = [ctypes.c_size_t, ctypes.c_size_t], ctypes.c_void_p

    def parallel_for(body: Callable[[int, int, object], int], begin: int, end: int, closure: object) -> int:
        return body(begin, end, closure) if end > begin else 0

    def dynamic_for(body: Callable[[int, int, object], int], begin: int, end: int, closure: object, _grain: int) -> int:
        return parallel_for(body, begin, end, closure)

    def allocate(size: int) -> int | None:
        return libc.aligned_alloc(64, max(64, -(-size // 64) * 64)) if size >= 0 else None

    return {
        "lw_parallel_for": PARALLEL_FOR(parallel_for),
        "lw_parallel_for_dynamic": DYNAMIC_FOR(dynamic_for),
        "lw_workspace_alloc": _ALLOCATE(allocate),
        "lw_workspace_free": libc.free,
    }
