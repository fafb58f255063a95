"""time_evaluator: how long a function takes, measured in a tight loop and given as seconds per call.

Nothing is subtracted. Where the native runtime is there and the arguments are tensors and numbers, the loop runs in C
and the interpreter takes no part in it; otherwise it is a bare Python loop, whose call costs a few tenths of a
microsecond and is part of the figure. On a GPU the time is that between two events in the current stream, around the
same loop.
"""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat as times
from typing import Final

import numpy as np

from loopwright.runtime import ffi, thread_pool
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.nvidia.memory import CUDA
from loopwright.runtime.nvidia.timing import device_loop, flush_l2

_GROWTH: Final = 1.618  # at least, when a repeat was too short: the first calls of a longer run tend to be slower
_MOST_CALLS: Final = 1 << 40
_MORE_THAN_CACHES: Final = 256 << 20  # bytes
_INT, _FLOAT, _TENSOR = 1, 3, 70  # TVMFFITypeIndex


class BadTiming(LoopwrightError, ValueError):
    """An option of time_evaluator that makes no sense, such as fewer than one call.

    For example:

        from loopwright.runtime import time_evaluator
        time_evaluator(print, number=0)
    """

    code = "LW0123"


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call: the figure of each repeat in `results`, and what sums them up."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The average."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """The middle one, which a single disturbed repeat does not move."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """The least disturbed repeat."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The most disturbed repeat."""
        return max(self.results)

    @property
    def std(self) -> float:
        """How far repeats lie from the average, as a standard deviation."""
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        head = "".join(f"{name + ' (ms)':^14}" for name in names)
        row = "".join(f"{getattr(self, name) * 1e3:^14.4f}" for name in names)
        return f"Execution time summary:\n{head}\n{row}"


@dataclass(frozen=True)
class Evaluator:
    """Call it with the function's arguments to get a `BenchmarkResult`; the fields are `time_evaluator`'s options."""

    function: PackedFunction
    number: int
    repeat: int
    min_repeat_ms: int
    limit_zero_time_iterations: int
    cooldown_interval_ms: int
    repeats_to_cooldown: int
    cache_flush_bytes: int
    f_preproc: PackedFunction | None
    device: int | None  # the GPU that is asked for the time; None where arguments tell, or for the CPU

    def __call__(self, *args: object) -> BenchmarkResult:
        # Untimed: the first call meets cold caches and sleeping threads, and raises bad-call errors.
        self.function(*args)
        loop = timed_loop(self.function, args)
        gpu = self.device if self.device is not None else _gpu_of(args)
        flush = _flush(self.cache_flush_bytes, gpu) if self.cache_flush_bytes else None
        if gpu is not None:
            loop = device_loop(gpu, loop)
        number, results = self.number, []
        for index in range(self.repeat):
            if self.f_preproc is not None:
                self.f_preproc(*args)
            if flush is not None:
                flush()
            seconds, number = self._one_repeat(loop, number)
            results.append(seconds / number)
            if self.cooldown_interval_ms and (index + 1) % self.repeats_to_cooldown == 0:
                time.sleep(self.cooldown_interval_ms / 1000)
        return BenchmarkResult(tuple(results))

    def _one_repeat(self, loop: Callable[[int], int], number: int) -> tuple[float, int]:
        """The seconds that `number` calls take, and `number`, grown until they take at least `min_repeat_ms`."""
        zero_times = 0
        while True:
            seconds = loop(number) / 1e9
            zero_times += seconds <= 0
            if (
                seconds * 1000 >= self.min_repeat_ms
                or zero_times >= self.limit_zero_time_iterations
                or number >= _MOST_CALLS
            ):
                return seconds, number
            wanted = self.min_repeat_ms / 1000 / seconds * number if seconds > 0 else 0
            number = math.ceil(max(wanted, number * _GROWTH))


def time_evaluator(
    function: Callable[..., object],
    dev: object = None,
    number: int = 10,
    repeat: int = 1,
    min_repeat_ms: int = 0,
    limit_zero_time_iterations: int = 100,
    cooldown_interval_ms: int = 0,
    repeats_to_cooldown: int = 1,
    cache_flush_bytes: int = 0,
    f_preproc: str | Callable[..., object] = "",
) -> Evaluator:
    """A callable that times `function`: after one untimed call, `repeat` times, `number` calls each time.

    `number` grows until a repeat takes `min_repeat_ms`. `f_preproc` runs before each repeat, and `cache_flush_bytes`
    of other memory are touched there, so use `number=1` to measure with cold caches. On a GPU (`dev`, or where a tensor
    lies) events in the current stream give the time, and `f_preproc="l2_cache_flush_cuda"` touches twice its L2 cache.
    """
    for name, value, least in (
        ("number", number, 1),
        ("repeat", repeat, 1),
        ("repeats_to_cooldown", repeats_to_cooldown, 1),
        ("min_repeat_ms", min_repeat_ms, 0),
        ("cooldown_interval_ms", cooldown_interval_ms, 0),
        ("cache_flush_bytes", cache_flush_bytes, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise BadTiming(f"time_evaluator: {name} is {type(value).__name__} {value!r}", hint="give an integer")
        if value < least:
            raise BadTiming(f"time_evaluator: {name} is {value}, and must be at least {least}", fields={name: value})
    if dev is not None and hasattr(dev, "require"):
        dev.require("time_evaluator")
    if isinstance(f_preproc, str):
        preprocess = _named(f_preproc) if f_preproc else None
    else:
        preprocess = f_preproc
    return Evaluator(
        function, number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown,
        cache_flush_bytes, preprocess, getattr(dev, "index", 0) if getattr(dev, "device_type", None) == CUDA else None,
    )  # fmt: skip


def timed_loop(function: Callable[..., object], args: Sequence[object]) -> Callable[[int], int]:
    """The nanoseconds that a number of calls take; the loop runs in C where it can."""
    return _native_loop(function, args) or _python_loop(function, args)


def _named(name: str) -> PackedFunction:
    """A registered function; the one that scripts name to have cold caches is ours, unless they registered it."""
    known = ffi.load().get_global_func(name, allow_missing=True)
    if known is None and name in _PREPARE:
        return _PREPARE[name]
    return known or ffi.load().get_global_func(name)  # the error is its own


def _cold_caches(*args: object) -> None:
    """Touch so much other memory that no argument stays in the caches (nor the first one, which some would keep)."""
    np.zeros(_MORE_THAN_CACHES, np.uint8).__iadd__(1)


def _cold_l2(*args: object) -> None:
    """The same for the L2 cache of the GPU on which the arguments lie."""
    flush_l2(_gpu_of(args) or 0)


_PREPARE: Final = {"cache_flush_cpu_non_first_arg": _cold_caches, "l2_cache_flush_cuda": _cold_l2}


def _gpu_of(args: Sequence[object]) -> int | None:
    """The GPU on which the first tensor on a GPU lies; None without any."""
    places = [arg.__dlpack_device__() for arg in args if hasattr(arg, "__dlpack_device__")]
    return next((index for kind, index in places if kind == CUDA), None)


def _flush(size: int, gpu: int | None) -> Callable[[], None]:
    """What touches that much other memory."""
    if gpu is not None:
        return lambda: flush_l2(gpu, size)
    other = np.zeros(size, np.uint8)

    def touch() -> None:
        np.add(other, 1, out=other)  # reads and writes every byte, so that little else stays in the caches

    return touch


def _python_loop(function: Callable[..., object], args: Sequence[object]) -> Callable[[int], int]:
    def loop(number: int) -> int:
        clock = time.perf_counter_ns
        start = clock()
        for _ in times(None, number):
            function(*args)
        return clock() - start

    return loop


class _Any(ctypes.Structure):
    """`TVMFFIAny`: a type index and eight bytes of value."""

    _fields_ = [("type_index", ctypes.c_int32), ("padding", ctypes.c_uint32), ("value", ctypes.c_uint64)]


def _native_loop(function: Callable[..., object], args: Sequence[object]) -> Callable[[int], int] | None:
    """The loop in C, or None where the function or an argument must pass through Python."""
    native = thread_pool.library()
    core = ffi.load().core
    if native is None or not isinstance(function, core.Function):
        return None
    keep: list[object] = []
    packed = (_Any * max(1, len(args)))()
    for slot, arg in zip(packed, args, strict=False):
        if isinstance(arg, np.ndarray):
            from loopwright.runtime.tensor import as_argument

            arg = as_argument(arg)
            arg = core.from_dlpack(arg) if isinstance(arg, np.ndarray) else arg
        if isinstance(arg, core.Tensor) and arg.__chandle__():
            slot.type_index, slot.value = _TENSOR, arg.__chandle__()
        elif isinstance(arg, int) and not isinstance(arg, bool) and -(1 << 63) <= arg < 1 << 63:
            slot.type_index, slot.value = _INT, arg & (1 << 64) - 1
        elif isinstance(arg, float):
            slot.type_index, slot.value = _FLOAT, ctypes.c_uint64.from_buffer(ctypes.c_double(arg)).value
        else:
            return None
        keep.append(arg)
    symbols = ffi.symbols()
    call, drop, handle = symbols["TVMFFIFunctionCall"], symbols["TVMFFIObjectDecRef"], function.__chandle__()

    def loop(number: int) -> int:
        nanoseconds = native.lw_time_calls(call, drop, handle, packed, len(args), number)
        if nanoseconds < 0:
            function(*keep)  # fails as the timed call did, and this time the error reaches the caller
            raise LoopwrightError("time_evaluator: a timed call failed, and calling again succeeded")
        return nanoseconds

    return loop
