"""The instruction-feature table: which features a CPU name stands for, and what each feature means for the compiler.

    x86_64, features {avx2, fma, …}   →   256-bit vectors, 16 registers, FMA, float16 conversion

This is the only place that knows architectures by name. Feature names are LLVM's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Units:
    """What the execution units of a CPU can do."""

    float_bits: int = 64  # width of a vector of float32 or float64
    int_bits: int = 64  # of int32 or int64
    narrow_int_bits: int = 64  # of int8 or int16
    registers: int = 16  # vector registers
    has_fma: bool = False
    has_native_f16: bool = False  # adds and multiplies float16 vectors
    has_f16_convert: bool = False  # converts float16 vectors to and from float32
    has_native_bf16: bool = False  # adds and multiplies bfloat16 vectors; dot products alone are not enough
    has_bf16_convert: bool = False
    has_bf16_dot: bool = False
    has_int8_dot: bool = False
    has_matrix_unit: bool = False  # AMX, SME, or 8-bit matrix instructions on vectors
    has_scalable_vectors: bool = False


@dataclass(frozen=True)
class Architecture:
    """One instruction set: its baseline, what features bring, and the CPUs known by name."""

    name: str
    pointer_bits: int
    base: Units
    brings: Mapping[str, Mapping[str, int]]  # feature → fields of Units; later rows win
    baseline: frozenset[str] = frozenset()  # features every CPU has
    implies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cpus: Mapping[str, str] = field(default_factory=dict)  # name → features, space-separated; empty: any name will do
    default_caches: tuple[int, int, int, int] = (32 << 10, 256 << 10, 2 << 20, 64)  # L1d, L2, L3, line

    def closure(self, features: set[str]) -> set[str]:
        """`features` and all that they imply."""
        reached: set[str] = set()
        pending = list(features)
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                pending += self.implies.get(name, ())
        return reached

    def features_of(self, cpu: str) -> set[str]:
        """The features a CPU name stands for; only the baseline for a name not in the table."""
        return self.closure({*self.baseline, *self.cpus.get(cpu, "").split()})

    def apply(self, features: set[str], changes: list[str]) -> set[str]:
        """`features` after `+name` and `-name`, in order; taking one away takes away what needs it."""
        current = set(features)
        for change in changes:
            name = change[1:]
            if change[0] == "+":
                current |= self.closure({name})
            else:
                current = {other for other in current if name not in self.closure({other})}
        return current

    def units(self, features: set[str]) -> Units:
        """What a CPU with `features` can do."""
        fields: dict[str, int] = {}
        for feature, brought in self.brings.items():
            if feature in features:
                fields.update(brought)
        return replace(self.base, **fields)  # type: ignore[arg-type]


_V2 = "sse4.2 popcnt cx16"
_V3 = f"{_V2} avx2 fma f16c bmi bmi2 lzcnt movbe"
_V4 = f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl"
_ICELAKE = f"{_V4} avx512vnni avx512vbmi avx512vbmi2 avx512ifma avx512bitalg avx512vpopcntdq gfni"
_SAPPHIRE = f"{_ICELAKE} avxvnni avx512bf16 avx512fp16 amx-tile amx-int8 amx-bf16"
_ALDERLAKE = f"{_V3} avxvnni gfni"
_SIERRA = f"{_ALDERLAKE} avxvnniint8 avxneconvert avxifma"
_BULLDOZER = f"{_V2} avx xop fma4"

X86_64: Final = Architecture(
    name="x86_64",
    pointer_bits=64,
    base=Units(float_bits=128, int_bits=128, narrow_int_bits=128, registers=16),
    baseline=frozenset({"sse2", "sse", "mmx", "cmov", "cx8", "fxsr", "64bit"}),
    brings={
        "avx": {"float_bits": 256},
        "f16c": {"has_f16_convert": True},
        "fma": {"has_fma": True},
        "fma4": {"has_fma": True},
        "avx2": {"int_bits": 256, "narrow_int_bits": 256},
        "avxvnni": {"has_int8_dot": True},
        "avxneconvert": {"has_bf16_convert": True},
        "avx512f": {"float_bits": 512, "int_bits": 512, "registers": 32},
        "avx512bw": {"narrow_int_bits": 512},
        "avx512vnni": {"has_int8_dot": True},
        "avx512bf16": {"has_bf16_convert": True, "has_bf16_dot": True},
        "avx512fp16": {"has_native_f16": True},
        "avx10.2": {"has_native_bf16": True},
        "amx-tile": {"has_matrix_unit": True},
    },
    implies={
        "sse2": ("sse",),
        "sse3": ("sse2",),
        "ssse3": ("sse3",),
        "sse4.1": ("ssse3",),
        "sse4.2": ("sse4.1",),
        "avx": ("sse4.2",),
        "f16c": ("avx",),
        "fma": ("avx",),
        "fma4": ("avx",),
        "xop": ("fma4",),
        "avx2": ("avx",),
        "avxvnni": ("avx2",),
        "avxvnniint8": ("avx2",),
        "avxifma": ("avx2",),
        "avxneconvert": ("avx2",),
        "avx512f": ("avx2", "f16c", "fma"),
        "avx512bw": ("avx512f",),
        "avx512cd": ("avx512f",),
        "avx512dq": ("avx512f",),
        "avx512vl": ("avx512f",),
        "avx512vnni": ("avx512f",),
        "avx512ifma": ("avx512f",),
        "avx512vbmi": ("avx512bw",),
        "avx512vbmi2": ("avx512bw",),
        "avx512bitalg": ("avx512bw",),
        "avx512vpopcntdq": ("avx512f",),
        "avx512bf16": ("avx512bw",),
        "avx512fp16": ("avx512bw", "avx512dq", "avx512vl"),
        "avx10.1": ("avx512vnni", "avx512bf16", "avx512fp16"),
        "avx10.2": ("avx10.1",),
        "amx-int8": ("amx-tile",),
        "amx-bf16": ("amx-tile",),
        "amx-fp16": ("amx-tile",),
        "amx-complex": ("amx-tile",),
    },
    cpus={
        **dict.fromkeys(("x86-64", "generic", "k8", "opteron", "athlon64", "nocona"), ""),
        **dict.fromkeys(("core2",), "ssse3 cx16"),
        **dict.fromkeys(("penryn",), "sse4.1 cx16"),
        **dict.fromkeys(("x86-64-v2", "nehalem", "corei7", "westmere", "silvermont", "goldmont", "goldmont-plus"), _V2),
        **dict.fromkeys(("tremont",), f"{_V2} gfni"),
        **dict.fromkeys(("sandybridge", "corei7-avx", "btver2"), f"{_V2} avx"),
        **dict.fromkeys(("ivybridge", "core-avx-i"), f"{_V2} avx f16c"),
        "bdver1": _BULLDOZER,
        **dict.fromkeys(("bdver2", "bdver3"), f"{_BULLDOZER} fma f16c bmi"),
        "bdver4": f"{_BULLDOZER} fma f16c bmi bmi2 avx2",
        **dict.fromkeys(("x86-64-v3", "haswell", "core-avx2", "broadwell", "skylake"), _V3),
        **dict.fromkeys(("znver1", "znver2", "znver3"), _V3),
        **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "gracemont"), _ALDERLAKE),
        **dict.fromkeys(
            ("sierraforest", "grandridge", "arrowlake", "arrowlake-s", "lunarlake", "clearwaterforest"), _SIERRA
        ),
        **dict.fromkeys(("pantherlake", "wildcatlake"), _SIERRA),
        "knl": f"{_V3} avx512f avx512cd",
        **dict.fromkeys(("x86-64-v4", "skylake-avx512", "skx"), _V4),
        "cascadelake": f"{_V4} avx512vnni",
        "cooperlake": f"{_V4} avx512vnni avx512bf16",
        "cannonlake": f"{_V4} avx512vbmi avx512ifma",
        **dict.fromkeys(("icelake-client", "icelake-server", "tigerlake", "rocketlake"), _ICELAKE),
        "znver4": f"{_ICELAKE} avx512bf16",
        "znver5": f"{_ICELAKE} avx512bf16 avxvnni",
        **dict.fromkeys(("sapphirerapids", "emeraldrapids"), _SAPPHIRE),
        **dict.fromkeys(("graniterapids", "graniterapids-d"), f"{_SAPPHIRE} amx-fp16"),
        "diamondrapids": f"{_SAPPHIRE} amx-fp16 avx10.2 avxneconvert avxvnniint8",
    },
    default_caches=(32 << 10, 512 << 10, 8 << 20, 64),
)

_V82 = "fullfp16 dotprod lse rdm"
_V86 = f"{_V82} bf16 i8mm"

AARCH64: Final = Architecture(
    name="aarch64",
    pointer_bits=64,
    base=Units(float_bits=128, int_bits=128, narrow_int_bits=128, registers=32, has_fma=True, has_f16_convert=True),
    baseline=frozenset({"neon", "fp-armv8"}),
    brings={
        "fullfp16": {"has_native_f16": True},
        "dotprod": {"has_int8_dot": True},
        "bf16": {"has_bf16_convert": True, "has_bf16_dot": True},
        "i8mm": {"has_matrix_unit": True},
        "sme": {"has_matrix_unit": True},
        "sve": {"has_scalable_vectors": True},
        "sve-b16b16": {"has_native_bf16": True},
    },
    implies={
        "neon": ("fp-armv8",),
        "fullfp16": ("neon",),
        "fp16fml": ("fullfp16",),
        "dotprod": ("neon",),
        "bf16": ("neon",),
        "i8mm": ("neon",),
        "sve": ("fullfp16",),
        "sve2": ("sve",),
        "sme": ("bf16", "fullfp16"),
        "sme2": ("sme",),
    },
    cpus={
        **dict.fromkeys(
            ("generic", "cortex-a34", "cortex-a35", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a73"), ""
        ),
        **dict.fromkeys(
            ("apple-a7", "apple-a8", "apple-a9", "apple-a10", "kryo", "thunderx", "thunderx2t99", "falkor"), ""
        ),
        **dict.fromkeys(("exynos-m3",), ""),
        **dict.fromkeys(("saphira",), "lse rdm"),
        **dict.fromkeys(("apple-a11", "carmel"), "fullfp16 lse rdm"),
        **dict.fromkeys(
            ("cortex-a55", "cortex-a65", "cortex-a75", "cortex-a76", "cortex-a77", "cortex-a78", "cortex-a78c"), _V82
        ),
        **dict.fromkeys(
            ("cortex-x1", "cortex-x1c", "neoverse-e1", "neoverse-n1", "ampere1", "exynos-m4", "exynos-m5"), _V82
        ),
        **dict.fromkeys(("tsv110", "apple-a12", "apple-a13"), f"{_V82} fp16fml"),
        **dict.fromkeys(("apple-a14", "apple-m1"), f"{_V82} fp16fml"),
        **dict.fromkeys(
            ("apple-a15", "apple-a16", "apple-a17", "apple-m2", "apple-m3", "ampere1a", "ampere1b"), f"{_V86} fp16fml"
        ),
        **dict.fromkeys(("oryon-1",), f"{_V86} fp16fml"),
        **dict.fromkeys(("apple-m4", "apple-a18"), f"{_V86} fp16fml sme2"),
        "a64fx": "fullfp16 sve lse rdm",
        **dict.fromkeys(("neoverse-v1", "neoverse-512tvb"), f"{_V86} fp16fml sve"),
        **dict.fromkeys(
            ("neoverse-n2", "neoverse-n3", "neoverse-v2", "neoverse-v3", "grace", "cobalt-100"), f"{_V86} fp16fml sve2"
        ),
        **dict.fromkeys(
            ("cortex-a510", "cortex-a520", "cortex-a710", "cortex-a715", "cortex-a720", "cortex-a725"),
            f"{_V86} fp16fml sve2",
        ),
        **dict.fromkeys(("cortex-x2", "cortex-x3", "cortex-x4", "cortex-x925"), f"{_V86} fp16fml sve2"),
    },
    default_caches=(64 << 10, 1 << 20, 4 << 20, 64),
)

ARM: Final = Architecture(
    name="arm",
    pointer_bits=32,
    base=Units(registers=16),
    brings={
        # 32-bit NEON flushes denormal floats to zero, so float vectors are not used; integer ones are.
        "neon": {"int_bits": 128, "narrow_int_bits": 128},
        "vfp4": {"has_fma": True},
        "fp16": {"has_f16_convert": True},
        "fullfp16": {"has_native_f16": True},
        "dotprod": {"has_int8_dot": True},
    },
    implies={"fullfp16": ("fp16",), "dotprod": ("neon",)},
)

RISCV64: Final = Architecture(
    name="riscv64",
    pointer_bits=64,
    base=Units(registers=32),
    brings={
        "d": {"has_fma": True},
        "f": {"has_fma": True},
        # The application profile guarantees 128-bit registers; longer ones are used through scalable vectors.
        "v": {"float_bits": 128, "int_bits": 128, "narrow_int_bits": 128, "has_scalable_vectors": True},
        "zvfhmin": {"has_f16_convert": True},
        "zvfh": {"has_native_f16": True, "has_f16_convert": True},
    },
    implies={"d": ("f",), "v": ("d",), "zvfh": ("zvfhmin",)},
)

WASM32: Final = Architecture(
    name="wasm32",
    pointer_bits=32,
    base=Units(),
    brings={"simd128": {"float_bits": 128, "int_bits": 128, "narrow_int_bits": 128}},
)

GENERIC: Final = Architecture(name="generic", pointer_bits=64, base=Units(), brings={})


def architecture_of(triple: str) -> Architecture:
    """The architecture a triple such as `aarch64-linux-gnu` starts with; `GENERIC` for one not in the table."""
    name = triple.partition("-")[0].lower()
    if name in ("x86_64", "amd64", "x86_64h"):
        return X86_64
    if name.startswith(("aarch64", "arm64")):
        return AARCH64
    if name.startswith(("arm", "thumb")):
        return ARM
    if name.startswith("riscv64"):
        return RISCV64
    if name == "wasm32":
        return WASM32
    return GENERIC
