"""measure_machine: this machine's microarchitecture, by kernels that each wait for one thing.

    measured = measure_machine()        some ten seconds
    measured.fma_latency                4
    store(measured)                     compilations on a chip that is not listed use it from now on

The clock comes first: a chain of ANDs and ADDs takes two cycles a step on every CPU, so seconds become cycles. What
else runs on the machine makes a kernel slower, never faster, so each time is the least of several; results are clamped
to what a CPU may have.

No kernel of this kind shows prefetch distances (`page`, `latency_bytes`, `lookahead`), `gather_bytes`,
`element_cycles`, AMX tiles and those `Moves` that are not cache lines (they are fitted through whole generated
kernels): these keep their defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final, TypeVar

import numpy as np

from loopwright.codegen.llvm import make_module
from loopwright.ir import IRModule, PrimFunc
from loopwright.model import measure_kernels as kernels
from loopwright.runtime import num_threads
from loopwright.runtime.ffi import PackedFunction
from loopwright.script import from_source
from loopwright.target import CpuDescription, Microarchitecture, Moves, Target, detect_host, host_description
from loopwright.transform import lower

Number = TypeVar("Number", int, float)

_STEPS: Final = 200_000  # about, of each kernel: a few tenths of a millisecond, so that some samples are undisturbed
_PATIENCE: Final = 0.3  # seconds for each kernel
_LEAST, _MOST = 5, 200  # samples
_CHAINS: Final = 8  # sums that a stream is added to: enough to hide the latency of an addition
_FAR: Final = 4  # times L3: so that memory is read
_STRIDE: Final = 4  # elements from one shuffled lane to the next
_SHORT_ROW: Final = 4  # cache lines: a stride that prefetchers see


def measure_machine() -> Microarchitecture:
    """The microarchitecture of this machine, measured on one core, and on all for what needs all."""
    cpu, threads = host_description(), num_threads()
    given, result = np.array([3, 2], "int64"), np.zeros(1, "int64")
    core = _Core(cpu, hertz=2 * _STEPS / _seconds(_kernel(kernels.CLOCK), given, result))
    caches = cpu.cache_sizes
    near = core.bytes_per_cycle(caches.l1d // 2)
    l2 = core.bytes_per_cycle(caches.l2 // 2) if caches.l2 else near
    l3 = core.bytes_per_cycle(_beyond_l2(cpu)) if caches.l3 else l2
    far = max(64 << 20, _FAR * max(caches.l3, caches.l2))
    memory = core.bytes_per_cycle(far)
    together = core.bytes_per_cycle(far // threads, threads) if threads > 1 else memory
    return Microarchitecture(
        detect_host().cpu,
        fma_ports=_between(1, round(core.most_chains / core.fma_step(core.most_chains)), 8),
        fma_bits=cpu.vector_bits,
        fma_latency=_between(1, round(core.fma_step(1)), 16),
        load_ports=_between(1, round(near * 8 / cpu.vector_bits), 8),
        load_bits=cpu.vector_bits,
        store_ports=_between(1, round(core.stores_per_cycle()), 4),
        l2_bytes_per_cycle=max(0.1, round(l2, 1)),
        l3_bytes_per_cycle=max(0.1, round(l3, 1)),
        memory_bytes_per_cycle=max(0.1, round(memory, 1)),
        memory_cores=_between(1, math.ceil(together / memory), threads),
        gather_cycles=max(0.1, round(core.gather_cycles(), 2)),
        insert_cycles=_between(0.1, round(core.insert_cycles(), 2), 20.0),
        shuffle_cycles=_between(0.1, round(core.shuffle_cycles(), 2), 10.0),
        fork_cycles=max(1000, round(_fork(core.lanes, threads) * core.hertz)) if threads > 1 else 12_000,
        vector_per_cycle=_between(1, round(core.vector_per_cycle()), 8),
        scalar_per_cycle=_between(1, round(core.scalar_per_cycle()), 12),
        moves=_moves(core),
        caches=caches,
        source="loopwright doctor --measure",
    )


@dataclass(frozen=True)
class _Core:
    """One core of this machine, and its clock; every method times a kernel."""

    cpu: CpuDescription
    hertz: float

    @property
    def lanes(self) -> int:
        return max(1, self.cpu.native_vector_lanes("float32"))

    @property
    def most_chains(self) -> int:
        """Vectors that registers hold, with some left for operands."""
        return min(24, max(4, self.cpu.registers - 4))

    def cycles(self, function: Callable[..., object], *arrays: np.ndarray) -> float:
        return _seconds(function, *arrays) * self.hertz

    def fma_step(self, chains: int) -> float:
        """Cycles of a step of that many chains of multiply-adds."""
        steps = max(1, _STEPS // chains)
        function = _kernel(kernels.FMA, chains=chains, lanes=self.lanes, steps=steps)
        return self.cycles(function, np.zeros(1, "float32"), np.ones((chains, self.lanes), "float32")) / steps

    def vector_per_cycle(self) -> float:
        """Vector instructions a cycle, where additions, multiplications and those of integers are mixed."""
        chains = max(1, self.most_chains // 3)
        steps = max(1, _STEPS // chains)
        function = _kernel(kernels.VECTOR, chains=chains, lanes=self.lanes, steps=steps)
        ones = [np.ones((chains, self.lanes), dtype) for dtype in ("float32", "float32", "int32")]
        return 4 * chains * steps / self.cycles(function, np.ones(2, "float32"), np.ones(1, "int32"), *ones)

    def scalar_per_cycle(self) -> float:
        """Loads and integer instructions of one element a cycle, those of the loop aside."""
        again = max(1, _STEPS // (6 * 64))
        function = _kernel(kernels.SCALAR, again=again)
        return 3 * 6 * 64 * again / self.cycles(function, np.ones((6, 64), "int64"), np.ones(6, "int64"))

    def bytes_per_cycle(self, footprint: int, threads: int = 1) -> float:
        """What vector loads sustain over that many bytes for each thread."""
        count = max(1, footprint // (32 * self.lanes))
        again = max(1, (4 << 20) // (count * 32 * self.lanes))
        x, y = _aligned(threads, count, _CHAINS, self.lanes), _aligned(threads, _CHAINS, self.lanes)
        kind = "parallel" if threads > 1 else "serial"
        function = _kernel(kernels.READ, threads=threads, count=count, again=again, lanes=self.lanes, kind=kind)
        return float(x.nbytes * again / self.cycles(function, x, y))

    def stores_per_cycle(self) -> float:
        """Vector stores to L1 a cycle."""
        count = max(1, self.cpu.cache_sizes.l1d // 2 // (32 * self.lanes))
        again = max(1, _STEPS // (_CHAINS * count))
        function = _kernel(kernels.STORE, count=count, again=again, lanes=self.lanes)
        y = _aligned(count, _CHAINS, self.lanes)
        return _CHAINS * count * again / self.cycles(function, np.ones(1, "float32"), y)

    def gather_cycles(self) -> float:
        """Of one lane, where neighbours may be the same element; what is known where code does without gathers."""
        if not self.cpu.uses_gather:
            return self.cpu.microarchitecture.gather_cycles
        steps = max(1, _STEPS // (_CHAINS * self.lanes))
        function = _kernel(kernels.GATHER, lanes=self.lanes, steps=steps)
        cycles = self.cycles(function, np.ones(1024, "float32"), np.zeros((_CHAINS, self.lanes), "float32"))
        return cycles / (steps * _CHAINS * self.lanes)

    def insert_cycles(self) -> float:
        """Of one lane that is loaded by itself."""
        lanes = max(1, self.cpu.native_vector_lanes("int16"))
        again = max(1, _STEPS // (33 * _CHAINS * lanes))
        function = _kernel(kernels.INSERT, lanes=lanes, again=again)
        cycles = self.cycles(function, np.ones((_CHAINS, lanes, 33), "int16"), np.ones((_CHAINS, lanes), "int16"))
        return cycles / (again * 33 * _CHAINS * lanes)

    def shuffle_cycles(self) -> float:
        """Of one shuffle, and of the load that it needs: a vector of strided lanes has `_STRIDE - 1` of them."""
        count = max(1, self.cpu.cache_sizes.l1d // 2 // (32 * self.lanes * _STRIDE))
        again = max(1, _STEPS // (_CHAINS * count))

        def cycles(stride: int) -> float:
            function = _kernel(kernels.SHUFFLE, stride=stride, count=count, again=again, lanes=self.lanes)
            return self.cycles(function, _aligned(count, _CHAINS, self.lanes * stride), _aligned(_CHAINS, self.lanes))

        return (cycles(_STRIDE) - cycles(1)) / (again * count * _CHAINS * (_STRIDE - 1))

    def line_cycles(self, footprint: int, row: int) -> float:
        """What a cache line takes more at a stride of `row` bytes than in a contiguous stream."""
        line = self.cpu.cache_sizes.line or 64
        rows, columns = max(8, footprint // row // 8 * 8), row // line
        count = rows * columns
        again = max(1, _STEPS // count)
        x, y = _aligned(count * line // 4), _aligned(_CHAINS, self.lanes)

        def cycles(columns: int) -> float:
            sizes = {"size": x.size, "columns": columns, "turns": count // columns // _CHAINS}
            strides = {"line": line // 4, "row": columns * line // 4}
            return self.cycles(_kernel(kernels.LINES, again=again, lanes=self.lanes, **sizes, **strides), x, y)

        return (cycles(columns) - cycles(1)) / (again * count)


def _moves(core: _Core) -> Moves:
    """What a cache line takes that no stream announces; the other moves are the usual ones.

    Row strides are powers of two, as those of most matrices: their lines share banks of L2, which is part of the cost.
    A line on another page never counts as cheaper than one on the same.
    """
    caches, page = core.cpu.cache_sizes, Microarchitecture.page
    near = (caches.l2 or 4 * caches.l1d) // 2
    skipped = _between(0.1, round(core.line_cycles(near, _SHORT_ROW * (caches.line or 64)), 2), 20.0)
    of_page = _between(skipped, round(core.line_cycles(near, page), 2), 50.0)
    of_page_far = _between(of_page, round(core.line_cycles(_beyond_l2(core.cpu), page), 2), 500.0)
    return Moves(
        line_skipped=skipped,
        line_of_page=of_page,
        line_of_page_far=of_page_far,
        line_of_page_somewhere=round(math.sqrt(of_page * of_page_far), 2),  # anywhere between the two
    )


def _beyond_l2(cpu: CpuDescription) -> int:
    """Bytes that L2 does not hold, but L3 does; memory where there is none."""
    _, l2, l3, _ = cpu.cache_sizes
    return min(l3 // 4, 4 * l2 + (l3 >> 3)) if l3 else 8 * max(l2, 1 << 20)


def _between(least: Number, value: Number, most: Number) -> Number:
    """The value; the nearest bound where noise put it beyond."""
    return max(least, min(value, most))


def _fork(lanes: int, threads: int) -> float:
    """Seconds to have all threads start on nearly nothing and to wait for the last one."""

    def once(kind: str, parts: int) -> float:
        function = _kernel(kernels.READ, threads=parts, count=1, again=1, lanes=lanes, kind=kind)
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
    function = from_source(kernels.HEAD + source.format(**{"steps": _STEPS, **sizes}))
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
