"""target: what the code is compiled for.

A `Target` is the user's words (`"llvm -mcpu=core-avx2"`); `describe(target)` turns them into a `CpuDescription`, which
answers every question the compiler has about the machine: vector width, registers, FMA, caches, cores. Ask the
description, never the architecture's name. `describe_gpu(target)` gives the `GpuDescription` of a cuda target.

Open `target.py` first (reading and writing, the current target; `text.py`, `kinds.py` and `tags.py` are what it reads),
then `cpu.py` (the description), `architectures.py` (the table of instruction features it is derived from), `host.py`
(what this machine is), `gpu.py` and its table `gpus.py`, and `availability.py` (what can be built here). `features.py`
answers by the words of scripts, `boards.py` has targets by name, `generic_functions.py` functions with a body for each
kind of target, `datatype.py` the user's own number types. `virtual_device.py` and
`compilation_config.py` name the devices of a program.
"""

from typing import Any

from loopwright.target.availability import TargetNotBuildable, require_buildable
from loopwright.target.boards import (
    UnknownBoard,
    adreno,
    arm_cpu,
    bifrost,
    create,
    cuda,
    hexagon,
    intel_graphics,
    mali,
    opencl,
    rasp,
    riscv_cpu,
    rocm,
    stm32,
)
from loopwright.target.cpu import CpuDescription, UnknownCpu
from loopwright.target.errors import (
    BadTargetAttribute,
    BadTargetText,
    NoCurrentTarget,
    UnknownTargetAttribute,
    UnknownTargetKind,
)
from loopwright.target.generic_functions import (
    GenericBodyExists,
    GenericFunc,
    NoBodyForTarget,
    generic_func,
    get_native_generic_func,
    override_native_generic_func,
)
from loopwright.target.gpu import GpuDescription, UnknownGpuArchitecture, architectures_of, describe_gpu
from loopwright.target.host import Host, available_cores, detect_host
from loopwright.target.kinds import TargetKind, list_kinds
from loopwright.target.microarchitecture import Caches, Microarchitecture
from loopwright.target.moves import Moves
from loopwright.target.tags import list_tags
from loopwright.target.target import Target, TargetLike, describe, host_description


def __getattr__(name: str) -> Any:
    if name in ("CompilationConfig", "NoTargetForDevice", "make_compilation_config"):  # few programs name devices
        from loopwright.target import compilation_config

        return getattr(compilation_config, name)
    if name == "VirtualDevice":
        from loopwright.target.virtual_device import VirtualDevice

        return VirtualDevice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BadTargetAttribute",
    "BadTargetText",
    "Caches",
    "CompilationConfig",
    "CpuDescription",
    "GenericBodyExists",
    "GenericFunc",
    "GpuDescription",
    "Host",
    "Microarchitecture",
    "Moves",
    "NoBodyForTarget",
    "NoCurrentTarget",
    "NoTargetForDevice",
    "Target",
    "TargetKind",
    "TargetLike",
    "TargetNotBuildable",
    "UnknownBoard",
    "UnknownCpu",
    "UnknownGpuArchitecture",
    "UnknownTargetAttribute",
    "UnknownTargetKind",
    "VirtualDevice",
    "adreno",
    "architectures_of",
    "arm_cpu",
    "available_cores",
    "bifrost",
    "create",
    "cuda",
    "describe",
    "describe_gpu",
    "detect_host",
    "generic_func",
    "get_native_generic_func",
    "hexagon",
    "host_description",
    "intel_graphics",
    "list_kinds",
    "list_tags",
    "make_compilation_config",
    "mali",
    "opencl",
    "override_native_generic_func",
    "rasp",
    "require_buildable",
    "riscv_cpu",
    "rocm",
    "stm32",
]
