"""The instruction-feature table: which features a CPU name stands for, and what each feature means for the compiler.

    x86_64, features {avx2, fma, …}   →   256-bit vectors, 16 registers, FMA, float16 conversion

This file and `small_architectures.py` are the only places that know architectures by name. Feature names are LLVM's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from loopwright.target.architecture import Architecture, Units
from loopwright.target.small_architectures import ARM, GENERIC, GENERIC_32, RISCV32, RISCV64, WASM32

__all__ = [
    "AARCH64",
    "ARM",
    "CORTEX_M_TRIPLES",
    "GENERIC",
    "GENERIC_32",
    "I386",
    "RISCV32",
    "RISCV64",
    "WASM32",
    "X86_64",
    "Architecture",
    "Units",
    "architecture_of",
    "architecture_with_cpu",
    "normalized",
    "usual_triple",
]


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
    base=Units(
        float_bits=128,
        int_bits=128,
        narrow_int_bits=128,
        registers=16,
        has_plain_max=True,
        has_memory_operands=True,
    ),
    baseline=frozenset({"sse2", "sse", "mmx", "cmov", "cx8", "fxsr", "64bit"}),
    brings={
        "avx": {"float_bits": 256},
        "f16c": {"has_f16_convert": True},
        "fma": {"has_fma": True},
        "fma4": {"has_fma": True},
        "avx2": {"int_bits": 256, "narrow_int_bits": 256, "has_gather": True},
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
        **dict.fromkeys(("sandybridge", "corei7-avx"), f"{_V2} avx"),
        **dict.fromkeys(("ivybridge", "core-avx-i", "btver2"), f"{_V2} avx f16c"),
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
    base=Units(
        float_bits=128,
        int_bits=128,
        narrow_int_bits=128,
        registers=32,
        has_fma=True,
        has_saturating_convert=True,
        has_whole_max=True,
        has_f16_convert=True,
    ),
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

I386: Final = replace(X86_64, name="i386", pointer_bits=32, baseline=frozenset({"x87"}), base=Units(), cpus={})

_SYSTEMS: Final = (
    *("linux", "none", "darwin", "macos", "ios", "windows", "win32", "freebsd", "netbsd", "openbsd", "wasi", "fuchsia"),
    *("solaris", "cuda", "amdhsa", "emscripten", "uefi", "rtems", "hermit", "elf", "eabi", "eabihf", "gnu"),
)


def normalized(triple: str) -> str:
    """The triple with all its parts in place: `aarch64-linux-gnu` becomes `aarch64-unknown-linux-gnu`.

    LLVM goes by position. With the vendor left out, as people write triples, it takes the system for a vendor, and
    then `gnueabihf` no longer says that floats are passed in float registers.
    """
    parts = triple.split("-")
    if len(parts) > 1 and parts[1].rstrip("0123456789.") in _SYSTEMS:
        parts.insert(1, "unknown")
    if len(parts) == 3 and parts[2].startswith("eabi"):  # thumbv7em-unknown-eabi: no system, only its conventions
        parts.insert(2, "none")
    return "-".join(parts)


CORTEX_M_TRIPLES: Final = {
    "cortex-m7": "thumbv7em-none-eabi",
    "cortex-m4": "thumbv7em-none-eabi",
    "cortex-m33": "thumbv8m.main-none-eabi",
    **dict.fromkeys(("cortex-m52", "cortex-m55", "cortex-m85"), "thumbv8.1m.main-none-eabi"),
    "cortex-m3": "thumbv7m-none-eabi",
    "cortex-m0": "thumbv6m-none-eabi",
    "cortex-m0plus": "thumbv6m-none-eabi",
}

# The triple that somebody means who names an architecture alone; each architecture's own name is among them.
_USUAL_TRIPLES: Final = {
    ("x86_64", "amd64", "x86-64", "x64", "x86"): "x86_64-linux-gnu",
    ("i386", "i486", "i586", "i686"): "i686-linux-gnu",
    ("aarch64", "arm64", "armv8", "armv8-a"): "aarch64-linux-gnu",
    ("arm", "armv7", "armv7a", "armv7-a", "armv7l", "armhf"): "armv7l-linux-gnueabihf",
    ("riscv64", "riscv", "rv64", "rv64gc"): "riscv64-linux-gnu",
    ("riscv32", "rv32"): "riscv32-unknown-elf",
    ("wasm32", "wasm"): "wasm32-unknown-unknown",
}


def usual_triple(name: str) -> str | None:
    """The triple that a word means which names an architecture (`arm64`), or is a triple itself; None for others."""
    word = name.lower()
    result = next((triple for names, triple in _USUAL_TRIPLES.items() if word in names), None)
    if result is None and "-" in word and architecture_of(word) not in (GENERIC, GENERIC_32):
        return name if any([part.rstrip("0123456789.") in _SYSTEMS for part in word.split("-")[1:]]) else None
    return result


def architecture_with_cpu(cpu: str) -> tuple[Architecture, str] | None:
    """The architecture that a CPU's name belongs to, and its usual triple; None where one is not known."""
    if cpu in CORTEX_M_TRIPLES:
        return ARM, CORTEX_M_TRIPLES[cpu]
    for architecture in (X86_64, AARCH64, ARM, RISCV64, RISCV32):
        if cpu in architecture.cpus and cpu != "generic" and (architecture is not ARM or cpu.startswith("cortex-a")):
            triple = usual_triple(architecture.name)
            return (architecture, triple) if triple is not None else None
    return None


# Architectures without a table of their own, known to have 32-bit pointers.
_OTHERS_OF_32_BITS: Final = ("mips", "mipsel", "powerpc", "ppc", "ppcle", "sparc", "hexagon", "xtensa", "csky", "arc")


def architecture_of(triple: str) -> Architecture:
    """The architecture a triple such as `aarch64-linux-gnu` starts with; a generic one for one without a table."""
    name = triple.partition("-")[0].lower()
    if name in ("x86_64", "amd64", "x86_64h"):
        return X86_64
    if len(name) == 4 and name[0] == "i" and name.endswith("86"):
        return I386
    if name.startswith(("aarch64_32", "arm64_32")):
        return GENERIC_32
    if name.startswith(("aarch64", "arm64")):
        return AARCH64
    if name.startswith(("arm", "thumb")):
        return ARM
    if name.startswith("riscv64"):
        return RISCV64
    if name.startswith("riscv32"):
        return RISCV32
    if name == "wasm32":
        return WASM32
    return GENERIC_32 if name in _OTHERS_OF_32_BITS else GENERIC
