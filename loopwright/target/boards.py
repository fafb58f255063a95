"""Targets by the names of boards and processors: `arm_cpu("rasp4b")`, `riscv_cpu("sifive-u74")`, `stm32("stm32F7xx")`.

Each gives an ordinary `Target`; `options` are further options in text form, as in `arm_cpu("rasp4b", "-num-cores=2")`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.target.architectures import CORTEX_M_TRIPLES
from loopwright.target.errors import nearest
from loopwright.target.target import Target, TargetLike, as_target

_LINUX32: Final = "-mtriple=armv7l-linux-gnueabihf -mattr=+neon"
_LINUX64: Final = "-mtriple=aarch64-linux-gnu -mattr=+neon"
_ANDROID64: Final = "-mtriple=arm64-linux-android -mattr=+neon"
_ARM: Final = {
    "pixel2": f"-model=snapdragon835 {_ANDROID64}",
    "mate10": f"-model=kirin970 {_ANDROID64}",
    "mate10pro": f"-model=kirin970 {_ANDROID64}",
    "p20": f"-model=kirin970 {_ANDROID64}",
    "p20pro": f"-model=kirin970 {_ANDROID64}",
    "rasp3b": f"-model=bcm2837 {_LINUX32}",
    "rasp4b": f"-model=bcm2711 {_LINUX32} -mcpu=cortex-a72",
    "rasp3b64": f"-model=bcm2837 {_LINUX64} -mcpu=cortex-a53",
    "rasp4b64": f"-model=bcm2711 {_LINUX64} -mcpu=cortex-a72",
    "rasp5": f"-model=bcm2712 {_LINUX64} -mcpu=cortex-a76",
    "rk3399": f"-model=rk3399 {_LINUX64}",
    "hikey960": f"-model=hikey960 {_LINUX64}",
    "ultra96": f"-model=ultra96 {_LINUX64}",
    "zcu104": f"-model=zcu104 {_LINUX64}",
    "pynq": f"-model=pynq {_LINUX32}",
    "beagleai": f"-model=beagleai {_LINUX32} -mcpu=cortex-a15",
    "stm32mp1": f"-model=stm32mp1 {_LINUX32} -mcpu=cortex-a7",
    "thunderx": f"-model=thunderx {_LINUX64} -mcpu=thunderx",
}
_RV64: Final = "-mtriple=riscv64-unknown-linux-gnu -mabi=lp64d"
_RISCV: Final = {
    "sifive-e31": "-mtriple=riscv32-unknown-elf -mcpu=sifive-e31 -mabi=ilp32",
    "sifive-e76": "-mtriple=riscv32-unknown-elf -mcpu=sifive-e76 -mabi=ilp32f",
    "sifive-u54": f"{_RV64} -mcpu=sifive-u54",
    "sifive-u74": f"{_RV64} -mcpu=sifive-u74",
    "sifive-x280": f"{_RV64} -mcpu=sifive-x280",
    "licheerv": f"{_RV64} -mcpu=generic-rv64 -mattr=+m,+a,+f,+d,+c",
    "spacemit-x60": f"{_RV64} -mcpu=spacemit-x60",
}
_STM32: Final = {
    "stm32H7xx": "cortex-m7",
    "stm32F7xx": "cortex-m7",
    "stm32F4xx": "cortex-m4",
    "stm32F3xx": "cortex-m4",
    "stm32G4xx": "cortex-m4",
    "stm32L4xx": "cortex-m4",
    "stm32U5xx": "cortex-m33",
    "stm32L5xx": "cortex-m33",
    "stm32F2xx": "cortex-m3",
    "stm32F1xx": "cortex-m3",
    "stm32L1xx": "cortex-m3",
    "stm32F0xx": "cortex-m0",
    "stm32G0xx": "cortex-m0plus",
    "stm32L0xx": "cortex-m0plus",
}


class UnknownBoard(LoopwrightError, ValueError):
    """A helper such as `target.stm32` or `target.riscv_cpu` was given a model that it has no entry for.

    The helpers only spare typing: any machine can be written out, as in
    `Target("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4")`.

    For example:

        from loopwright import target

        target.stm32("stm32F9xx")
    """

    code = "LW0608"

    def __init__(self, helper: str, model: str, candidates: Iterable[str]) -> None:
        near = nearest(model, candidates)
        super().__init__(
            f"{helper}: unknown model {model!r}",
            hint=f"use one of {', '.join(near)}; or write the target out, with -mtriple and -mcpu",
            fields={"helper": helper, "model": model, "candidates": near},
        )


def create(target: TargetLike) -> Target:
    """Deprecated: `Target(target)`."""
    warnings.warn("target.create is deprecated: use Target(...)", DeprecationWarning, stacklevel=2)
    return as_target(target)


def cuda(
    model: str = "unknown", arch: str | Sequence[str] | None = None, options: str | Sequence[str] | None = None
) -> Target:
    """An NVIDIA GPU; `arch` such as `sm_80`, or several of them."""
    named = arch if isinstance(arch, str) else ",".join(arch or ())
    return _target("cuda", f"-model={model}", f"-arch={named}" if named else "", options)


def rocm(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An AMD GPU."""
    return _target("rocm", f"-model={model}", "", options)


def opencl(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A GPU behind OpenCL."""
    return _target("opencl", f"-model={model}", "", options)


def mali(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An Arm Mali GPU (Midgard)."""
    return _target("opencl", "-device=mali", f"-model={model}", options)


def bifrost(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An Arm Mali GPU (Bifrost)."""
    return _target("opencl", "-device=bifrost", f"-model={model}", options)


def adreno(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A Qualcomm Adreno GPU."""
    return _target("opencl", "-device=adreno", f"-model={model}", options)


def intel_graphics(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An Intel GPU inside a processor."""
    return _target("opencl", f"-device=intel_graphics -model={model}", "-thread_warp_size=16", options)


def arm_cpu(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A board with Arm cores; a model that is not listed gives `-model` alone, to be completed by `options`."""
    return _target("llvm", "-keys=arm_cpu,cpu -device=arm_cpu", _ARM.get(model, f"-model={model}"), options)


def rasp(options: str | Sequence[str] | None = None) -> Target:
    """Deprecated: `arm_cpu("rasp3b")`."""
    warnings.warn('target.rasp is deprecated: use target.arm_cpu("rasp3b")', DeprecationWarning, stacklevel=2)
    return arm_cpu("rasp3b", options)


def riscv_cpu(model: str = "sifive-u54", options: str | Sequence[str] | None = None) -> Target:
    """A RISC-V processor."""
    if model not in _RISCV:
        raise UnknownBoard("riscv_cpu", model, _RISCV)
    return _target("llvm", f"-keys=arm_cpu,cpu -device=arm_cpu -model={model}", _RISCV[model], options)


def hexagon(cpu_ver: str = "v68", **options: object) -> Target:
    """A Hexagon DSP; options: `hvx` (vector bytes: 0, 64, 128), `num_cores`, `vtcm_capacity` in bytes."""
    vector_bytes = options.pop("hvx", 128)
    attributes: dict[str, object] = {
        "kind": "hexagon",
        "mtriple": "hexagon",
        "mcpu": f"hexagon{cpu_ver}",
        "mattr": [f"+hvx{cpu_ver}", f"+hvx-length{vector_bytes}b"] if vector_bytes else [],
    }
    names = {"num_cores": "num-cores", "vtcm_capacity": "vtcm-capacity", "llvm_options": "llvm-options"}
    attributes.update({names.get(name, name): value for name, value in options.items()})
    return Target(attributes)


def stm32(series: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An STM32 microcontroller, through C."""
    if series not in _STM32:
        raise UnknownBoard("stm32", series, _STM32)
    cpu = _STM32[series]
    machine = f"-model={series} -mtriple={CORTEX_M_TRIPLES[cpu]} -mcpu={cpu}"
    return _target("c", "-keys=arm_cpu,cpu -device=arm_cpu", machine, options)


def _target(kind: str, first: str, second: str, options: str | Sequence[str] | None) -> Target:
    """The options of the caller come last, and win."""
    given = "" if options is None else options if isinstance(options, str) else " ".join(options)
    return Target(" ".join([part for part in (kind, first, second, given) if part]))
