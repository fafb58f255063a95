"""What is known of NVIDIA's GPUs: limits by compute capability, and boards by name.

The limits are those of the CUDA programming guide's table of technical specifications, the figures of boards those of
NVIDIA's data sheets: memory as it leaves the factory, FLOP/s at boost clock, matrix units without sparsity.
"""

from __future__ import annotations

from typing import Final, NamedTuple

KIB: Final = 1 << 10


class Limits(NamedTuple):
    """What every device of a compute capability has."""

    threads: int  # per multiprocessor
    blocks: int
    shared: int  # bytes per multiprocessor
    max_shared: int  # bytes of one block that asks for them; others get 48 KiB
    registers: int = 65536  # per multiprocessor
    block_registers: int = 65536


# By ten times the compute capability.
LIMITS: Final[dict[int, Limits]] = {
    35: Limits(2048, 16, 48 * KIB, 48 * KIB),
    37: Limits(2048, 16, 112 * KIB, 48 * KIB, registers=131072),
    50: Limits(2048, 32, 64 * KIB, 48 * KIB),
    52: Limits(2048, 32, 96 * KIB, 48 * KIB),
    53: Limits(2048, 32, 64 * KIB, 48 * KIB, block_registers=32768),
    60: Limits(2048, 32, 64 * KIB, 48 * KIB),
    61: Limits(2048, 32, 96 * KIB, 48 * KIB),
    62: Limits(2048, 32, 64 * KIB, 48 * KIB, block_registers=32768),
    70: Limits(2048, 32, 96 * KIB, 96 * KIB),
    72: Limits(2048, 32, 96 * KIB, 96 * KIB),
    75: Limits(1024, 16, 64 * KIB, 64 * KIB),
    80: Limits(2048, 32, 164 * KIB, 163 * KIB),
    86: Limits(1536, 16, 100 * KIB, 99 * KIB),
    87: Limits(1536, 16, 164 * KIB, 163 * KIB),
    89: Limits(1536, 24, 100 * KIB, 99 * KIB),
    90: Limits(2048, 32, 228 * KIB, 227 * KIB),
    100: Limits(2048, 32, 228 * KIB, 227 * KIB),
    103: Limits(2048, 32, 228 * KIB, 227 * KIB),
    110: Limits(1536, 24, 228 * KIB, 227 * KIB),
    120: Limits(1536, 24, 100 * KIB, 99 * KIB),
    121: Limits(1536, 24, 100 * KIB, 99 * KIB),
}
EXACT: Final = (90, 100, 103, 110, 120, 121)  # have an sm_90a, whose code runs on that device alone
FAMILY: Final = (100, 103, 110, 120, 121)  # have an sm_100f, whose code runs on the later ones of its family


class Board(NamedTuple):
    """A GPU as it is sold; 0 where no data sheet says."""

    arch: str
    multiprocessors: int
    bandwidth: float  # bytes a second, of its memory
    float32_flops: float  # a second
    float16_flops: float  # a second, of its matrix units with float32 accumulators
    l2: int  # bytes
    memory: int  # bytes


def _board(arch: str, processors: int, gb_s: float, float32: float, float16: float, l2_mib: float, gib: int) -> Board:
    return Board(arch, processors, gb_s * 1e9, float32 * 1e12, float16 * 1e12, int(l2_mib * 1024) * KIB, gib << 30)


BOARDS: Final[dict[str, Board]] = {
    "nvidia/nvidia-v100": _board("sm_70", 80, 900, 15.7, 125, 6, 16),
    "nvidia/nvidia-t4": _board("sm_75", 40, 320, 8.1, 65, 4, 16),
    "nvidia/nvidia-a10": _board("sm_86", 72, 600, 31.2, 125, 6, 24),
    "nvidia/nvidia-a30": _board("sm_80", 56, 933, 10.3, 165, 24, 24),
    "nvidia/nvidia-a40": _board("sm_86", 84, 696, 37.4, 149.7, 6, 48),
    "nvidia/nvidia-a100": _board("sm_80", 108, 1555, 19.5, 312, 40, 40),
    "nvidia/nvidia-l4": _board("sm_89", 58, 300, 30.3, 121, 48, 24),
    "nvidia/nvidia-l40s": _board("sm_89", 142, 864, 91.6, 362, 96, 48),
    "nvidia/nvidia-h100": _board("sm_90a", 132, 3350, 66.9, 989.4, 50, 80),
    "nvidia/nvidia-h200": _board("sm_90a", 132, 4800, 66.9, 989.4, 50, 141),
    "nvidia/nvidia-b200": _board("sm_100a", 148, 8000, 75, 2250, 126, 180),
    "nvidia/geforce-rtx-3090": _board("sm_86", 82, 936, 35.6, 71, 6, 24),
    "nvidia/geforce-rtx-4090": _board("sm_89", 128, 1008, 82.6, 165.2, 72, 24),
    "nvidia/geforce-rtx-5090": _board("sm_120a", 170, 1792, 104.8, 209.5, 96, 32),
}
BOARDS.update({f"nvidia/rtx-{name}": BOARDS[f"nvidia/geforce-rtx-{name}"] for name in ("3090", "4090", "5090")})
