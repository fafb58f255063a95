"""CpuDescription: everything the compiler asks about a CPU, derived from triple, CPU name and features.

    describe(Target("llvm")).vector_bits                          this machine's
    describe(Target("llvm -mcpu=core-avx2")).native_vector_lanes("float32") == 8

Everyone asks the description; nobody asks for the architecture's name.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.target.architectures import Architecture, Units, architecture_of, architecture_with_cpu, normalized
from loopwright.target.errors import BadTargetAttribute, nearest
from loopwright.target.host import Host, detect_host
from loopwright.target.kinds import TargetKind
from loopwright.target.microarchitecture import Caches, Microarchitecture, stored
from loopwright.target.microarchitectures import MICROARCHITECTURES, UNKNOWN

_OPT_LEVEL: Final = "LOOPWRIGHT_OPT_LEVEL"  # how hard LLVM optimizes where a target does not say


class UnknownCpu(LoopwrightError, ValueError):
    """`-mcpu` names a CPU that Loopwright has no entry for, or one of another architecture than the target's.

    LLVM would only warn, and generate code for the oldest CPU of the family. Leave `-mcpu` out to compile for this
    machine; or name a near relative and add features with `-mattr=+name`.

    For example:

        from loopwright.target import describe

        describe("llvm -mtriple=x86_64-linux-gnu -mcpu=haswel")
    """

    code = "LW0606"

    def __init__(self, cpu: str, architecture: Architecture, triple: str = "") -> None:
        """`triple` is what the target says; without one it means this machine."""
        near = nearest(cpu, architecture.cpus)
        hint = f"use one of {', '.join(near[:8])}{', …' * (len(near) > 8)}"
        home = architecture_with_cpu(cpu)
        if home is not None:
            change = f"replace -mtriple={triple} by" if triple else "add"
            hint = f"{change} -mtriple={home[1]}"
        elif not triple:
            hint += "; or leave -mcpu out for this machine"
        super().__init__(
            f"unknown CPU {cpu!r} for {architecture.name}",
            why=None if home is None else f"{cpu} is a CPU of the architecture {home[0].name}",
            hint=hint,
            fields={"cpu": cpu, "architecture": architecture.name, "candidates": near},
        )


@dataclass(frozen=True)
class CpuDescription:
    """A CPU as the compiler sees it."""

    triple: str
    name: str  # LLVM's CPU name; empty for the plain baseline
    features: frozenset[str]
    llvm_features: str  # `+a,-b`: what LLVM is told beside the name
    abi: str
    is_host: bool  # compiled for this very machine: name and features were detected here
    vector_bits: int  # the widest vector of float32 lanes worth using
    units: Units
    microarchitecture: Microarchitecture
    cache_sizes: Caches
    num_cores: int
    pointer_bits: int
    opt_level: int = 3  # how hard LLVM optimizes, 0 to 3

    @property
    def uses_gather(self) -> bool:
        """Whether lanes from anywhere are loaded by the instruction for it, wherever their indices come from."""
        return self.units.has_gather and not self.microarchitecture.has_slow_gather

    @property
    def registers(self) -> int:
        """Vector registers an inner loop can hold."""
        return self.units.registers

    @property
    def has_fma(self) -> bool:
        """Multiply-add with one rounding is one instruction."""
        return self.units.has_fma

    @property
    def has_native_f16(self) -> bool:
        """float16 is added and multiplied directly."""
        return self.units.has_native_f16

    @property
    def has_f16_convert(self) -> bool:
        """float16 converts to and from float32 in one instruction."""
        return self.units.has_f16_convert

    @property
    def has_native_bf16(self) -> bool:
        """bfloat16 is added and multiplied directly; `units.has_bf16_dot` is about dot products alone."""
        return self.units.has_native_bf16

    def bits_for(self, dtype: str) -> int:
        """The width of the vectors that arithmetic on `dtype` runs in."""
        kind = DataType(dtype).element
        if kind.is_float:
            native = self.units.float_bits
        else:
            native = self.units.int_bits if kind.bits >= 32 else self.units.narrow_int_bits
        return min(native, self.vector_bits) if self.units.float_bits > self.vector_bits else native

    def native_vector_lanes(self, dtype: str) -> int:
        """How many lanes of `dtype` one vector instruction computes; types the units lack are computed as float32."""
        kind = DataType(dtype).element
        bits = max(8, kind.bits)
        if kind.is_float and bits < 32:
            is_native = self.has_native_f16 if kind == "float16" else kind.kind == "bfloat" and self.has_native_bf16
            bits = bits if is_native else 32
        return max(1, self.bits_for(kind) // bits)

    def __str__(self) -> str:
        return f"{self.name or 'generic'} ({self.triple}, {self.vector_bits}-bit vectors)"


class CpuTarget(Protocol):
    """A target of a CPU, as far as it says which; `target.py` has the class."""

    kind: TargetKind
    attrs: Mapping[str, object]

    @property
    def mcpu(self) -> str: ...

    @property
    def mattr(self) -> list[str]: ...

    def __hash__(self) -> int: ...


def describe_cpu(target: CpuTarget) -> CpuDescription:
    """The CPU that a CPU target means; `describe` of `target.py` takes targets of devices and texts, too."""
    return _describe(target, os.environ.get(_OPT_LEVEL, "").strip())


@functools.lru_cache(maxsize=256)
def _describe(target: CpuTarget, usual_opt_level: str) -> CpuDescription:
    host = detect_host()
    triple = normalized(str(target.attrs.get("mtriple", "")) or host.triple)
    architecture = architecture_of(triple)
    triple, float_features = _float_abi(target, triple, architecture)
    is_same_machine = architecture is architecture_of(host.triple) and _system(triple) == _system(host.triple)
    is_host = is_same_machine and not target.mcpu
    if is_host:
        name, features = host.cpu, {feature for feature, has in host.features.items() if has}
        message = [("+" if has else "-") + feature for feature, has in sorted(host.features.items())]
    else:
        name = target.mcpu
        is_listed = not name or name in architecture.cpus or name == host.cpu
        if architecture.cpus and architecture.lists_every_cpu and not is_listed:
            raise UnknownCpu(name, architecture, str(target.attrs.get("mtriple", "")))
        usual = () if name else architecture.system_features.get(_system(triple), ())
        message = [f"+{feature}" for feature in usual]
        features = architecture.features_of(name) | architecture.closure(set(usual))
    message += float_features
    features = architecture.apply(features | architecture.baseline, [*float_features, *target.mattr])
    units = architecture.units(features)
    if target.kind == "c":  # C99 has no type for 16-bit floats, whatever the machine can do
        units = replace(units, has_native_f16=False, has_f16_convert=False, has_native_bf16=False)
    asked_bits = target.attrs.get("vector-width")
    vector_bits = min(units.float_bits, asked_bits) if isinstance(asked_bits, int) else units.float_bits
    asked_cores = target.attrs.get("num-cores")
    microarchitecture = MICROARCHITECTURES.get(name) or (stored(name) if is_host else None) or UNKNOWN
    is_this_chip = is_same_machine and name == host.cpu
    return CpuDescription(
        triple=triple,
        name=name,
        features=frozenset(features),
        llvm_features=",".join([*message, *target.mattr, *_preferred_width(architecture, vector_bits)]),
        abi=str(target.attrs.get("mabi", "")),
        is_host=is_host,
        vector_bits=vector_bits,
        units=units,
        microarchitecture=microarchitecture,
        cache_sizes=host.caches if is_this_chip else _caches(microarchitecture, host, architecture, is_same_machine),
        num_cores=asked_cores if isinstance(asked_cores, int) else (host.num_cores if is_same_machine else 1),
        pointer_bits=architecture.pointer_bits,
        opt_level=_opt_level(target, usual_opt_level),
    )


def _opt_level(target: CpuTarget, usual: str) -> int:
    level = target.attrs.get("opt-level")
    if level is None:
        if usual not in ("", "0", "1", "2", "3"):
            raise LoopwrightError(
                f"the environment variable {_OPT_LEVEL} is {usual!r}", hint="set it to 0, 1, 2 or 3, or unset it"
            )
        return int(usual or 3)
    assert isinstance(level, int)
    if not 0 <= level <= 3:
        raise BadTargetAttribute(str(target.kind), "opt-level", level, "0, 1, 2 or 3")
    return level


def _float_abi(target: CpuTarget, triple: str, architecture: Architecture) -> tuple[str, list[str]]:
    """The triple and the features that `-mfloat-abi` asks for: who passes floats how, and who computes them."""
    asked = target.attrs.get("mfloat-abi")
    if asked is None:
        return triple, []
    if asked not in ("soft", "softfp", "hard"):
        raise BadTargetAttribute(str(target.kind), "mfloat-abi", asked, "soft, softfp or hard")
    if architecture.name != "arm":
        raise BadTargetAttribute(str(target.kind), "mfloat-abi", asked, f"for 32-bit Arm, not for {architecture.name}")
    plain = triple.removesuffix("hf")
    # softfp: hardware computes, but the calling convention is that of machines without it.
    return (f"{plain}hf" if asked == "hard" else plain), (["+soft-float"] if asked == "soft" else [])


def _preferred_width(architecture: Architecture, vector_bits: int) -> list[str]:
    """Have LLVM's own vectorizer use the width we use: for most AVX-512 machines it would stay at 256 bits."""
    if architecture.name != "x86_64" or vector_bits not in (128, 256, 512):
        return []
    return {128: ["+prefer-128-bit"], 256: ["-prefer-128-bit", "+prefer-256-bit"], 512: ["-prefer-256-bit"]}[
        vector_bits
    ]


def _caches(known: Microarchitecture, host: Host, architecture: Architecture, is_same_machine: bool) -> Caches:
    """Those of the CPU that was named; of one that nobody has described, those of this machine if it is of its kind."""
    if known.caches is not None:
        return known.caches
    return host.caches if is_same_machine else Caches(*architecture.default_caches)


def _system(triple: str) -> str:
    return next((name for name in ("linux", "darwin", "macos", "windows", "wasi", "none") if name in triple), "")
