"""What this processor has, by the kernel's word: asked before code from a file is run, which would else die of SIGILL.

A description names features as LLVM does; the kernel lists what the processor has under names of its own. Only the
features in the table are checked: those a compiler chooses by itself, and that older machines of the family lack.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Final

# LLVM's name → the kernel's, where they differ.
_X86: Final = {
    "sse3": "pni", "ssse3": "ssse3", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "popcnt": "popcnt", "cx16": "cx16",
    "avx": "avx", "avx2": "avx2", "fma": "fma", "f16c": "f16c", "bmi": "bmi1", "bmi2": "bmi2", "lzcnt": "abm",
    "movbe": "movbe", "avx512f": "avx512f", "avx512bw": "avx512bw", "avx512cd": "avx512cd", "avx512dq": "avx512dq",
    "avx512vl": "avx512vl", "avx512vnni": "avx512_vnni", "avx512bf16": "avx512_bf16", "avx512fp16": "avx512_fp16",
    "avx512vbmi": "avx512vbmi", "avx512vbmi2": "avx512_vbmi2", "avx512ifma": "avx512ifma",
    "avx512bitalg": "avx512_bitalg", "avx512vpopcntdq": "avx512_vpopcntdq", "avxvnni": "avx_vnni", "gfni": "gfni",
    "vaes": "vaes", "vpclmulqdq": "vpclmulqdq", "amx-tile": "amx_tile", "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16",
}  # fmt: skip
_ARM: Final = {
    "neon": "asimd", "fullfp16": "asimdhp", "dotprod": "asimddp", "i8mm": "i8mm", "bf16": "bf16", "sve": "sve",
    "sve2": "sve2", "lse": "atomics", "rdm": "asimdrdm", "fp16fml": "asimdfhm", "crc": "crc32", "aes": "aes",
    "sha2": "sha2", "complxnum": "fcma", "jsconv": "jscvt", "rcpc": "lrcpc",
}  # fmt: skip


def missing_features(features: Iterable[str], cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Those of LLVM's `features` that this processor surely lacks; none where the system does not tell."""
    here, table = _kernel_features(cpuinfo)
    return sorted(name for name in features if name in table and table[name] not in here) if here else []


def kernel_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """What the kernel says that this processor has, in LLVM's spelling where the table knows it."""
    here, table = _kernel_features(cpuinfo)
    spelling = {theirs: ours for ours, theirs in table.items()}
    return sorted(spelling.get(flag, flag.replace("avx512_", "avx512")) for flag in here)


def known_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, bool]:
    """What the kernel says that this processor has or lacks of the features in the table, by LLVM's names."""
    here, table = _kernel_features(cpuinfo)
    return {name: flag in here for name, flag in table.items()}


@functools.cache
def _kernel_features(cpuinfo: Path) -> tuple[frozenset[str], dict[str, str]]:
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset(), {}
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "flags":
            return frozenset(value.split()), _X86
        if key.strip() == "Features":
            return frozenset(value.split()), _ARM
    return frozenset(), {}
