"""GpuDescription: everything the compiler asks about an NVIDIA GPU, from `-arch`, options, a tag, or the one here.

    describe_gpu("cuda -arch=sm_80").max_shared_memory_per_block == 163 * 1024
    describe_gpu("cuda -arch=sm_80,sm_90a")                     what both have; `architectures_of` lists them
    describe_gpu("nvidia/nvidia-h100").multiprocessors == 132
    describe_gpu("cuda")                                        the GPU of this machine; without one, an sm_80

Everyone asks the description; nobody asks for the architecture's name. (`describe` of a cuda target is about the CPU
that launches its kernels.)
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass, replace
from typing import Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.target.errors import BadTargetAttribute
from loopwright.target.gpus import BOARDS, EXACT, FAMILY, LIMITS, Board
from loopwright.target.target import Target, TargetLike, as_target

_CLOCK, _MEMORY_CLOCK, _BUS_BITS, _PROCESSORS, _L2 = 13, 36, 37, 16, 38  # CUdevice_attribute; clocks in kHz
_PROCESSOR_THREADS, _PROCESSOR_SHARED, _PROCESSOR_REGISTERS, _PROCESSOR_BLOCKS = 39, 81, 82, 106
_SHARED_OPT_IN, _BLOCK_REGISTERS, _MAJOR, _MINOR = 97, 12, 75, 76
EMULATED: Final = "emulated"  # the `-model` of a target whose kernels run on the CPU
USUAL_ARCH: Final = "sm_80"  # of `cuda` alone, where there is no GPU
STATIC_SHARED: Final = 48 << 10  # bytes that every block gets without asking
_MULTIPROCESSORS: Final = 16  # of a device about which only the architecture is known
_OPTIONS: Final = (
    *("max_threads_per_block", "max_num_threads", "max_shared_memory_per_block", "thread_warp_size"),
    *("registers_per_block", "l2_cache_size_bytes"),
)


class UnknownGpuArchitecture(LoopwrightError, ValueError):
    """`-arch` of a cuda target names no architecture: it is written as `sm_80`, `sm_90a` or `sm_100f`.

    Several are separated by commas, `-arch=sm_80,sm_90a`; `compute_90` is PTX, which later GPUs compile. The letter
    `a` allows instructions that this architecture alone has (wgmma on `sm_90a`); `f` those of its family.

    For example:

        from loopwright.target import describe_gpu

        describe_gpu("cuda -arch=sm_85")
    """

    code = "LW0680"

    def __init__(self, arch: str) -> None:
        number = int(re.sub(r"\D", "", arch) or 0)
        near = sorted(LIMITS, key=lambda known: (abs(known - number), known))[:3] if number else sorted(LIMITS)
        names = [_with_letter(known, arch[-1:]) for known in near]
        super().__init__(
            f"unknown GPU architecture {arch!r}",
            hint=f"use {', '.join(names)}" if number else f"use one of {', '.join(names)}",
            fields={"arch": arch, "candidates": names},
        )


@dataclass(frozen=True)
class GpuDescription:
    """An NVIDIA GPU as the compiler sees it; figures that nobody told are 0."""

    name: str  # of the board; empty where only the architecture is known
    arch: str  # "sm_90a"
    is_host: bool  # the GPU of this machine
    multiprocessors: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multiprocessor: int
    max_blocks_per_multiprocessor: int
    static_shared_memory_per_block: int  # bytes a block gets without asking
    max_shared_memory_per_block: int  # and those it may ask for
    shared_memory_per_multiprocessor: int
    registers_per_block: int
    registers_per_multiprocessor: int
    max_registers_per_thread: int
    l2_cache_bytes: int
    memory_bytes: int
    memory_bandwidth: float  # bytes a second
    float32_flops: float  # a second
    float16_flops: float  # a second, of the matrix units

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability: (9, 0)."""
        major, minor = divmod(self.number, 10)
        return major, minor

    @property
    def number(self) -> int:
        """Ten times the compute capability: 90."""
        return int(self.arch[3:].rstrip("af"))

    @property
    def is_exact(self) -> bool:
        """Code may use what this architecture alone has, and then runs on no other."""
        return self.arch.endswith("a")

    @property
    def has_dp4a(self) -> bool:
        """Dot products of four int8 are one instruction."""
        return self.number >= 61

    @property
    def has_float16_arithmetic(self) -> bool:
        """float16 is added and multiplied directly."""
        return self.number == 53 or (self.number >= 60 and self.number != 61)

    @property
    def has_bfloat16_arithmetic(self) -> bool:
        """bfloat16 is added and multiplied directly."""
        return self.number >= 80

    @property
    def has_float8_conversion(self) -> bool:
        """float8 converts to and from float16 in one instruction."""
        return self.number >= 89

    @property
    def has_matrix_unit(self) -> bool:
        """There are tensor cores (`mma.sync`)."""
        return self.number >= 70

    @property
    def has_async_copy(self) -> bool:
        """Threads copy to shared memory without waiting (`cp.async`)."""
        return self.number >= 80

    @property
    def has_clusters(self) -> bool:
        """Blocks form clusters, and tensors are copied by one thread (TMA, mbarrier with byte counts)."""
        return self.number >= 90

    @property
    def has_wgmma(self) -> bool:
        """Four warps multiply from shared memory together (`wgmma`)."""
        return self.arch == "sm_90a"

    def blocks_per_multiprocessor(self, threads: int, shared: int = 0, registers: int = 32) -> int:
        """How many blocks of so many threads, bytes of shared memory and registers a thread run on one at once."""
        warps = -(-threads // self.warp_size)
        per_warp = -(-registers * self.warp_size // 256) * 256  # registers are given out to warps in parts of 256
        limits = [
            self.max_blocks_per_multiprocessor,
            self.max_threads_per_multiprocessor // (warps * self.warp_size),
            self.registers_per_multiprocessor // (warps * per_warp),
            self.shared_memory_per_multiprocessor // (shared + 1024) if shared else self.max_blocks_per_multiprocessor,
        ]
        return max(0, min(limits))  # a block takes 1 KiB of shared memory for the system

    def __str__(self) -> str:
        return f"{self.name or 'GPU'} ({self.arch}, {self.multiprocessors} multiprocessors)"


def describe_gpu(target: TargetLike | GpuDescription) -> GpuDescription:
    """The GPU that a cuda target means; `cuda` without `-arch` means that of this machine, or one of sm_80."""
    return target if isinstance(target, GpuDescription) else _describe(as_target(target))


def read_arch(arch: str) -> tuple[int, str]:
    """Ten times the compute capability, and the letter: (90, "a") for "sm_90a"."""
    found = re.fullmatch(r"(?:sm|compute)_(\d{2,3})([af]?)", arch)
    if found is None or int(found[1]) not in LIMITS:
        raise UnknownGpuArchitecture(arch)
    number, letter = int(found[1]), found[2]
    if (letter == "a" and number not in EXACT) or (letter == "f" and number not in FAMILY):
        raise UnknownGpuArchitecture(arch)
    return number, letter


def architectures_of(target: TargetLike) -> list[str]:
    """The architectures that the target names, in its order: "sm_90a" for machine code, "compute_90" for PTX.

    Empty where it names none.
    """
    chosen = as_target(target)
    board = BOARDS.get(chosen.tag)
    named = chosen.arch or chosen.mcpu or (board.arch if board is not None else "")
    result = list(dict.fromkeys(filter(None, named.split(","))))
    for one in result:
        read_arch(one)
    return result


@functools.lru_cache(maxsize=256)
def _describe(target: Target) -> GpuDescription:
    if str(target.kind) not in ("cuda", "nvptx"):
        raise BadTargetAttribute(str(target.kind), "kind", str(target.kind), "cuda, for a GPU to be described")
    board = BOARDS.get(target.tag)
    archs = architectures_of(target)
    is_real = target.model != EMULATED
    if is_real and difflib.get_close_matches(target.model.lower(), [EMULATED], cutoff=0.7):
        raise BadTargetAttribute(
            *(str(target.kind), "model", target.model, f"{EMULATED}, or the name of a GPU"),
            hint=f"write -model={EMULATED} to run kernels on the CPU",
        )
    here = _gpu_of_this_machine(_index(target)) if is_real and not archs else None
    described = here if here is not None else _common([_of_board(a, target.tag, board) for a in archs or [USUAL_ARCH]])
    given = {name: _positive(target, name) for name in _OPTIONS if name in target.attrs}
    shared = given.get("max_shared_memory_per_block", STATIC_SHARED)
    threads = given.get("max_threads_per_block", min(1024, given.get("max_num_threads", 1024)))
    return replace(
        described,
        warp_size=given.get("thread_warp_size", described.warp_size),
        max_threads_per_block=threads,
        static_shared_memory_per_block=min(STATIC_SHARED, shared),
        # Exactly 48 KiB, which tags of scripts say, is what blocks get without asking and no other limit.
        max_shared_memory_per_block=described.max_shared_memory_per_block if shared == STATIC_SHARED else shared,
        registers_per_block=given.get("registers_per_block", described.registers_per_block),
        l2_cache_bytes=given.get("l2_cache_size_bytes", described.l2_cache_bytes),
    )


def _common(described: list[GpuDescription]) -> GpuDescription:
    """A GPU that has what each of them has: the oldest of them, with the smallest of every limit."""
    oldest = min(described, key=lambda one: one.number)
    if len(described) == 1:
        return oldest
    return replace(
        oldest,
        arch=oldest.arch.rstrip("af"),  # instructions of one architecture alone are not for the others
        **{
            name: min([getattr(one, name) for one in described])
            for name in (
                *("max_threads_per_multiprocessor", "max_blocks_per_multiprocessor", "max_shared_memory_per_block"),
                *("shared_memory_per_multiprocessor", "registers_per_block", "registers_per_multiprocessor"),
            )
        },
    )


def _of_board(arch: str, name: str, board: Board | None) -> GpuDescription:
    number, letter = read_arch(arch)
    limits = LIMITS[number]
    return GpuDescription(
        name=name,
        arch=f"sm_{number}{letter}",
        is_host=False,
        multiprocessors=board.multiprocessors if board is not None else _MULTIPROCESSORS,
        warp_size=32,
        max_threads_per_block=1024,
        max_threads_per_multiprocessor=limits.threads,
        max_blocks_per_multiprocessor=limits.blocks,
        static_shared_memory_per_block=STATIC_SHARED,
        max_shared_memory_per_block=limits.max_shared,
        shared_memory_per_multiprocessor=limits.shared,
        registers_per_block=limits.block_registers,
        registers_per_multiprocessor=limits.registers,
        max_registers_per_thread=255,
        l2_cache_bytes=board.l2 if board is not None else 0,
        memory_bytes=board.memory if board is not None else 0,
        memory_bandwidth=board.bandwidth if board is not None else 0.0,
        float32_flops=board.float32_flops if board is not None else 0.0,
        float16_flops=board.float16_flops if board is not None else 0.0,
    )


@functools.cache
def _gpu_of_this_machine(index: int) -> GpuDescription | None:
    """What the driver says of `cuda(index)`; None where there is no driver, or no such GPU."""
    from loopwright.runtime.nvidia.driver import driver, why_unusable  # which loads tvm_ffi where there is a driver
    from loopwright.runtime.nvidia.emulated import is_emulated

    if is_emulated() or why_unusable(index) is not None:
        return None
    found = driver()
    name = found.device_name(index)
    board = _board_named(name)

    def read(attribute: int) -> int:
        return found.attribute(index, attribute)

    number = 10 * read(_MAJOR) + read(_MINOR)
    letter = "a" if number in EXACT else ""
    limits = LIMITS.get(number) or LIMITS[max(known for known in LIMITS if known <= max(number, min(LIMITS)))]
    lanes = 64 if number in (60, 70, 72, 75, 80) else 128  # float32 lanes of a multiprocessor
    from_clocks = 2.0 * read(_MEMORY_CLOCK) * 1e3 * read(_BUS_BITS) / 8  # two transfers a clock
    return GpuDescription(
        name=name,
        arch=f"sm_{number}{letter}",
        is_host=True,
        multiprocessors=read(_PROCESSORS),
        warp_size=32,
        max_threads_per_block=1024,
        max_threads_per_multiprocessor=read(_PROCESSOR_THREADS) or limits.threads,
        max_blocks_per_multiprocessor=read(_PROCESSOR_BLOCKS) or limits.blocks,
        static_shared_memory_per_block=STATIC_SHARED,
        max_shared_memory_per_block=read(_SHARED_OPT_IN) or limits.max_shared,
        shared_memory_per_multiprocessor=read(_PROCESSOR_SHARED) or limits.shared,
        registers_per_block=read(_BLOCK_REGISTERS) or limits.block_registers,
        registers_per_multiprocessor=read(_PROCESSOR_REGISTERS) or limits.registers,
        max_registers_per_thread=255,
        l2_cache_bytes=read(_L2),
        memory_bytes=found.memory(index)[1],
        memory_bandwidth=from_clocks or (board.bandwidth if board is not None else 0.0),
        float32_flops=2e3 * read(_CLOCK) * read(_PROCESSORS) * lanes,
        float16_flops=board.float16_flops if board is not None else 0.0,
    )


def _board_named(name: str) -> Board | None:
    """The board that the driver calls "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090" and so on."""
    words = set(re.split(r"[\s-]+", name.lower()))
    known = [tag for tag in BOARDS if set(tag.partition("/")[2].split("-")) <= words]
    return BOARDS[max(known, key=len)] if known else None


def _index(target: Target) -> int:
    given = target.attrs.get("from_device")
    return given if isinstance(given, int) else 0


def _positive(target: Target, name: str) -> int:
    value = target.attrs[name]
    if not isinstance(value, int) or value < 1:
        raise BadTargetAttribute(str(target.kind), name, value, "a positive integer")
    return value


def _with_letter(number: int, letter: str) -> str:
    has = (letter == "a" and number in EXACT) or (letter == "f" and number in FAMILY)
    return f"sm_{number}{letter if has else ''}"
