"""Tags: names of well-known machines that stand for a whole target."""

from __future__ import annotations

from typing import Final

from loopwright.target.gpus import BOARDS


def _nvidia(arch: str, registers: int = 65536, shared: int = 49152, l2: int = 0) -> dict[str, object]:
    board: dict[str, object] = {
        "kind": "cuda",
        "arch": arch,
        "max_shared_memory_per_block": shared,
        "max_threads_per_block": 1024,
        "thread_warp_size": 32,
        "registers_per_block": registers,
    }
    return {**board, "l2_cache_size_bytes": l2} if l2 else board


def _arm(cpu: str, cores: int, *features: str) -> dict[str, object]:
    return {
        "kind": "llvm",
        "mtriple": "aarch64-linux-gnu",
        "mcpu": cpu,
        "mattr": ["+neon", *features],
        "num-cores": cores,
        "keys": ["arm_cpu", "cpu"],
    }


def _aws(cpu: str, cores: int) -> dict[str, object]:
    return {"kind": "llvm", "mcpu": cpu, "num-cores": cores}


# Machines of AWS: physical cores by their size; from 12xlarge on the CPU is the next one.
_C5: Final = {"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8, "9xlarge": 18, "18xlarge": 36}
_C5_LARGE: Final = {"12xlarge": 24, "24xlarge": 48}

# Boards that differ in their compute capability alone, as far as a compiler asks.
_TESLA: Final = {"k80": "sm_37", "m40": "sm_52", "m60": "sm_52", "p4": "sm_61", "p40": "sm_61", "p100": "sm_60"}
_GEFORCE: Final = {
    **dict.fromkeys("gtx-750 gtx-750-ti".split(), "sm_50"),
    **dict.fromkeys("gtx-960 gtx-970 gtx-980 gtx-980-ti".split(), "sm_52"),
    **dict.fromkeys("gtx-1050 gtx-1060 gtx-1070 gtx-1070-ti gtx-1080 gtx-1080-ti".split(), "sm_61"),
    **dict.fromkeys("gtx-1650 gtx-1650-ti gtx-1660-ti rtx-2060 rtx-2070 rtx-2080 rtx-2080-ti".split(), "sm_75"),
    **dict.fromkeys("rtx-3060 rtx-3070 rtx-3080 rtx-3080-ti".split(), "sm_86"),
    **dict.fromkeys("rtx-4060 rtx-4070 rtx-4080".split(), "sm_89"),
}

TAGS: Final[dict[str, dict[str, object]]] = {
    "raspberry-pi/3b-aarch64": _arm("cortex-a53", 4),
    "raspberry-pi/4b-aarch64": _arm("cortex-a72", 4),
    "raspberry-pi/5-aarch64": _arm("cortex-a76", 4),
    "aws/cpu/c6g.large": _arm("neoverse-n1", 2),
    "aws/cpu/c7g.large": _arm("neoverse-v1", 2),
    **{f"aws/cpu/c5.{size}": _aws("skylake-avx512", cores) for size, cores in _C5.items()},
    **{f"aws/cpu/c5.{size}": _aws("cascadelake", cores) for size, cores in _C5_LARGE.items()},
    **{name: _nvidia(board.arch, l2=board.l2) for name, board in BOARDS.items()},
    **{f"nvidia/tesla-{name}": _nvidia(arch) for name, arch in _TESLA.items()},
    **{f"nvidia/geforce-{name}": _nvidia(arch) for name, arch in _GEFORCE.items()},
    "nvidia/jetson-nano": _nvidia("sm_53", registers=32768),
    "nvidia/jetson-tx1": _nvidia("sm_53", registers=32768),
    "nvidia/jetson-tx2": _nvidia("sm_62", registers=32768),
    "nvidia/jetson-agx-xavier": {**_nvidia("sm_72"), "host": _arm("carmel", 8)},
    "nvidia/jetson-agx-orin-32gb": {**_nvidia("sm_87"), "host": _arm("cortex-a78", 8)},
}


def list_tags() -> list[str]:
    """The names of all tags."""
    return sorted(TAGS)
