"""machine_limits: what this machine can do at most, measured by kernels of our own: the roofline of profiles.

    limits = machine_limits(compile_program)
    limits.flops                        multiply-adds in registers, on all threads, in operations a second
    limits.bandwidth("read", 1 << 24)   bytes a second of a stream, by how much data it has
    limits.fork_seconds                 what it takes to have all threads start and end

Measuring takes some tenths of a second, once a process and number of threads. Figures are the best of several: what
else runs on the machine makes them smaller, never greater.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from time import perf_counter
from typing import Final

import numpy as np

from loopwright.ir import PrimFunc
from loopwright.model.kernel import SCHEDULED
from loopwright.model.program import Launch, Program, Value
from loopwright.runtime import num_threads
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.json_text import JsonObject
from loopwright.target import Target, describe

Compile = Callable[[Program], PackedFunction]  # `compile_program`, which makes models that have profiles

FOOTPRINTS: Final = (1 << 18, 1 << 21, 1 << 24, 1 << 26)  # bytes of all arrays of a stream
_STEPS: Final = 20_000
_LEAST, _MOST, _PATIENCE = 5, 100, 0.02  # samples, and seconds for them
_HEAD: Final = "from loopwright.script import tir as T\n\n@T.prim_func\n"
# As many chains of multiply-adds as there are registers, so that none waits for another.
_PEAK: Final = """def peak(seed: T.Buffer((2,), "float32"), sums: T.Buffer(({threads}, {chains}, {lanes}), "float32")):
    for t in T.parallel({threads}):
        with T.block("chains"):
            vt = T.axis.spatial({threads}, t)
            held = T.alloc_buffer(({chains}, {lanes}), "float32", scope="local")
            for c in T.unroll({chains}):
                for i in T.vectorized({lanes}):
                    held[c, i] = T.float32(1)
            for step in range({steps}):
                for c in T.unroll({chains}):
                    for i in T.vectorized({lanes}):
                        held[c, i] = held[c, i] * seed[0] + seed[1]
            for c in T.unroll({chains}):
                for i in T.vectorized({lanes}):
                    sums[vt, c, i] = held[c, i]
"""
# Each thread has a part of its own, so that it finds in its caches what it left there.
_READ: Final = """def read(x_handle: T.handle, sums: T.Buffer(({threads}, 8, {lanes}), "float32")):
    n = T.int32()
    x = T.match_buffer(x_handle, ({threads}, n, 8, {lanes}), "float32")
    for t in T.parallel({threads}):
        with T.block("part"):
            vt = T.axis.spatial({threads}, t)
            held = T.alloc_buffer((8, {lanes}), "float32", scope="local")
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    held[c, i] = T.float32(0)
            for j in range(n):
                for c in T.unroll(8):
                    for i in T.vectorized({lanes}):
                        held[c, i] = held[c, i] + x[vt, j, c, i]
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    sums[vt, c, i] = held[c, i]
"""
_COPY: Final = """def copy(x_handle: T.handle, y_handle: T.handle):
    n = T.int32()
    x = T.match_buffer(x_handle, ({threads}, n, 8, {lanes}), "float32")
    y = T.match_buffer(y_handle, ({threads}, n, 8, {lanes}), "float32")
    for t in T.parallel({threads}):
        with T.block("part"):
            vt = T.axis.spatial({threads}, t)
            for j in range(n):
                for c in T.unroll(8):
                    for i in T.vectorized({lanes}):
                        y[vt, j, c, i] = x[vt, j, c, i] + T.float32(1)
"""


def bandwidth_at(curve: Sequence[Sequence[float]], footprint: float) -> float:
    """Bytes a second for that much data, between the measured sizes on a logarithmic scale."""
    if footprint <= curve[0][0]:
        return curve[0][1]
    for (size, rate), (next_size, next_rate) in pairwise(curve):
        if footprint <= next_size:
            share = math.log(footprint / size) / math.log(next_size / size)
            return rate + share * (next_rate - rate)
    return curve[-1][1]


@dataclass(frozen=True)
class MachineLimits:
    """The most that `threads` threads can do together."""

    threads: int
    flops: float  # of float32
    streams: Mapping[str, Sequence[tuple[int, float]]]  # "read" and "copy": bytes of all data, bytes a second
    fork_seconds: float

    def bandwidth(self, stream: str, footprint: float) -> float:
        """Bytes a second for that much data, between the measured sizes on a logarithmic scale."""
        return bandwidth_at(self.streams[stream], footprint)

    def as_data(self) -> JsonObject:
        """The limits as plain data."""
        streams = {name: [list(point) for point in curve] for name, curve in self.streams.items()}
        return {
            "threads": self.threads,
            "flops": self.flops,
            "bandwidth": streams,
            "fork_seconds": self.fork_seconds,
        }

    def __str__(self) -> str:
        rates = ", ".join(f"{rate / 1e9:.0f} of {size >> 10:,} KiB" for size, rate in self.streams["read"])
        threads = f"{self.threads} thread{'s' * (self.threads != 1)}"
        return f"measured on {threads}: {self.flops / 1e9:.0f} GFLOP/s in float32; reads, GB/s: {rates}"


def machine_limits(compile_program: Compile) -> MachineLimits:
    """Those of this machine and the number of threads that parallel loops have now."""
    return _measured(num_threads(), compile_program)


@cache
def _measured(threads: int, compile_program: Compile) -> MachineLimits:
    cpu = describe(Target("llvm"))
    lanes, chains = max(1, cpu.native_vector_lanes("float32")), min(24, max(4, cpu.registers - 4))
    sizes = {"threads": threads, "lanes": lanes, "chains": chains, "steps": _STEPS}
    read = _Stream(compile_program, _READ, threads, lanes)
    streams = {"read": _curve(read, 1), "copy": _curve(_Stream(compile_program, _COPY, threads, lanes), 2)}
    seed, sums = np.array([0.5, 0.5], np.float32), np.empty((threads, chains, lanes), np.float32)
    peak = _compiled(compile_program, _PEAK.format(**sizes))
    flops = 2.0 * threads * chains * lanes * _STEPS / _best(lambda: peak(seed, sums))
    alone = 0.0 if threads == 1 else _best(_Stream(compile_program, _READ, 1, lanes).call(1))
    fork = 0.0 if threads == 1 else max(0.0, _best(read.call(1)) - alone)
    return MachineLimits(threads, flops, streams, fork)


class _Stream:
    """A kernel over arrays of any length, a part for each thread."""

    def __init__(self, compile_program: Compile, source: str, threads: int, lanes: int) -> None:
        self.part = (threads, 8, lanes)
        self.writes_all = source is _COPY
        self.function = _compiled(compile_program, source.format(threads=threads, lanes=lanes))

    def call(self, count: int) -> Callable[[], object]:
        """A call on arrays of `count` times a vector for each chain and thread."""
        threads, chains, lanes = self.part
        x = np.ones((threads, count, chains, lanes), np.float32)
        y = np.ones(x.shape if self.writes_all else self.part, np.float32)
        return lambda: self.function(x, y)


def _curve(stream: _Stream, arrays: int) -> list[tuple[int, float]]:
    """Rates by size. Less data is never slower: where it was measured so, calls were too short to show it."""
    result: list[tuple[int, float]] = []
    for size in reversed(FOOTPRINTS):
        count = max(1, size // (4 * arrays * math.prod(stream.part)))
        moved = 4 * arrays * math.prod(stream.part) * count
        result.append((size, max([moved / _best(stream.call(count)), *[rate for _, rate in result]])))
    return result[::-1]


def _compiled(compile_program: Compile, source: str) -> PackedFunction:
    """A kernel of one input and one output, as it is written."""
    from loopwright.script import from_source

    func = from_source(_HEAD + source)
    assert isinstance(func, PrimFunc)
    given, result = [Value(one.name, one.shape, one.dtype) for one in map(func.buffer_map.__getitem__, func.params)]
    launch = Launch(func.with_attr(SCHEDULED, True), (given, result))
    return compile_program(Program("limit", [given], [result], {}, [launch]))


def _best(call: Callable[[], object]) -> float:
    """Seconds of a call: the least of several; short ones are tried more often, and the shortest many at a time."""
    call()
    result, spent, used = math.inf, 0.0, 0
    while used < _LEAST or (spent < _PATIENCE and used < _MOST):
        number = 1 if result > 2e-5 else 20
        start = perf_counter()
        for _ in range(number):
            call()
        once = perf_counter() - start
        result, spent, used = min(result, once / number), spent + once, used + 1
    return result
