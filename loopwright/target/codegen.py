"""`target.codegen`: what scripts ask about LLVM and about CPUs before they choose a schedule or skip a test.

    llvm_version_major() >= 15
    target_has_features("sve", Target("llvm -mtriple=aarch64-linux-gnu -mattr=+sve"))

The answers about CPUs come from our own tables (`architectures.py`); those about LLVM from llvmlite, which loads when
asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.runtime.errors import NotBuilt
from loopwright.target.architectures import architecture_of
from loopwright.target.host import detect_host
from loopwright.target.target import Target, TargetLike, as_target, describe

__all__ = [
    "llvm_cpu_has_feature",
    "llvm_cpu_has_features",
    "llvm_get_cpu_archlist",
    "llvm_get_cpu_features",
    "llvm_get_intrinsic_name",
    "llvm_get_system_cpu",
    "llvm_get_system_triple",
    "llvm_get_system_x86_vendor",
    "llvm_get_targets",
    "llvm_lookup_intrinsic_id",
    "llvm_version_major",
    "target_has_features",
]


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The version of LLVM that code is generated with; without llvmlite None, where that is allowed."""
    try:
        import llvmlite.binding as llvm
    except (ImportError, OSError):
        if allow_none:
            return None
        raise NotBuilt("LLVM, which llvmlite brings,", "install llvmlite") from None
    return int(llvm.llvm_version_info[0])


def llvm_lookup_intrinsic_id(name: str) -> str:
    """What `call_llvm_intrin` takes for the LLVM intrinsic of that name: here, the name itself."""
    return name


def llvm_get_intrinsic_name(intrin_id: str) -> str:
    """The name of an LLVM intrinsic that `llvm_lookup_intrinsic_id` looked up."""
    return intrin_id


def llvm_get_system_triple() -> str:
    """The triple of this machine."""
    return detect_host().triple


def llvm_get_system_cpu() -> str:
    """LLVM's name of this machine's CPU."""
    return detect_host().cpu


def llvm_get_system_x86_vendor() -> str:
    """The word of LLVM for who made this machine's CPU, "other" where that is no x86."""
    if architecture_of(detect_host().triple).name != "x86_64":
        return "other"
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            words = next((line.split(":")[1].strip() for line in file if line.startswith("vendor_id")), "")
    except OSError:
        return "other"
    return {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(words, "other")


def llvm_get_targets() -> list[str]:
    """The architectures that code can be generated for."""
    return ["aarch64", "arm", "riscv32", "riscv64", "x86_64"]


def llvm_get_cpu_archlist(target: TargetLike | None = None) -> list[str]:
    """The CPUs that `-mcpu` may name for the architecture of the target."""
    return sorted(architecture_of(describe(_chosen(target)).triple).cpus)


def llvm_get_cpu_features(target: TargetLike | None = None) -> list[str]:
    """The instruction features that the target's CPU has, by LLVM's names."""
    return sorted(describe(_chosen(target)).features)


def llvm_cpu_has_features(cpu_features: str | Sequence[str], target: TargetLike | None = None) -> bool:
    """Whether the target's CPU has all of these features."""
    return target_has_features(cpu_features, target)


def target_has_features(cpu_features: str | Sequence[str], target: TargetLike | None = None) -> bool:
    """Whether the target has all of these features, by its CPU's name or by `-mattr`."""
    wanted = [cpu_features] if isinstance(cpu_features, str) else list(cpu_features)
    return set(wanted) <= describe(_chosen(target)).features


llvm_cpu_has_feature = llvm_cpu_has_features  # of one, by the name it has behind the functions


def _chosen(target: TargetLike | None) -> Target:
    return as_target(target) if target is not None else Target.current() or Target("llvm")
