"""measure_machine: this machine's microarchitecture, by kernels that each wait for one thing.

    measured = measure_machine()        some seconds
    measured.fma_latency                4
    store(measured)                     compilations on a chip that is not listed use it from now on

The clock comes first: a chain of ANDs and ADDs takes two cycles a step on every CPU, so seconds become cycles. What
else runs on the machine makes a kernel slower, never faster, so each time is the least of several.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Final

import numpy as np

from loopwright.codegen.llvm import make_module
from loopwright.ir import IRModule, PrimFunc
from loopwright.runtime import num_threads
from loopwright.runtime.ffi import PackedFunction
from loopwright.script import from_source
from loopwright.target import Microarchitecture, Target, detect_host, host_description
from loopwright.transform import lower

_STEPS: Final = 200_000
_PATIENCE: Final = 0.3  # seconds for each kernel
_LEAST, _MOST = 5, 200  # samples
_CHAINS: Final = 8  # sums that a stream is added to: enough to hide the latency of an addition
_FAR: Final = 4  # times L3: so that memory is read

_HEAD: Final = "from loopwright.script import tir as T\n\n@T.prim_func\n"
_CLOCK: Final = """def clock(given: T.Buffer((2,), "int64"), result: T.Buffer((1,), "int64")):
    x = T.alloc_buffer((1,), "int64", scope="local")
    x[0] = given[0]
    for step in range({steps}):
        x[0] = x[0] + T.bitwise_and(x[0], given[1])
    result[0] = x[0]
"""
_FMA: Final = """def fma(given: T.Buffer((2,), "float32"), result: T.Buffer(({chains}, {lanes}), "float32")):
    held = T.alloc_buffer(({chains}, {lanes}), "float32", scope="local")
    for c in T.unroll({chains}):
        for i in T.vectorized({lanes}):
            held[c, i] = T.float32(1)
    for step in range({steps}):
        for c in T.unroll({chains}):
            for i in T.vectorized({lanes}):
                held[c, i] = held[c, i] * given[0] + given[1]
    for c in T.unroll({chains}):
        for i in T.vectorized({lanes}):
            result[c, i] = held[c, i]
"""
_READ: Final = """def read(x_handle: T.handle, y: T.Buffer(({threads}, 8, {lanes}), "float32")):
    x = T.match_buffer(x_handle, ({threads}, {count}, 8, {lanes}), "float32")
    for t in T.{kind}({threads}):
        with T.block("part"):
            vt = T.axis.spatial({threads}, t)
            held = T.alloc_buffer((8, {lanes}), "float32", scope="local")
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    held[c, i] = T.float32(0)
            for again in range({again}):
                for j in range({count}):
                    for c in T.unroll(8):
                        for i in T.vectorized({lanes}):
                            held[c, i] = held[c, i] + x[vt, j, c, i]
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    y[vt, c, i] = held[c, i]
"""
_GATHER: Final = """def gather(x: T.Buffer((1024,)), y: T.Buffer((8, {lanes}))):
    held = T.alloc_buffer((8, {lanes}), "float32", scope="local")
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            held[c, i] = T.float32(0)
    for step in range({steps}):
        for c in T.unroll(8):
            for i in T.vectorized({lanes}):
                held[c, i] = held[c, i] + x[T.max(i + step % 8 + c - 4, 0)]
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            y[c, i] = held[c, i]
"""


def measure_machine() -> Microarchitecture:
    """The microarchitecture of this machine, measured on one core, and on all for what needs all."""
    cpu, lanes = host_description(), max(1, host_description().native_vector_lanes("float32"))
    hertz = 2 * _STEPS / _seconds(_kernel(_CLOCK), np.array([3, 2], "int64"), np.zeros(1, "int64"))

    def cycles(function: Callable[..., object], *arrays: np.ndarray) -> float:
        return _seconds(function, *arrays) * hertz

    def chained(chains: int) -> float:
        """Cycles of a step of that many chains of multiply-adds."""
        given, result = np.array([0.5, 0.5], "float32"), np.zeros((chains, lanes), "float32")
        return cycles(_kernel(_FMA, chains=chains, lanes=lanes), given, result) / _STEPS

    def bytes_per_cycle(footprint: int, threads: int = 1) -> float:
        """What vector loads sustain over that many bytes for each thread."""
        count = max(1, footprint // (32 * lanes))
        again = max(1, (4 << 20) // (count * 32 * lanes))
        x, y = _aligned(threads, count, _CHAINS, lanes), _aligned(threads, _CHAINS, lanes)
        kind = "parallel" if threads > 1 else "serial"
        function = _kernel(_READ, threads=threads, count=count, again=again, lanes=lanes, kind=kind)
        return float(x.nbytes * again / cycles(function, x, y))

    caches, threads = cpu.cache_sizes, num_threads()
    most_chains = min(24, max(4, cpu.registers - 4))
    per_cycle = most_chains / chained(most_chains)
    ports = max(1, round(per_cycle))
    near = bytes_per_cycle(caches.l1d // 2)
    l2 = bytes_per_cycle(caches.l2 // 2) if caches.l2 else near
    l3 = bytes_per_cycle(min(caches.l3 // 4, 4 * caches.l2 + (caches.l3 >> 3))) if caches.l3 else l2
    far = max(64 << 20, _FAR * max(caches.l3, caches.l2))
    memory = bytes_per_cycle(far)
    together = bytes_per_cycle(far // threads, threads) if threads > 1 else memory
    gathered = cycles(_kernel(_GATHER, lanes=lanes), np.ones(1024, "float32"), np.zeros((_CHAINS, lanes), "float32"))
    return Microarchitecture(
        detect_host().cpu,
        fma_ports=ports,
        fma_bits=cpu.vector_bits,
        fma_latency=max(1, round(chained(1))),
        load_ports=max(1, round(near * 8 / cpu.vector_bits)),
        load_bits=cpu.vector_bits,
        l2_bytes_per_cycle=round(l2, 1),
        l3_bytes_per_cycle=round(l3, 1),
        memory_bytes_per_cycle=round(memory, 1),
        memory_cores=max(1, math.ceil(together / memory)) if threads > 1 else 1,
        gather_cycles=max(0.1, round(gathered / (_STEPS * _CHAINS * lanes), 2)),
        fork_cycles=max(1000, round(_fork(lanes, threads) * hertz)) if threads > 1 else 12_000,
        caches=caches,
        source="loopwright doctor --measure",
    )


def _fork(lanes: int, threads: int) -> float:
    """Seconds to have all threads start on nearly nothing and to wait for the last one."""

    def once(kind: str, parts: int) -> float:
        function = _kernel(_READ, threads=parts, count=1, again=1, lanes=lanes, kind=kind)
        return _seconds(function, _aligned(parts, 1, _CHAINS, lanes), _aligned(parts, _CHAINS, lanes))

    return max(0.0, once("parallel", threads) - once("serial", 1))


def _aligned(*shape: int) -> np.ndarray:
    """Ones that begin with a cache line: a vector that lies in two takes two loads."""
    count = math.prod(shape)
    whole = np.ones(count + 64, "float32")
    skipped = -whole.ctypes.data % 256 // 4
    return whole[skipped : skipped + count].reshape(shape)


def _kernel(source: str, **sizes: object) -> PackedFunction:
    """The kernel as it is written, for this machine."""
    function = from_source(_HEAD + source.format(**{"steps": _STEPS, **sizes}))
    assert isinstance(function, PrimFunc)
    lowered = lower(IRModule({"main": function.with_attr("global_symbol", "main")}), Target("llvm"))
    entry: PackedFunction = make_module(lowered, host_description(), "main")["main"]
    return entry


def _seconds(call: Callable[..., object], *arrays: np.ndarray) -> float:
    """The least time of a call; short ones are made many at a time."""
    call(*arrays)
    result, spent, used, number = math.inf, 0.0, 0, 1
    while used < _LEAST or (spent < _PATIENCE and used < _MOST):
        start = perf_counter()
        for _ in range(number):
            call(*arrays)
        once = perf_counter() - start
        result, spent, used = min(result, once / number), spent + once, used + 1
        number = 50 if result < 2e-5 else 1
    return result
