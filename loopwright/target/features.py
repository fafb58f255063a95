"""TargetFeatures: what a target's processor can do, asked by name: `target.features.has_dotprod`.

Scripts ask in the words they know; the answers come from the CPU's description. A name that means nothing for the
target is None, so that `if target.features.has_sve:` works everywhere.
"""

from __future__ import annotations

from typing import Final

from loopwright.target.architectures import architecture_of
from loopwright.target.cpu import CpuDescription

# The word in scripts → LLVM's features, any of which makes it so.
_WORDS: Final = {
    "has_asimd": ("neon",),
    "has_dotprod": ("dotprod",),
    "has_matmul_i8": ("i8mm",),
    "has_fp16_simd": ("fullfp16",),
    "has_dsp": ("dsp",),
    "has_mve": ("mve",),
    "has_sve": ("sve",),
    "has_sme": ("sme",),
    "has_avx2": ("avx2",),
    "has_avx512": ("avx512bw",),
    "has_vnni": ("avx512vnni", "avxvnni"),
    "has_amx": ("amx-int8",),
    "has_rvv": ("v",),
}


class TargetFeatures:
    """The features of one target, as attributes."""

    def __init__(self, cpu: CpuDescription) -> None:
        self._cpu = cpu

    def __getattr__(self, name: str) -> bool | None:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "is_aarch64":
            return architecture_of(self._cpu.triple).name == "aarch64"
        wanted = _WORDS.get(name)
        if wanted is not None:
            return not self._cpu.features.isdisjoint(wanted)
        plain = name.removeprefix("has_").replace("_", "-")
        return True if plain in self._cpu.features else None

    def __contains__(self, feature: str) -> bool:
        return feature in self._cpu.features

    def __dir__(self) -> list[str]:
        return ["is_aarch64", *_WORDS]

    def __repr__(self) -> str:
        return f"TargetFeatures({', '.join(sorted(self._cpu.features))})"
