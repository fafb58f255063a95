"""The tables of the machines below servers: Arm with 32 bits (Cortex-A, -R and -M), RISC-V, WebAssembly, and the rest.

Feature names are LLVM's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from loopwright.target.architecture import Architecture, Units

_FPU_SINGLE = "vfp4d16sp"  # Cortex-M4F: float32 only
_V8_SINGLE = "fp-armv8d16sp dsp"
_V7A = "neon vfp4 dsp"
_V8A = "neon fp-armv8 dsp"
_V82A = f"{_V8A} fullfp16 dotprod"

ARM: Final = Architecture(
    name="arm",
    pointer_bits=32,
    base=Units(registers=16),
    brings={
        # 32-bit NEON flushes denormal floats to zero, so float vectors are not used; integer ones are.
        "neon": {"int_bits": 128, "narrow_int_bits": 128},
        "mve": {"int_bits": 128, "narrow_int_bits": 128, "registers": 8},
        # Of both float types: with float32 alone (vfp4d16sp), a multiply-add of float64 would be a library call.
        "vfp4d16": {"has_fma": True},
        "fp16": {"has_f16_convert": True},
        "fullfp16": {"has_native_f16": True},
        "dotprod": {"has_int8_dot": True},
        # Last: whatever the machine has, floats are computed by calls.
        "soft-float": {"has_fma": False, "has_f16_convert": False, "has_native_f16": False},
    },
    implies={
        "vfp3d16sp": ("vfp2sp",),
        "vfp3d16": ("vfp3d16sp",),
        "vfp3": ("vfp3d16",),
        "vfp4d16sp": ("vfp3d16sp", "fp16"),
        "vfp4d16": ("vfp4d16sp", "vfp3d16"),
        "vfp4": ("vfp4d16", "vfp3"),
        "fp-armv8d16sp": ("vfp4d16sp",),
        "fp-armv8d16": ("fp-armv8d16sp", "vfp4d16"),
        "fp-armv8": ("fp-armv8d16", "vfp4"),
        "neon": ("vfp3",),
        "fullfp16": ("fp-armv8d16sp",),
        "dotprod": ("neon",),
        "mve": ("dsp",),
        "mve.fp": ("mve", "fullfp16"),
    },
    cpus={
        **dict.fromkeys(("generic", "cortex-m0", "cortex-m0plus", "cortex-m1", "cortex-m23", "cortex-m3"), ""),
        **dict.fromkeys(("sc000", "sc300", "arm7tdmi", "arm926ej-s", "arm1136j-s", "arm1176jz-s"), ""),
        **dict.fromkeys(("arm1136jf-s", "arm1176jzf-s", "mpcore"), "vfp2sp"),
        "cortex-m4": f"{_FPU_SINGLE} dsp",
        "cortex-m7": "fp-armv8d16 dsp",
        **dict.fromkeys(("cortex-m33", "cortex-m35p", "star-mc1"), _V8_SINGLE),
        **dict.fromkeys(("cortex-m52", "cortex-m55", "cortex-m85"), "mve.fp fp-armv8d16 dsp"),
        "cortex-r4": "dsp",
        "cortex-r5": "vfp3d16 dsp",
        **dict.fromkeys(("cortex-r7", "cortex-r8"), "vfp3d16 fp16 dsp"),
        **dict.fromkeys(("cortex-r52", "cortex-r52plus"), _V8A),
        "cortex-a8": "neon dsp",
        "cortex-a9": "neon fp16 dsp",
        **dict.fromkeys(("cortex-a5", "cortex-a7", "cortex-a12", "cortex-a15", "cortex-a17", "krait", "swift"), _V7A),
        **dict.fromkeys(
            ("cortex-a32", "cortex-a35", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a73", "cyclone"), _V8A
        ),
        **dict.fromkeys(("cortex-a55", "cortex-a75", "cortex-a76", "cortex-a77", "cortex-a78", "neoverse-n1"), _V82A),
    },
    lists_every_cpu=False,
    default_caches=(16 << 10, 0, 0, 32),
)

_GC = "m a f d c"
_RVA22 = f"{_GC} zfhmin"
_RVA22_V = f"{_RVA22} v zvfh"

RISCV64: Final = Architecture(
    name="riscv64",
    pointer_bits=64,
    base=Units(registers=32),
    brings={
        "d": {"has_fma": True},
        "zfhmin": {"has_f16_convert": True},
        "zfh": {"has_native_f16": True},
        # The application profile guarantees 128-bit registers; longer ones are used through scalable vectors.
        "v": {"float_bits": 128, "int_bits": 128, "narrow_int_bits": 128, "has_scalable_vectors": True},
        "zvfh": {"has_native_f16": True},
    },
    implies={
        "a": (),
        "c": (),
        "m": (),
        "d": ("f",),
        "zfhmin": ("f",),
        "zfh": ("zfhmin",),
        "v": ("d",),
        "zvfhmin": ("f",),
        "zvfh": ("zvfhmin", "zfhmin"),
        "64bit": (),
    },
    cpus={
        **dict.fromkeys(("generic", "generic-rv64", "rocket-rv64"), ""),
        **dict.fromkeys(("sifive-s21", "sifive-s51"), "m a c"),
        **dict.fromkeys(("sifive-s54", "sifive-s76", "sifive-u54", "sifive-u74", "xiangshan-nanhu", "veyron-v1"), _GC),
        **dict.fromkeys(("sifive-p450", "sifive-p470"), _RVA22),
        **dict.fromkeys(("sifive-x280", "sifive-p670", "spacemit-x60"), _RVA22_V),
    },
    lists_every_cpu=False,
    # What every Linux distribution for RISC-V is built for.
    system_features={"linux": tuple(_GC.split())},
)

RISCV32: Final = replace(
    RISCV64,
    name="riscv32",
    pointer_bits=32,
    implies={name: implied for name, implied in RISCV64.implies.items() if name != "64bit"},
    cpus={
        **dict.fromkeys(("generic", "generic-rv32", "rocket-rv32"), ""),
        **dict.fromkeys(("sifive-e20", "sifive-e21", "sifive-e24", "sifive-e31", "sifive-e34"), "m c"),
        "sifive-e76": "m a f c",
    },
    default_caches=(16 << 10, 0, 0, 32),
)

WASM32: Final = Architecture(
    name="wasm32",
    pointer_bits=32,
    base=Units(),
    brings={"simd128": {"float_bits": 128, "int_bits": 128, "narrow_int_bits": 128}},
)

GENERIC: Final = Architecture(name="generic", pointer_bits=64, base=Units(), brings={})
GENERIC_32: Final = Architecture(name="generic with 32 bits", pointer_bits=32, base=Units(), brings={})
